/**
 * Requests to a local engine past the SDK, as bare as they can be, for tools that ask it thousands of times. It signs
 * nothing, so it is for nothing else.
 */
import { Agent, request } from "node:http";

/** An answer as it comes over HTTP, read to its end. */
export interface WireReply {
  readonly statusCode: number;
  readonly headers: Record<string, string>;
  readonly body: Uint8Array;
}

export interface Line {
  /** Sends one request of DynamoDB's API: `operation` such as "UpdateItem", `body` as JSON. Rejects when the connection breaks. */
  send(operation: string, body: string): Promise<WireReply>;
  /** Closes idle connections; none keeps the process alive. */
  close(): void;
}

/** @param endpoint such as `http://127.0.0.1:8000` */
export const lineTo = (endpoint: string): Line => {
  const { hostname, port } = new URL(endpoint);
  const agent = new Agent({ keepAlive: true, noDelay: true });
  const send: Line["send"] = (operation, body) =>
    new Promise((resolve, reject) => {
      const headers = {
        ...signed,
        "x-amz-target": `DynamoDB_20120810.${operation}`,
        "content-length": Buffer.byteLength(body),
      };
      request({ hostname, port, method: "POST", agent, headers }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.once("error", reject);
        response.once("end", () => {
          const body = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
          resolve({
            statusCode: response.statusCode ?? 502,
            headers: response.headers as Record<string, string>,
            body,
          });
        });
      })
        .once("error", reject)
        .end(body);
    });
  return { send, close: () => agent.destroy() };
};

/** A local engine looks for a signature, and believes any. */
const signed = {
  "content-type": "application/x-amz-json-1.0",
  "x-amz-date": "20260101T000000Z",
  authorization:
    "AWS4-HMAC-SHA256 Credential=local/20260101/local/dynamodb/aws4_request, SignedHeaders=host, Signature=0",
};
