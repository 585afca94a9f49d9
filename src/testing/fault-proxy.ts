/**
 * An HTTP proxy in front of a DynamoDB endpoint that records every request and makes chosen ones go wrong the way
 * networks and services do: replies lost after the request was applied, requests applied late or twice, hangs, 500s,
 * throttling, transaction conflicts.
 *
 * It passes on bodies and statuses as they are. It doesn't sign anything, so it is for local engines, not for AWS.
 */
import {
  Agent,
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { type Fault, type Plan, planOf, type Reply } from "./fault.ts";

/** One request that reached the proxy. Its later fields are filled in as it goes on. */
export interface ProxiedRequest {
  /** Order of arrival, from 0. */
  readonly at: number;
  /** Such as "UpdateItem". */
  readonly operation: string;
  /** The parsed JSON body, in DynamoDB's own form. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every operation
  readonly body: any;
  /** As the client sent them. */
  readonly headers: IncomingHttpHeaders;
  /** The status that the client was sent; undefined while, or if, it got none. */
  status: number | undefined;
  /** Whether the engine accepted it (a 200, at least once), whatever the client was told. */
  applied: boolean;
  /** The engine's own replies, in order; the body parsed. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly replies: { status: number; body: any }[];
  /** Resolves when the proxy is through with it: applied or not, answered or not. A hang counts, too. */
  readonly settled: Promise<void>;
}

/** Which requests a rule is for: an operation such as "TransactWriteItems", or a function that says so. */
export type Match = string | ((request: ProxiedRequest) => boolean);

/** What goes wrong with the requests that a rule is for, or a function that says so for each of them. */
export type FaultFor = Fault | ((request: ProxiedRequest) => Fault);

/** A rule that was given to the proxy. */
export interface Rule {
  /** How many requests it has been applied to. */
  readonly hits: number;
  /** Resolves with the first such request, when it arrives. */
  readonly hit: Promise<ProxiedRequest>;
  /** Takes the rule back. */
  remove(): void;
}

/** A running proxy. */
export interface FaultProxy {
  /** The URL to give to clients in place of the target's. */
  readonly endpoint: string;
  /** All requests so far, in order of arrival. */
  readonly requests: readonly ProxiedRequest[];
  /** Makes the next request that matches go wrong. Of several such rules each takes one request, the oldest first. */
  next(match: Match, fault: FaultFor): Rule;
  /**
   * Makes every request that matches go wrong, or with `times` that many. A request is taken by at most one counted
   * rule (`next`, or `when` with `times`), which is laid over all uncounted ones that match.
   */
  when(match: Match, fault: FaultFor, options?: { times?: number }): Rule;
  /** Sends a recorded request to the target once more, as it came: a network that repeats it later. */
  replay(request: ProxiedRequest): Promise<Reply>;
  /** Forgets all rules and recorded requests. */
  reset(): void;
  /** Breaks all connections and resolves when the port is free. What is still held back is not forwarded any more. */
  stop(): Promise<void>;
}

interface CountedRule extends Rule {
  match: Match;
  fault: FaultFor;
  left: number;
  hits: number;
  found(request: ProxiedRequest): void;
}

export interface FaultProxyOptions {
  /** It doesn't keep the process alive: a process with nothing else to do ends, and the proxy with it. @default false */
  readonly unref?: boolean;
}

/** Starts a proxy on a free port of 127.0.0.1 in front of `target`, an URL such as `http://127.0.0.1:8000`. */
export const startFaultProxy = async (
  target: string,
  { unref = false }: FaultProxyOptions = {},
): Promise<FaultProxy> => {
  const agent = new Agent({ keepAlive: true });
  const sources = new WeakMap<ProxiedRequest, { headers: IncomingHttpHeaders; payload: Buffer }>();
  const requests: ProxiedRequest[] = [];
  let rules: CountedRule[] = [];
  let stopped = false;

  const planFor = (request: ProxiedRequest): Plan => {
    const matching = rules.filter(({ match }) =>
      typeof match === "string" ? match === request.operation : match(request),
    );
    const standing = matching.filter((rule) => rule.left === Number.POSITIVE_INFINITY);
    const counted = matching.find((rule) => rule.left !== Number.POSITIVE_INFINITY);
    const chosen = counted ? [...standing, counted] : standing;
    for (const rule of chosen) {
      rule.left--;
      rule.found(request);
    }
    rules = rules.filter((rule) => rule.left > 0);
    return planOf(
      chosen.flatMap(({ fault }) => (typeof fault === "function" ? fault(request) : fault)),
      request.operation,
      request.body?.TransactItems?.length ?? 1,
    );
  };

  const forward = async (request: ProxiedRequest, stripToken: boolean): Promise<Reply> => {
    const { headers, payload } = sources.get(request)!;
    const { ClientRequestToken: _, ...rest } = request.body ?? {};
    const reply = await send(target, agent, headers, stripToken ? Buffer.from(JSON.stringify(rest)) : payload);
    request.replies.push({ status: reply.status, body: parse(reply.body) });
    if (reply.status === 200) request.applied = true;
    return reply;
  };

  const handle = async (request: ProxiedRequest, response: ServerResponse) => {
    const plan = planFor(request);
    await plan.before?.();
    const replies: Reply[] = [];
    for (let i = plan.forward ?? 1; i > 0 && !stopped; i--)
      replies.push(await forward(request, plan.stripToken ?? false));
    await plan.after?.();
    if (plan.reply === "hang") return;
    const reply = typeof plan.reply === "object" ? plan.reply : plan.reply === "second" ? replies[1] : replies[0];
    if (plan.reply === "break" || !reply || response.destroyed) return void response.destroy();
    request.status = reply.status;
    answer(response, reply);
  };

  const receive = async (incoming: IncomingMessage, response: ServerResponse) => {
    const payload = await read(incoming);
    let settle = () => {};
    const request: ProxiedRequest = {
      at: requests.length,
      operation: String(incoming.headers["x-amz-target"] ?? "")
        .split(".")
        .at(-1)!,
      body: parse(payload.toString()),
      headers: incoming.headers,
      status: undefined,
      applied: false,
      replies: [],
      settled: new Promise((resolve) => (settle = resolve)),
    };
    sources.set(request, { headers: incoming.headers, payload });
    requests.push(request);
    await handle(request, response).finally(settle);
  };

  // A target that can't be reached, or a hook that throws, looks to the client like a broken connection.
  const server = createServer((incoming, response) => void receive(incoming, response).catch(() => response.destroy()));
  server.keepAliveTimeout = 0; // or an idle client's connection would break by itself
  server.requestTimeout = 0;
  // A connection with a request on it is kept alive by its client.
  if (unref) server.unref().on("connection", (socket) => socket.unref());
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));

  const when: FaultProxy["when"] = (match, fault, { times = Number.POSITIVE_INFINITY } = {}) => {
    let resolveHit: (request: ProxiedRequest) => void;
    const rule: CountedRule = {
      match,
      fault,
      left: times,
      hits: 0,
      hit: new Promise((resolve) => (resolveHit = resolve)),
      found: (request) => {
        rule.hits++;
        resolveHit(request);
      },
      remove: () => void (rules = rules.filter((other) => other !== rule)),
    };
    rules.push(rule);
    return rule;
  };
  const address = server.address();
  return {
    endpoint: `http://127.0.0.1:${typeof address === "object" && address ? address.port : 0}`,
    requests,
    when,
    next: (match, fault) => when(match, fault, { times: 1 }),
    replay: (request) => forward(request, false),
    reset: () => {
      rules = [];
      requests.length = 0;
    },
    stop: async () => {
      stopped = true;
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
      agent.destroy();
    },
  };
};

const read = async (stream: AsyncIterable<Buffer>): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
};

const send = (target: string, agent: Agent, headers: IncomingHttpHeaders, payload: Buffer): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const { host: _, connection: __, "transfer-encoding": ___, ...rest } = headers;
    const options = { method: "POST", agent, headers: { ...rest, "content-length": payload.length } };
    httpRequest(target, options, (response) => {
      read(response).then((body) => resolve({ status: response.statusCode ?? 502, body: body.toString() }), reject);
    })
      .once("error", reject)
      .end(payload);
  });

const answer = (response: ServerResponse, { status, body }: Reply): void => {
  response.writeHead(status, {
    "content-type": "application/x-amz-json-1.0",
    "content-length": Buffer.byteLength(body),
  });
  response.end(body);
};

// biome-ignore lint/suspicious/noExplicitAny: what came over the wire
const parse = (text: string): any => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};
