/** A dead man's switch: a local server that keeps what it was asked for, and can be made to fail. */
import { createServer, type ServerResponse } from "node:http";

export interface PingServer {
  readonly url: string;
  readonly host: string;
  /** Path and query of each request, in order. */
  readonly pings: string[];
  /** Resolves when that many requests have come. */
  came(count: number): Promise<void>;
  /** How the next requests are answered. @default 200 for all */
  answer(...statuses: (number | "hang" | "reset")[]): void;
  stop(): Promise<void>;
}

export const startPingServer = async (): Promise<PingServer> => {
  const pings: string[] = [];
  let answers: (number | "hang" | "reset")[] = [];
  let waiting: { count: number; resolve: () => void }[] = [];
  const reply = (response: ServerResponse, how: number | "hang" | "reset") => {
    if (how === "hang") return;
    if (how === "reset") response.destroy();
    else response.writeHead(how).end("OK");
  };
  const server = createServer((request, response) => {
    pings.push(request.url ?? "");
    reply(response, answers.shift() ?? 200);
    for (const { count, resolve } of waiting) if (pings.length >= count) resolve();
    waiting = waiting.filter(({ count }) => pings.length < count);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    host: `127.0.0.1:${port}`,
    pings,
    came: (count) =>
      new Promise((resolve) => {
        if (pings.length >= count) resolve();
        else waiting.push({ count, resolve });
      }),
    answer: (...statuses) => {
      answers = statuses;
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
