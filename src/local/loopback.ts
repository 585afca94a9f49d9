/** Ports and readiness on 127.0.0.1. A port that was free may be taken a moment later: whoever binds it tries again. */
import { get } from "node:http";
import { createServer } from "node:net";
import { setTimeout as wait } from "node:timers/promises";

/** A port of 127.0.0.1 that nobody listened on just now. */
export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      probe.close(() => resolve(port));
    });
  });

/**
 * Asks `endpoint` until it answers anything over HTTP, at most for `withinMs`; false when it never did. Gives up as
 * soon as `stillStarting` says that there is no hope.
 */
export const untilAnswering = async (
  endpoint: string,
  withinMs: number,
  stillStarting: () => boolean = () => true,
): Promise<boolean> => {
  const giveUpAt = performance.now() + withinMs;
  for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, 50)) {
    if (await answers(endpoint, giveUpAt - performance.now())) return true;
    if (!stillStarting() || performance.now() + pauseMs > giveUpAt) return false;
    await wait(pauseMs);
  }
};

const answers = (endpoint: string, withinMs: number): Promise<boolean> =>
  new Promise((resolve) => {
    const request = get(endpoint, { agent: false, timeout: Math.max(1, withinMs) }, (response) => {
      response.resume();
      resolve(true);
    });
    request.once("timeout", () => request.destroy());
    request.once("error", () => resolve(false));
  });
