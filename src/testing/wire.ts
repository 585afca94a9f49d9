/**
 * A runner's wire to a local engine: a real DynamoDB client whose requests pass through somebody's hands on their way. They
 * decide for each whether and when it reaches the engine, and what comes back.
 *
 * Request timeouts are for those hands, too: the wire hands on the signal of a request that its sender has given up, and
 * goes on as before.
 */
import { DynamoDBClient, type DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";
import { localClientConfig } from "../local/engine.ts";
import { planOf, type Reply, type SingleFault } from "./fault.ts";
import { type Line, lineTo, type WireReply } from "./line.ts";

export type { WireReply } from "./line.ts";

export interface WireRequest {
  /** Order of sending on this wire, from 0. */
  readonly at: number;
  /** Such as "UpdateItem". */
  readonly operation: string;
  /** The same for every try of one request. */
  readonly body: string;
  /** Aborts when its sender has given it up. */
  readonly signal: AbortSignal | undefined;
  /** How often the engine has accepted it. */
  readonly accepted: number;
  /**
   * Has the engine do it: never, once, or as often as a network repeats it.
   * @param options `token: false` takes the client's token away, as on a server that ignores it; `body` is sent in place of the
   * request's own
   */
  apply(options?: { readonly token?: boolean; readonly body?: string }): Promise<WireReply>;
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
/** A request as the SDK hands it to what sends it. */
export type HttpRequest = Parameters<Handler["handle"]>[0];

/** What the wires of one endpoint share: a client takes a while to make, and connections are better kept. */
interface Shared {
  readonly client: DynamoDBClient;
  readonly line: Line;
}

const shared = new Map<string, Shared>();
const sharedBy = (endpoint: string): Shared => {
  const known = shared.get(endpoint);
  if (known !== undefined) return known;
  const requestHandler = {
    // The SDK hands on what a request was sent with.
    handle: async (http: HttpRequest, options: unknown) => {
      const { carry, abortSignal } = options as {
        readonly carry: (http: HttpRequest, signal?: AbortSignal) => Promise<WireReply>;
        readonly abortSignal?: AbortSignal;
      };
      return { response: (await carry(http, abortSignal)) as never };
    },
    updateHttpClientConfig: () => {},
    httpHandlerConfigs: () => ({}),
  };
  const config = { ...localClientConfig(endpoint), maxAttempts: 1, signer, requestHandler };
  const made = { line: lineTo(endpoint), client: new DynamoDBClient(config) };
  shared.set(endpoint, made);
  return made;
};

/** The line signs for itself. */
const signer = { sign: async <T>(http: T): Promise<T> => http } as unknown as NonNullable<
  DynamoDBClientConfig["signer"]
>;

export const wireTo = (endpoint: string, carry: Carry): Wire => {
  const { client, line } = sharedBy(endpoint);
  const requests: WireRequest[] = [];
  const underway = new Set<Promise<unknown>>();
  const tracked: Line["send"] = (operation, body) => {
    const reply = line.send(operation, body);
    underway.add(reply);
    const done = () => underway.delete(reply);
    reply.then(done, done);
    return reply;
  };
  const own = {
    carry: (http: HttpRequest, signal?: AbortSignal) => {
      const request = wireRequest(requests.length, http, tracked, signal);
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

/** A request of any DynamoDB client, to be sent to the engine by `send`. */
export const wireRequest = (
  at: number,
  { headers, body }: HttpRequest,
  send: Line["send"],
  signal?: AbortSignal,
): WireRequest => {
  const operation = String(headers["x-amz-target"]).split(".").at(-1) as string;
  const text = typeof body === "string" ? body : new TextDecoder().decode(body as Uint8Array);
  let accepted = 0;
  return {
    at,
    operation,
    body: text,
    signal,
    get accepted() {
      return accepted;
    },
    apply: async ({ token = true, body = text } = {}) => {
      const reply = await send(operation, token ? body : withoutToken(body));
      if (reply.statusCode === 200) accepted += 1;
      return reply;
    },
  };
};

const withoutToken = (text: string): string => {
  const { ClientRequestToken: _, ...rest } = JSON.parse(text);
  return JSON.stringify(rest);
};

/** Asks the engine directly, past the SDK: for looking at tables between any two steps, which must be cheap. */
export const askEngine = async <T>(endpoint: string, operation: string, body: unknown): Promise<T> => {
  const reply = await sharedBy(endpoint).line.send(operation, JSON.stringify(body));
  const text = Buffer.from(reply.body).toString();
  if (reply.statusCode !== 200) throw new Error(`${operation}: ${text}`);
  return JSON.parse(text) as T;
};

/** The connection broke: whether the request was applied can't be told. */
export const brokenConnection = (): Error => Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });

/** The service failed, before or after it did the request. */
export const serverError = (): WireReply => wireReply(planOf("500-before", "", 1).reply as Reply);

/** What DynamoDB answers to a request that it didn't do for `fault`. */
export const refusal = ({ operation, body }: WireRequest, fault: "throttle" | { readonly conflict: true }): WireReply =>
  wireReply(planOf(fault as SingleFault, operation, JSON.parse(body).TransactItems?.length ?? 1).reply as Reply);

/** A concurrent transaction was in the way: not applied. */
export const conflictWith = (request: WireRequest): WireReply => refusal(request, { conflict: true });

const wireReply = ({ status, body }: Reply): WireReply => ({
  statusCode: status,
  headers: { "content-type": "application/x-amz-json-1.0" },
  body: Buffer.from(body),
});

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
