/** The job over a REST API, with a webhook that is called once for each large order. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { runJob } from "cronfence";
import { createTable, dumpTable, settableClock } from "cronfence/testing";
import { afterAll, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { budgetOn, silentLog, useEngine } from "../fixture.ts";
import { gate } from "../gate.ts";

type Module = typeof import("../../handlers/sync-orders.ts");

const engine = useEngine();
let shop: Server;
let sync: Module;
let unset: Module;
/** What the shop has, and what it does. */
let orders: { number: number; customer: string; cents: number }[] = [];
let asked: string[] = [];
let hooks: { key: unknown; order: { number: number } }[] = [];
let onHook: (respond: (status: number) => void) => void;
beforeAll(async () => {
  shop = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => shop.listen(0, "127.0.0.1", resolve));
  const { port } = shop.address() as { port: number };
  unset = await import("../../handlers/sync-orders.ts");
  vi.resetModules();
  vi.stubEnv("ORDERS_URL", `http://127.0.0.1:${port}`);
  vi.stubEnv("ORDERS_WEBHOOK_URL", `http://127.0.0.1:${port}/hook`);
  sync = await import("../../handlers/sync-orders.ts");
  for (const table of sync.local.tables) await createTable(engine.client, table);
});
afterAll(() => {
  vi.unstubAllEnvs();
  shop.closeAllConnections();
  shop.close();
});
beforeEach(() => {
  asked = [];
  hooks = [];
  onHook = (respond) => respond(200);
});

const serve = async (request: IncomingMessage, response: ServerResponse) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  if (request.url === "/hook") {
    hooks.push({ key: request.headers["idempotency-key"], order: JSON.parse(body) });
    return onHook((status) => response.writeHead(status).end());
  }
  asked.push(String(request.url));
  const after = Number(new URL(String(request.url), "http://shop").searchParams.get("after"));
  response.end(JSON.stringify({ orders: orders.filter(({ number }) => number > after).slice(0, 100) }));
};

const clock = settableClock("2026-03-01T10:00:00Z", { autoAdvance: { atMostMs: 5_000 } });
const go = ({ job }: Module = sync, store = engine.store) => {
  clock.advance(600_000);
  return runJob(job, { kind: "manual" }, { store, clock, log: silentLog, random: () => 0 });
};
const order = (number: number, cents = 500) => ({ number, customer: "ann", cents });
const kept = async () => (await dumpTable(engine.client, "orders")).map(({ number }) => number);
const watermark = async () => (await engine.store.read("sync-orders", budgetOn(clock)))?.watermark;

it("does nothing without a URL", async () => {
  expect(await go(unset)).toMatchObject({ outcome: "succeeded", items: 0 });
  expect(asked).toEqual([]);
});

it("keeps every order once, page by page, and asks for what comes after the next time", async () => {
  orders = Array.from({ length: 230 }, (_, at) => order(at + 1));
  expect(await go()).toMatchObject({ outcome: "succeeded", items: 230 });
  expect(asked).toEqual([0, 100, 200, 230].map((after) => `/orders?after=${after}`));
  expect(await kept()).toEqual(orders.map(({ number }) => number));
  asked = [];
  orders.push(order(231));
  expect(await go()).toMatchObject({ outcome: "succeeded", items: 1 });
  expect(asked).toEqual(["/orders?after=230", "/orders?after=231"]);
  expect(hooks).toEqual([]);
});

it("announces a large order once, under a key of its own", async () => {
  orders.push(order(300, 100_000), order(301), order(302, 250_000));
  expect(await go()).toMatchObject({ outcome: "succeeded", items: 3 });
  expect(hooks.map(({ key, order: { number } }) => [key, number])).toEqual([
    ["sync-orders/large-order-300", 300],
    ["sync-orders/large-order-302", 302],
  ]);
});

it("tries again when the webhook fails, and parks an order that it refuses", async () => {
  orders.push(order(400, 200_000), order(401, 200_000));
  const answers = [503, 200, 400, 400, 400];
  onHook = (respond) => respond(answers.shift() as number);
  expect(await go()).toMatchObject({ outcome: "succeeded", items: 1, itemsParked: 1 });
  expect(hooks.map(({ order: { number } }) => number)).toEqual([400, 400, 401, 401, 401]);
  expect(await kept()).toEqual(expect.arrayContaining([400]));
  expect(await kept()).not.toContain(401);
  const { items } = await engine.store.parked("sync-orders", { limit: 10 }, budgetOn(clock));
  expect(items).toMatchObject([{ key: "401", item: { number: 401 }, error: { message: "the webhook answered 400" } }]);
  // Once the receiver is put right, a retry announces and keeps it.
  onHook = (respond) => respond(200);
  const retried = await runJob(
    sync.job,
    { kind: "manual", parked: "all" },
    { store: engine.store, clock, log: silentLog, random: () => 0 },
  );
  expect(retried).toMatchObject({ outcome: "succeeded", items: 1 });
  expect(await kept()).toContain(401);
});

it("calls the webhook again, under the same key, where a run died over the call, and keeps the order once", async () => {
  const called = gate();
  orders.push(order(500, 300_000));
  onHook = () => void called.pass();
  void go();
  await called.reached;
  expect(await watermark()).toBe(401);
  onHook = (respond) => respond(200);
  expect(await go()).toMatchObject({ outcome: "succeeded", items: 1 });
  expect(hooks.map(({ key }) => key)).toEqual(["sync-orders/large-order-500", "sync-orders/large-order-500"]);
  expect(await watermark()).toBe(500);
  hooks = [];
  expect(await go()).toMatchObject({ outcome: "succeeded", items: 0 });
  expect(hooks).toEqual([]);
});

it("writes nothing and calls nobody in a dry run", async () => {
  orders.push(order(600, 300_000));
  const before = await dumpTable(engine.client, "orders");
  const dry = { kind: "manual", dryRun: true } as const;
  expect(await runJob(sync.job, dry, { store: engine.store, clock, log: silentLog })).toMatchObject({
    outcome: "dry_run",
    wouldWrite: 1,
  });
  expect(hooks).toEqual([]);
  expect(await dumpTable(engine.client, "orders")).toEqual(before);
});

it("has no warnings", () => {
  expect(sync.job.warnings).toEqual([]);
});
