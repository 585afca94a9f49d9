/** Stands in for AWS services: answers every request as a test says, over HTTP/1.1 or, for Kinesis, HTTP/2. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttp2Server, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";

interface StubRequest {
  /** Such as "SendMessageBatch"; for S3 the method and path with its query. */
  readonly operation: string;
  readonly body: string;
}

export interface StubAnswer {
  readonly status?: number;
  /** An object is sent as JSON, a text as XML. */
  readonly body: object | string;
}

export interface AwsStub {
  readonly endpoint: string;
  readonly requests: StubRequest[];
  /** The next answers, in order; the last one stays. */
  answer(...answers: StubAnswer[]): void;
  stop(): void;
}

export const startAwsStub = async ({ http2 = false } = {}): Promise<AwsStub> => {
  const requests: StubRequest[] = [];
  const sessions = new Set<{ destroy(): void }>();
  let answers: StubAnswer[] = [];
  const receive = async (
    request: IncomingMessage | Http2ServerRequest,
    response: ServerResponse | Http2ServerResponse,
  ) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const target = String(request.headers["x-amz-target"] ?? "");
    const operation = target === "" ? `${request.method} ${request.url}` : (target.split(".").at(-1) as string);
    requests.push({ operation, body });
    const answer = (answers.length > 1 ? answers.shift() : answers[0]) ?? { status: 501, body: {} };
    const isText = typeof answer.body === "string";
    const to = response as ServerResponse;
    to.writeHead(answer.status ?? 200, { "content-type": isText ? "application/xml" : "application/x-amz-json-1.1" });
    to.end(isText ? answer.body : JSON.stringify(answer.body));
  };
  const server = http2
    ? createHttp2Server((request, response) => void receive(request, response)).on("session", (session) =>
        sessions.add(session),
      )
    : createServer((request, response) => void receive(request, response)).on("connection", (socket) =>
        sessions.add(socket),
      );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return {
    endpoint: `http://127.0.0.1:${port}`,
    requests,
    answer: (...next) => {
      answers = next;
    },
    stop: () => {
      for (const session of sessions) session.destroy();
      server.close();
    },
  };
};
