/**
 * Lambda's Invoke API on 127.0.0.1, over functions of the test's own: events are answered at once and run beside, requests
 * are waited for, and each invocation is noted. https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { systemClock } from "cronfence";
import { afterAll, afterEach, beforeAll } from "vitest";
import { invocation } from "../lambda/invocation.ts";

type Handler = (event: unknown, context: object) => Promise<unknown>;

export interface StubLambda {
  endpoint: string;
  /** By name. */
  readonly functions: Map<string, Handler>;
  /** What was invoked, in order. */
  readonly invocations: { readonly name: string; readonly kind: string; readonly event: Record<string, unknown> }[];
  /** What becomes of the next event, instead of being taken and acknowledged. */
  next: "lost reply" | "refused" | "throttled" | undefined;
  /** Resolves when all invocations have ended. */
  idle(): Promise<void>;
}

/** For the tests of the file that calls it; emptied after each. */
export const useStubLambda = (): StubLambda => {
  const going = new Set<Promise<unknown>>();
  const lambda: StubLambda = {
    endpoint: "",
    functions: new Map(),
    invocations: [],
    next: undefined,
    idle: async () => {
      while (going.size > 0) await Promise.allSettled(going);
    },
  };
  const server = createServer((request, response) => void answer(request, response));
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const name = decodeURIComponent(/\/functions\/([^/]+)\/invocations/.exec(request.url ?? "")?.[1] ?? "");
    const kind = String(request.headers["x-amz-invocation-type"] ?? "RequestResponse");
    const event = JSON.parse(Buffer.concat(chunks).toString() || "{}") as Record<string, unknown>;
    const requestId = randomUUID();
    const reply = (status: number, body: unknown, headers: Record<string, string> = {}) =>
      response
        .writeHead(status, { "content-type": "application/json", "x-amzn-requestid": requestId, ...headers })
        .end(status === 202 ? "" : JSON.stringify(body ?? null));
    const fault = (status: number, type: string, message: string) =>
      reply(status, { Type: "User", message, Message: message }, { "x-amzn-errortype": type });
    const { next } = lambda;
    lambda.next = undefined;
    if (next === "throttled") return void fault(429, "TooManyRequestsException", "Rate exceeded");
    if (next === "refused") {
      const denied =
        "User: arn:aws:iam::1:user/ann is not authorized to perform: lambda:InvokeFunction on resource: arn:f";
      return void fault(403, "AccessDeniedException", denied);
    }
    const handler = lambda.functions.get(name);
    if (handler === undefined) return void fault(404, "ResourceNotFoundException", `Function not found: ${name}`);
    lambda.invocations.push({ name, kind, event });
    const context = invocation(systemClock, { requestId });
    const work = handler(event, context);
    const kept = work.catch(() => {}).finally(() => going.delete(kept));
    going.add(kept);
    if (next === "lost reply") return void response.socket?.destroy();
    if (kind === "Event") return void reply(202, undefined);
    work.then(
      (result) => reply(200, result),
      (error: Error) =>
        reply(200, { errorType: error.name, errorMessage: error.message }, { "x-amz-function-error": "Unhandled" }),
    );
  };
  beforeAll(
    () =>
      new Promise<void>((resolve) => {
        server.listen(0, "127.0.0.1", () => {
          lambda.endpoint = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
          resolve();
        });
      }),
  );
  afterEach(async () => {
    await lambda.idle();
    lambda.functions.clear();
    lambda.invocations.length = 0;
    lambda.next = undefined;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  return lambda;
};
