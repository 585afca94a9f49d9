/**
 * DynamoDB without the SDK's client, for functions on Lambda: the SDK's own signer and HTTP handler around one JSON request.
 * The client takes longer to load than all else that a small run does, and of what it can a run needs nothing.
 *
 * It is used only where nothing is asked for that the client alone knows: a function's own credentials, one of the regions
 * of the standard partition (or an endpoint that is given), and no profile, configuration file, FIPS or dual-stack endpoint.
 *
 * It never tries again and never guesses: that is `settle`'s. What is thrown has the SDK's shape (`name`, `$metadata`).
 */
import { createHash, createHmac, type Hash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import { SignatureV4 } from "@smithy/signature-v4";
import type { Send } from "./commands.ts";

type Environment = Readonly<Record<string, string | undefined>>;
type Handle = NodeHttpHandler["handle"];

/**
 * @param environment a function's: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime
 * @returns nothing where the SDK's client is needed
 */
export const directSender = (environment: Environment): Send | undefined => {
  const region = environment.AWS_REGION;
  const url = endpointFor(environment, region);
  if (!isPlain(environment) || region === undefined || url === undefined) return undefined;
  const http = new NodeHttpHandler();
  const signer = new SignatureV4({
    service: "dynamodb",
    region,
    sha256: Sha256,
    credentials: async () => ({
      accessKeyId: environment.AWS_ACCESS_KEY_ID ?? "",
      secretAccessKey: environment.AWS_SECRET_ACCESS_KEY ?? "",
      ...(environment.AWS_SESSION_TOKEN ? { sessionToken: environment.AWS_SESSION_TOKEN } : {}),
    }),
  });
  return async ({ operation, input }, abortSignal) => {
    const body = JSON.stringify(input, withBase64);
    const trace = environment._X_AMZN_TRACE_ID;
    const request = await signer.sign({
      method: "POST",
      protocol: url.protocol,
      hostname: url.hostname,
      ...(url.port === "" ? {} : { port: Number(url.port) }),
      path: url.pathname,
      query: {},
      headers: {
        host: url.host,
        "content-type": "application/x-amz-json-1.0",
        "content-length": String(Buffer.byteLength(body)),
        "x-amz-target": `DynamoDB_20120810.${operation}`,
        "user-agent": "cronfence",
        ...(trace === undefined ? {} : { "x-amzn-trace-id": trace }),
      },
      body,
    });
    return answerTo(() => http.handle(request as Parameters<Handle>[0], { abortSignal }));
  };
};

const isPlain = (environment: Environment): boolean =>
  Boolean(environment.AWS_LAMBDA_FUNCTION_NAME) &&
  Boolean(environment.AWS_ACCESS_KEY_ID) &&
  Boolean(environment.AWS_SECRET_ACCESS_KEY) &&
  !sdkSettings.some((name) => environment[name]);

/** https://docs.aws.amazon.com/sdkref/latest/guide/settings-reference.html: what changes where requests go, or who sends them. */
const sdkSettings = [
  "AWS_PROFILE",
  "AWS_CONFIG_FILE",
  "AWS_SHARED_CREDENTIALS_FILE",
  "AWS_USE_FIPS_ENDPOINT",
  "AWS_USE_DUALSTACK_ENDPOINT",
  "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
];

const endpointFor = (environment: Environment, region = ""): URL | undefined => {
  const given = environment.AWS_ENDPOINT_URL_DYNAMODB || environment.AWS_ENDPOINT_URL;
  if (given) return URL.canParse(given) ? new URL(given) : undefined;
  return standardRegion.test(region) ? new URL(`https://dynamodb.${region}.amazonaws.com/`) : undefined;
};

/** https://docs.aws.amazon.com/general/latest/gr/ddb.html: China, GovCloud and the isolated ones are named and served otherwise. */
const standardRegion =
  /^(af|ap|ca|eu|il|me|mx|sa|us)-(central|north|south|east|west|northeast|northwest|southeast|southwest)-\d+$/;

/** An answer, read to its end; whatever fails once a request may be on its way is marked as sent (`$metadata`). */
const answerTo = async (handle: () => ReturnType<Handle>): Promise<unknown> => {
  let $metadata: Metadata = { attempts: 1 };
  try {
    const { response } = await handle();
    $metadata = { ...$metadata, httpStatusCode: response.statusCode };
    const requestId = response.headers["x-amzn-requestid"];
    if (requestId !== undefined) $metadata = { ...$metadata, requestId };
    const text = await textOf(response.body as IncomingMessage);
    const answer = JSON.parse(text, mayHoldBytes(text) ? fromBase64 : undefined) as Answer;
    if (response.statusCode === 200) return answer;
    throw refusal(answer, response.headers["x-amzn-errortype"]);
  } catch (error) {
    throw Object.assign(error as Error, { $metadata });
  }
};

interface Metadata {
  readonly attempts: number;
  readonly httpStatusCode?: number;
  readonly requestId?: string;
}

/** What a refusal says: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html */
interface Answer {
  readonly __type?: string;
  readonly message?: string;
  readonly Message?: string;
  readonly Item?: Record<string, AttributeValue>;
  readonly CancellationReasons?: readonly unknown[];
}

const refusal = ({ __type, message, Message, Item, CancellationReasons }: Answer, type: string | undefined): Error => {
  const name = (__type ?? type ?? "UnknownError").replace(/^.*#/, "").replace(/:.*$/, "");
  return Object.assign(new Error(message ?? Message ?? name), {
    name,
    ...(Item === undefined ? {} : { Item }),
    ...(CancellationReasons === undefined ? {} : { CancellationReasons }),
  });
};

const textOf = async (body: IncomingMessage): Promise<string> => {
  const parts: Buffer[] = [];
  for await (const part of body) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
};

/** Bytes go over the wire as base64. A Buffer has a `toJSON`, so that the value itself is looked at, not what it became. */
function withBase64(this: Record<string, unknown>, key: string, value: unknown): unknown {
  const given = this[key];
  return given instanceof Uint8Array
    ? Buffer.from(given.buffer, given.byteOffset, given.byteLength).toString("base64")
    : value;
}

const mayHoldBytes = (text: string): boolean => /"BS?"\s*:\s*["[]/.test(text);

/** Undoes it where an attribute value, which has its type as its only key, says so. */
const fromBase64 = (_key: string, value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value;
  const [type, ...more] = Object.keys(value);
  if (more.length > 0 || (type !== "B" && type !== "BS")) return value;
  const held = (value as Record<string, unknown>)[type];
  if (type === "B" && typeof held === "string") return { B: bytesOf(held) };
  if (type === "BS" && Array.isArray(held)) return { BS: held.map(bytesOf) };
  return value;
};

const bytesOf = (base64: string): Uint8Array => new Uint8Array(Buffer.from(base64, "base64"));

/** Node's own hash in the form that the signer takes. */
class Sha256 {
  #hash: Hash | ReturnType<typeof createHmac>;
  readonly #secret: Secret | undefined;

  constructor(secret?: Secret) {
    this.#secret = secret;
    this.#hash = hashWith(secret);
  }
  update(data: Uint8Array): void {
    this.#hash.update(data);
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
  reset(): void {
    this.#hash = hashWith(this.#secret);
  }
}

type Secret = string | ArrayBuffer | ArrayBufferView;

const hashWith = (secret: Secret | undefined) =>
  secret === undefined ? createHash("sha256") : createHmac("sha256", bytesIn(secret));

const bytesIn = (secret: Secret): string | Uint8Array => {
  if (typeof secret === "string") return secret;
  return ArrayBuffer.isView(secret)
    ? new Uint8Array(secret.buffer, secret.byteOffset, secret.byteLength)
    : new Uint8Array(secret);
};
