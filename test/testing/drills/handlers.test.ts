/** The repository's own jobs stand their drills. Little is seeded, so that all of them take seconds. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { drills } from "cronfence/testing";
import { afterAll, describe, expect, it, vi } from "vitest";
import * as dailyReport from "../../../handlers/daily-report.ts";
import * as expireCarts from "../../../handlers/expire-carts.ts";
import * as purgeSessions from "../../../handlers/purge-sessions.ts";
import * as watchdog from "../../../handlers/watchdog.ts";

const minuteMs = 60_000;

describe("expire-carts", () => {
  const seed = (now: number) => ({
    carts: Array.from({ length: 9 }, (_, at) => expireCarts.cartExpiring(now + (2 * at - 3) * minuteMs, `cart-${at}`)),
  });
  for (const { name, run } of drills(expireCarts.job, { ...expireCarts.local, seed, ticks: 2 })) it(name, run);
});

describe("daily-report", () => {
  for (const { name, run } of drills(dailyReport.job, { ...dailyReport.local, ticks: 2 })) it(name, run);
});

describe("purge-sessions", () => {
  const seed = (now: number) => ({
    sessions: Array.from({ length: 12 }, (_, at) => purgeSessions.sessionEnding(now + (at - 8) * minuteMs, `s-${at}`)),
  });
  for (const { name, run } of drills(purgeSessions.job, { ...purgeSessions.local, seed, ticks: 2, points: 5 }))
    it(name, run);
});

describe("sync-orders", async () => {
  const orders = [120_000, 500, 250_000].map((cents, at) => ({ number: at + 1, customer: "ann", cents }));
  /** By the key that each call brought: a receiver that honours it counts a repetition once. */
  const announced = new Map<unknown, number>();
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    if (request.url === "/hook") {
      announced.set(request.headers["idempotency-key"], JSON.parse(body).number);
      return response.end();
    }
    const after = Number(new URL(String(request.url), "http://shop").searchParams.get("after"));
    response.end(JSON.stringify({ orders: orders.filter(({ number }) => number > after).slice(0, 2) }));
  };
  const shop = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => shop.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(shop.address() as { port: number }).port}`;
  vi.stubEnv("ORDERS_URL", url);
  vi.stubEnv("ORDERS_WEBHOOK_URL", `${url}/hook`);
  afterAll(() => {
    vi.unstubAllEnvs();
    shop.closeAllConnections();
    shop.close();
  });
  // The handler reads its URLs when it is loaded.
  const { job, local } = await import("../../../handlers/sync-orders.ts?drilled" as "../../../handlers/sync-orders.ts");
  const tests = drills(job, {
    ...local,
    seed: () => announced.clear(),
    effects: () => [...announced.values()],
    ticks: 2,
    points: 5,
  });
  for (const { name, run } of tests) it(name, run);

  it("announces the large orders", () => expect([...announced.values()].sort()).toEqual([1, 3]));
});

describe("watchdog", () => {
  for (const { name, run } of drills(watchdog.job, { writesNothing: true, ticks: 2, points: 2 })) it(name, run);
});
