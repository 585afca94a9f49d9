/**
 * Kept-open connections to a local engine, for tools that ask it thousands of times: about a third of the time that
 * `node:http` takes. One request at a time on each connection; as many connections as are asked for at once.
 *
 * It speaks as much HTTP/1.1 as DynamoDB's local engines do, signs nothing, and isn't for anything else.
 */
import { connect, type Socket } from "node:net";

/** An answer as it comes over HTTP, read to its end. */
export interface WireReply {
  readonly statusCode: number;
  readonly headers: Record<string, string>;
  readonly body: Uint8Array;
}

export interface Line {
  /** Sends one request of DynamoDB's API: `operation` such as "UpdateItem", `body` as JSON. Rejects when the connection breaks. */
  send(operation: string, body: string): Promise<WireReply>;
  /** Closes what is idle. */
  close(): void;
}

/** @param endpoint such as `http://127.0.0.1:8000` */
export const lineTo = (endpoint: string): Line => {
  const { hostname, port, host } = new URL(endpoint);
  const idle: Socket[] = [];
  const open = (): Socket => {
    const socket = connect(Number(port || 80), hostname);
    socket.setNoDelay(true);
    // Nobody waits for it while it is idle.
    socket.on("error", () => {});
    socket.once("close", () => {
      const at = idle.indexOf(socket);
      if (at >= 0) idle.splice(at, 1);
    });
    return socket;
  };
  return {
    send: async (operation, body) => {
      const socket = idle.pop() ?? open();
      socket.ref();
      const { reply, keep } = await exchange(socket, requestText(host, operation, body));
      if (keep) {
        // A process may end while connections are idle.
        socket.unref();
        idle.push(socket);
      } else socket.destroy();
      return reply;
    },
    close: () => {
      for (const socket of idle.splice(0)) socket.destroy();
    },
  };
};

/** A local engine looks for a signature, and believes any. */
const requestText = (host: string, operation: string, body: string): string =>
  `POST / HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/x-amz-json-1.0\r\n` +
  `x-amz-target: DynamoDB_20120810.${operation}\r\nx-amz-date: 20260101T000000Z\r\n` +
  "authorization: AWS4-HMAC-SHA256 Credential=local/20260101/local/dynamodb/aws4_request, SignedHeaders=host, Signature=0\r\n" +
  `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

interface Exchanged {
  readonly reply: WireReply;
  /** The connection can take another request. */
  readonly keep: boolean;
}

const exchange = (socket: Socket, request: string): Promise<Exchanged> =>
  new Promise((resolve, reject) => {
    let received: Buffer = Buffer.alloc(0);
    const finish = (end: () => void) => {
      socket.off("data", onData);
      socket.off("close", onClose);
      end();
    };
    const onData = (chunk: Buffer) => {
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
      const exchanged = readReply(received);
      if (exchanged !== undefined) finish(() => resolve(exchanged));
    };
    const onClose = () =>
      finish(() => reject(Object.assign(new Error("the local engine closed the connection"), { code: "ECONNRESET" })));
    socket.on("data", onData);
    socket.once("close", onClose);
    socket.write(request);
  });

/** The reply at the beginning of `bytes`, once all of it is there. */
const readReply = (bytes: Buffer): Exchanged | undefined => {
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd < 0) return undefined;
  const [status = "", ...lines] = bytes.toString("latin1", 0, headEnd).split("\r\n");
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(":");
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  const rest = bytes.subarray(headEnd + 4);
  const body = headers["transfer-encoding"] === "chunked" ? readChunks(rest) : readLength(rest, headers);
  if (body === undefined) return undefined;
  const keep = headers.connection?.toLowerCase() !== "close";
  return { reply: { statusCode: Number(status.split(" ")[1]), headers, body }, keep };
};

const readLength = (bytes: Buffer, headers: Record<string, string>): Uint8Array | undefined => {
  const length = Number(headers["content-length"] ?? 0);
  return bytes.length < length ? undefined : bytes.subarray(0, length);
};

const readChunks = (bytes: Buffer): Uint8Array | undefined => {
  const chunks: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = bytes.indexOf("\r\n", at);
    if (lineEnd < 0) return undefined;
    const size = Number.parseInt(bytes.toString("latin1", at, lineEnd), 16);
    const end = lineEnd + 2 + size;
    if (bytes.length < end + 2) return undefined;
    if (size === 0) return Buffer.concat(chunks);
    chunks.push(bytes.subarray(lineEnd + 2, end));
    at = end + 2;
  }
};
