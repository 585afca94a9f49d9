/**
 * A runner's wire to the engine: a real DynamoDB client whose requests pass through a test's hands on their way to the
 * SDK's own HTTP handler. The test decides for each whether and when it reaches the engine, and what comes back.
 *
 * Request timeouts are real timers, so the wire ignores them: a test that wants one breaks the connection instead.
 */
import { DynamoDBClient, type DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";
import { localClientConfig } from "cronfence/testing";

/** An answer as it comes over HTTP, read to its end. */
export interface WireReply {
  readonly statusCode: number;
  readonly headers: Record<string, string>;
  readonly body: Uint8Array;
}

export interface WireRequest {
  /** Order of sending on this wire, from 0. */
  readonly at: number;
  /** Such as "UpdateItem". */
  readonly operation: string;
  /** The same for every try of one request. */
  readonly body: string;
  /** How often the engine has accepted it. */
  readonly accepted: number;
  /**
   * Has the engine do it: never, once, or as often as a network repeats it.
   * @param options `token: false` takes the client's token away, as on a server that ignores it
   */
  apply(options?: { readonly token?: boolean }): Promise<WireReply>;
}

/** What becomes of a request: a reply, a broken connection (rejects), or nothing ever. */
export type Carry = (request: WireRequest) => Promise<WireReply>;

export interface Wire {
  readonly client: DynamoDBClient;
  /** All that was sent, in order. */
  readonly requests: readonly WireRequest[];
  /** Resolves when nothing is on its way to the engine. */
  quiet(): Promise<void>;
}

type Handler = DynamoDBClient["config"]["requestHandler"];
type HttpRequest = Parameters<Handler["handle"]>[0];

/** What the wires of one endpoint share: a client takes a while to make, and connections are better kept. */
interface Line {
  readonly client: DynamoDBClient;
  /** The SDK's own. */
  readonly handler: Handler;
}

const lines = new Map<string, Line>();
const lineTo = (endpoint: string): Line => {
  const known = lines.get(endpoint);
  if (known !== undefined) return known;
  const config = { ...localClientConfig(endpoint), maxAttempts: 1, signer };
  const { requestHandler: handler } = new DynamoDBClient(config).config;
  const requestHandler = {
    // The SDK hands on what a request was sent with.
    handle: async (http: HttpRequest, options: unknown) => ({
      response: (await (options as { carry: (http: HttpRequest) => Promise<WireReply> }).carry(http)) as never,
    }),
    updateHttpClientConfig: () => {},
    httpHandlerConfigs: () => ({}),
  };
  const line = { handler, client: new DynamoDBClient({ ...config, requestHandler }) };
  lines.set(endpoint, line);
  return line;
};

/** A local engine looks for a signature, and believes any. */
const signed = {
  "x-amz-date": "20260101T000000Z",
  authorization:
    "AWS4-HMAC-SHA256 Credential=local/20260101/local/dynamodb/aws4_request, SignedHeaders=host, Signature=0",
};
const signer = {
  sign: async <T>(http: T): Promise<T> => {
    Object.assign((http as HttpRequest).headers, signed);
    return http;
  },
} as unknown as NonNullable<DynamoDBClientConfig["signer"]>;

export const wireTo = (endpoint: string, carry: Carry): Wire => {
  const { client, handler } = lineTo(endpoint);
  const requests: WireRequest[] = [];
  const underway = new Set<Promise<unknown>>();
  const own = {
    carry: (http: HttpRequest) => {
      const request = wireRequest(requests.length, http, (options) => {
        const reply = send(handler, options?.token === false ? withoutToken(http) : http);
        underway.add(reply);
        const done = () => underway.delete(reply);
        reply.then(done, done);
        return reply;
      });
      requests.push(request);
      return carry(request);
    },
  };
  return {
    client: Object.create(client, {
      send: { value: (command: never, options: object) => client.send(command, { ...options, ...own } as object) },
    }) as DynamoDBClient,
    requests,
    quiet: async () => {
      while (underway.size > 0) await Promise.allSettled(underway);
    },
  };
};

const wireRequest = (at: number, { headers, body }: HttpRequest, apply: WireRequest["apply"]): WireRequest => {
  let accepted = 0;
  return {
    at,
    operation: String(headers["x-amz-target"]).split(".").at(-1) as string,
    body: textOf(body),
    get accepted() {
      return accepted;
    },
    apply: async (options) => {
      const reply = await apply(options);
      if (reply.statusCode === 200) accepted += 1;
      return reply;
    },
  };
};

const textOf = (body: unknown): string =>
  typeof body === "string" ? body : new TextDecoder().decode(body as Uint8Array);

const withoutToken = (http: HttpRequest): HttpRequest => {
  const { ClientRequestToken: _, ...rest } = JSON.parse(textOf(http.body));
  const body = JSON.stringify(rest);
  return Object.assign(http.clone(), {
    body,
    headers: { ...http.headers, "content-length": String(Buffer.byteLength(body)) },
  });
};

const send = async (handler: Handler, http: HttpRequest): Promise<WireReply> => {
  const { response } = await handler.handle(http, {});
  const chunks: Buffer[] = [];
  for await (const chunk of response.body as AsyncIterable<Buffer>) chunks.push(chunk);
  return { statusCode: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) };
};

/** Asks the engine directly, past the SDK: for looking at tables between any two steps, which must be cheap. */
export const askEngine = async <T>(endpoint: string, operation: string, body: unknown): Promise<T> => {
  const { hostname, port, host } = new URL(endpoint);
  const reply = await send(lineTo(endpoint).handler, {
    protocol: "http:",
    hostname,
    port: Number(port),
    path: "/",
    method: "POST",
    query: {},
    headers: {
      host,
      "content-type": "application/x-amz-json-1.0",
      "x-amz-target": `DynamoDB_20120810.${operation}`,
      ...signed,
    },
    body: JSON.stringify(body),
  } as unknown as HttpRequest);
  const text = Buffer.from(reply.body).toString();
  if (reply.statusCode !== 200) throw new Error(`${operation}: ${text}`);
  return JSON.parse(text) as T;
};

/** The connection broke: whether the request was applied can't be told. */
export const brokenConnection = (): Error => Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });

const errorReply = (statusCode: number, exception: string, more: object = {}): WireReply => ({
  statusCode,
  headers: { "content-type": "application/x-amz-json-1.0" },
  body: Buffer.from(
    JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${exception}`, message: exception, ...more }),
  ),
});

/** The service failed, before or after it did the request. */
export const serverError = (): WireReply => errorReply(500, "InternalServerError");

/** A concurrent transaction was in the way: not applied. */
export const conflictWith = ({ operation, body }: WireRequest): WireReply =>
  operation === "TransactWriteItems"
    ? errorReply(400, "TransactionCanceledException", {
        CancellationReasons: JSON.parse(body).TransactItems.map((_: unknown, index: number) => ({
          Code: index === 0 ? "TransactionConflict" : "None",
        })),
      })
    : errorReply(400, "TransactionConflictException");

export const passed: Carry = (request) => request.apply();

export const lostReply: Carry = async (request) => {
  await request.apply();
  throw brokenConnection();
};

export const failedAfter: Carry = async (request) => {
  await request.apply();
  return serverError();
};

/** Nothing comes of it any more. */
export const never = (): Promise<never> => new Promise(() => {});

/** A server that doesn't know a request that it has done by its token: case 24. */
export const tokenless =
  (carry: Carry): Carry =>
  (request) =>
    carry(Object.create(request, { apply: { value: () => request.apply({ token: false }) } }));
