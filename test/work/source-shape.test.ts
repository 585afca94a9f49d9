import { TransactWriteItemsCommand } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import {
  type DynamoStore,
  defineJob,
  type Job,
  type Json,
  type RunInfo,
  type RunReport,
  runJob,
  type Write,
} from "cronfence";
import { queryAfter, type Source } from "cronfence/sources";
import { createTable, dumpTable, type SettableClock, settableClock } from "cronfence/testing";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { budgetOn, freshName, silentLog, useEngine } from "../fixture.ts";
import { gate, never } from "../gate.ts";
import { arraySource } from "./array-source.ts";

const engine = useEngine("results");
afterEach(() => engine.proxy.reset());

const now = Date.UTC(2026, 2, 1, 11, 25);

const setting = <Item>(
  source: Source<Item>,
  process: (item: Item, run: RunInfo) => unknown,
  {
    name = freshName(),
    clock = settableClock(now),
    store,
    ...options
  }: Record<string, unknown> & {
    name?: string;
    clock?: SettableClock;
    store?: DynamoStore;
  } = {},
) => {
  const job = defineJob({ timeout: "5m", ...options, name, source, process } as unknown as Parameters<
    typeof defineJob
  >[0]) as Job;
  const deps = { store: store ?? engine.faulty({ requestTimeoutMs: 10_000 }), clock, log: silentLog, random: () => 0 };
  let tick = now;
  return {
    name,
    clock,
    go: (): Promise<RunReport> => runJob(job, { kind: "schedule", tick: tick++ }, deps),
    watermark: async () => (await engine.store.read(name, budgetOn(clock)))?.watermark,
    state: async () => (await engine.store.read(name, budgetOn(clock)))!,
    records: async () => (await engine.store.runs(name, { limit: 50 }, budgetOn(clock))).runs,
    rows: async () =>
      (await dumpTable(engine.client, "results"))
        .map(({ id }) => String(id))
        .filter((id) => id.startsWith(`${name}/`))
        .map((id) => id.slice(name.length + 1)),
  };
};

/** A row that a second write of it would be refused by; failing that, the item would be skipped: so it is no condition. */
const row = (run: { readonly job: string }, what: string | number): Write => ({
  Update: {
    TableName: "results",
    Key: { id: `${run.job}/${what}` },
    UpdateExpression: "ADD times :one",
    ExpressionAttributeValues: { ":one": 1 },
  },
});
const once = (item: string | number, run: RunInfo) => [row(run, item)];
const numbers = (count: number) => Array.from({ length: count }, (_, at) => String(at).padStart(4, "0"));

/** Each transaction as the number of its actions and the watermark that it sets. */
const transactions = () =>
  engine.proxy.requests
    .filter(({ operation }) => operation === "TransactWriteItems")
    .map(({ body }) => {
      const mark = body.TransactItems[0].Update.ExpressionAttributeValues[":watermark"]?.S;
      return [body.TransactItems.length, mark === undefined ? undefined : JSON.parse(mark)];
    });

/** Every row of the job was written once. */
const expectOnce = async (name: string, count: number) => {
  const written = (await dumpTable(engine.client, "results")).filter(({ id }) => String(id).startsWith(`${name}/`));
  expect(written.filter(({ times }) => times !== 1)).toEqual([]);
  expect(written).toHaveLength(count);
};

describe("A source job", () => {
  it("packs items into transactions of 99 writes, each with the last item's cursor as watermark", async () => {
    const { go, name, watermark } = setting(arraySource(numbers(250)), once);
    await engine.store.create(name, now - 1, budgetOn(settableClock(now)));
    expect(await go()).toMatchObject({ outcome: "succeeded", items: 250, commits: 3 });
    // 99 writes beside the control item; the last ones go with the end of the run and its record.
    expect(transactions()).toEqual([
      [100, 99],
      [100, 198],
      [54, 250],
    ]);
    expect(engine.proxy.requests).toHaveLength(4);
    await expectOnce(name, 250);
    expect(await watermark()).toBe(250);
  });

  it("goes on after the watermark, and takes two requests when there is nothing", async () => {
    const items = numbers(3);
    const source = arraySource(items);
    const { go, name } = setting(source, once);
    await go();
    items.push("0003", "0004");
    expect(await go()).toMatchObject({ items: 2 });
    engine.proxy.reset();
    expect(await go()).toMatchObject({ outcome: "succeeded", items: 0, commits: 0 });
    expect(engine.proxy.requests.map(({ operation }) => operation)).toEqual(["UpdateItem", "TransactWriteItems"]);
    expect(source.asked).toEqual([undefined, 3, 5]);
    await expectOnce(name, 5);
  });

  it("never splits an item's writes over two transactions", async () => {
    const { go, name } = setting(arraySource(numbers(5)), (item, run) =>
      Array.from({ length: 40 }, (_, at) => row(run, `${item}/${at}`)),
    );
    expect(await go()).toMatchObject({ items: 5 });
    expect(transactions()).toEqual([
      [81, 2],
      [81, 4],
      [42, 5],
    ]);
    await expectOnce(name, 200);
  });

  it("keeps each transaction under 4 MB", async () => {
    const text = "x".repeat(300 * 1024);
    const { go, rows } = setting(arraySource(numbers(15)), (item, run) => [
      { Put: { TableName: "results", Item: { id: `${run.job}/${item}`, text } } },
    ]);
    expect(await go()).toMatchObject({ outcome: "succeeded", items: 15 });
    expect(transactions()).toEqual([
      [14, 13],
      [4, 15],
    ]);
    expect(await rows()).toHaveLength(15);
  });

  it("parts items that touch the same thing, which a transaction may touch only once", async () => {
    const { go, name } = setting(arraySource(["a", "b", "a", "c"]), (item, run) => [row(run, item)]);
    expect(await go()).toMatchObject({ outcome: "succeeded", items: 4 });
    expect(transactions().map(([, mark]) => mark)).toEqual([2, 4]);
    const written = (await dumpTable(engine.client, "results")).filter(({ id }) => String(id).startsWith(name));
    expect(written.map(({ id, times }) => [String(id).slice(-1), times])).toEqual([
      ["a", 2],
      ["b", 1],
      ["c", 1],
    ]);
  });

  it("passes over items with nothing to write, and the watermark with them", async () => {
    const { go, watermark, rows } = setting(arraySource(numbers(2_500)), (item, run) =>
      item === "0007" ? [row(run, item)] : [],
    );
    expect(await go()).toMatchObject({ outcome: "succeeded", items: 2_500, commits: 1 });
    expect(transactions()).toEqual([[3, 2_500]]);
    expect(await watermark()).toBe(2_500);
    expect(await rows()).toEqual(["0007"]);
  });

  it("waits for what process promises, in order", async () => {
    const order: string[] = [];
    const { go, name } = setting(arraySource(["a", "b", "c"]), async (item, run) => {
      await new Promise(setImmediate);
      order.push(item);
      return [row(run, item)];
    });
    expect(await go()).toMatchObject({ outcome: "succeeded", items: 3 });
    expect(order).toEqual(["a", "b", "c"]);
    await expectOnce(name, 3);
  });

  it("reads the next page while the commit before it is on its way", async () => {
    await Promise.all(
      Array.from({ length: 6 }, (_, part) =>
        engine.client.send(
          new TransactWriteItemsCommand({
            TransactItems: Array.from({ length: 50 }, (_, at) => ({
              Put: { TableName: "orders", Item: marshall({ shop: "eu", at: 1 + part * 50 + at }) },
            })),
          }),
        ),
      ),
    );
    const source = queryAfter<{ at: number }>({
      table: "orders",
      partition: { shop: "eu" },
      sort: "at",
      time: "none",
      pageSize: 250,
    });
    const { go, name } = setting(source, ({ at }, run) => [row(run, at)]);
    const replying = gate();
    const queries = [engine.proxy.next("Query", {}), engine.proxy.next("Query", {})];
    engine.proxy.next("TransactWriteItems", { after: () => replying.pass() });
    const running = go();
    await replying.reached;
    // The first commit has no reply yet, so the first page's 250 items can't all be packed; the second is asked for.
    await queries[1]?.hit;
    const operations = engine.proxy.requests.map(({ operation }) => operation);
    expect(operations.filter((operation) => operation === "TransactWriteItems")).toHaveLength(1);
    replying.open();
    expect(await running).toMatchObject({ outcome: "succeeded", items: 300 });
    await expectOnce(name, 300);
  });
  beforeAll(() =>
    createTable(engine.client, { name: "orders", key: { hash: "shop", range: "at", types: { at: "N" } } }),
  );

  it("sends one commit after the other, each before more than one further is packed", async () => {
    const processed: number[] = [];
    let count = 0;
    const { go } = setting(arraySource(numbers(500), 99), (item, run) => {
      count += 1;
      return [row(run, item)];
    });
    engine.proxy.when("TransactWriteItems", { before: () => void processed.push(count) });
    await go();
    // At the arrival of each commit at most its own items, the next transaction's, and one more have been processed.
    for (const [at, by] of processed.entries()) expect(by).toBeLessThanOrEqual((at + 2) * 99 + 1);
    expect(transactions().map(([, mark]) => mark)).toEqual([99, 198, 297, 396, 495, 500]);
  });
});

describe("An item that can't be done", () => {
  it("fails the run with everything before it committed, and the watermark right before it", async () => {
    let poison: string | undefined = "0149";
    const { go, watermark, name, state } = setting(arraySource(numbers(250)), (item, run) => {
      if (item === poison) throw new Error("this cart is broken");
      return [row(run, item)];
    });
    expect(await go()).toMatchObject({ outcome: "failed", items: 149, error: { message: "this cart is broken" } });
    expect(await watermark()).toBe(149);
    await expectOnce(name, 149);
    expect(await state()).not.toHaveProperty("tick");
    expect(await go()).toMatchObject({ outcome: "failed", items: 0 });
    poison = undefined;
    expect(await go()).toMatchObject({ outcome: "succeeded", items: 101 });
    await expectOnce(name, 250);
  });

  it("may be the first: nothing is committed, and the watermark stays", async () => {
    const { go, watermark, rows } = setting(arraySource(numbers(3)), () => Promise.reject(new Error("broken")));
    expect(await go()).toMatchObject({ outcome: "failed", items: 0, commits: 0 });
    expect(await watermark()).toBeUndefined();
    expect(await rows()).toEqual([]);
  });

  it.each([
    [
      "100 writes",
      (run: RunInfo) => Array.from({ length: 100 }, (_, at) => row(run, at)),
      /returned 100 writes, and one item takes at most 99/,
    ],
    [
      "a write to the control table",
      () => [{ Delete: { TableName: "control-table", Key: { id: "a" } } }],
      /write 0 \(Delete\) goes to "control-table", the control table/,
    ],
    [
      "one thing twice",
      (run: RunInfo) => [row(run, 1), row(run, 1)],
      /write 1 touches the same item of "results" as write 0/,
    ],
    ["no array", () => ({ Put: {} }), /must return an array of writes, and returned object/],
    ["nothing", () => undefined, /must return an array of writes, and returned undefined/],
    ["null", () => null, /must return an array of writes, and returned null/],
  ])("is named by its cursor when process returns %s", async (_, writes, says) => {
    const { go, watermark, rows } = setting(arraySource(["a", "b", "c"]), (item, run) =>
      item === "c" ? writes(run) : [row(run, item)],
    );
    const report = await go();
    expect(report).toMatchObject({ outcome: "failed", items: 2, error: { code: "COMMIT_REFUSED" } });
    expect(report.error?.message).toMatch(/^an array: process, for the item at cursor 3, /);
    expect(report.error?.message).toMatch(says);
    expect(await watermark()).toBe(2);
    expect(await rows()).toEqual(["a", "b"]);
  });

  it("has its commit rejected: no later one goes out, and the watermark stays before it", async () => {
    const { go, watermark, name } = setting(arraySource(numbers(250), 50), (item, run) => [
      item === "0120" ? { Update: { ...row(run, item).Update!, UpdateExpression: "ADD #times :one" } } : row(run, item),
    ]);
    expect(await go()).toMatchObject({ outcome: "failed" });
    expect(await watermark()).toBe(99);
    await expectOnce(name, 99);
  });
});

describe("A source job stops at", () => {
  const bounds: [string, object, number[], number][] = [
    ["limit.items", { items: 100 }, [100, 200, 250], 3],
    ["limit.items", { items: 30 }, [30, 60, 90, 120, 150, 180, 210, 240, 250], 9],
    ["limit.transactions", { transactions: 1 }, [99, 198, 250], 3],
    ["limit.transactions", { transactions: 2 }, [198, 250], 2],
    ["limit.pages", { pages: 2 }, [140, 250], 2],
    ["limit.pages", { pages: 1 }, [70, 140, 210, 250], 4],
  ];
  it.each(bounds)("%s %j with a backlog, and the next runs go on from there", async (bound, limit, marks, runs) => {
    const { go, name, watermark } = setting(arraySource(numbers(250), 70), once, { limit });
    const seen: unknown[] = [];
    for (let at = 1; at <= runs; at += 1) {
      const report = await go();
      seen.push(await watermark());
      if (at === runs) expect(report).toMatchObject({ outcome: "succeeded" });
      else
        expect(report).toMatchObject({ outcome: "capped", backlog: expect.stringContaining(`(stopped by ${bound})`) });
    }
    expect(seen).toEqual(marks);
    await expectOnce(name, 250);
  });

  it("several limits, whichever comes first", async () => {
    const { go, watermark } = setting(arraySource(numbers(250), 70), once, {
      limit: { items: 80, pages: 3, transactions: 5 },
    });
    expect(await go()).toMatchObject({ outcome: "capped", items: 80, backlog: expect.stringContaining("limit.items") });
    expect(await watermark()).toBe(80);
  });

  it("no limit that is just enough", async () => {
    const { go } = setting(arraySource(numbers(100), 50), once, { limit: { items: 100, pages: 2, transactions: 2 } });
    expect(await go()).toMatchObject({ outcome: "succeeded", items: 100 });
  });

  it("completes its tick all the same, because the watermark holds the rest", async () => {
    const { go, state } = setting(arraySource(numbers(10)), once, { limit: { items: 4 } });
    expect(await go()).toMatchObject({ outcome: "capped" });
    expect(await state()).toMatchObject({ tick: now, watermark: 4 });
  });

  it("its deadline in good time, with what was packed committed", async () => {
    let slow = true;
    const job = setting(
      arraySource(numbers(250)),
      (item, run) => {
        if (item === "0150" && slow) job.clock.advance(299_950);
        return [row(run, item)];
      },
      { ttl: "10m" },
    );
    expect(await job.go()).toMatchObject({
      outcome: "capped",
      items: 150,
      backlog: expect.stringContaining("the deadline"),
    });
    expect(await job.watermark()).toBe(150);
    slow = false;
    expect(await job.go()).toMatchObject({ outcome: "succeeded", items: 100 });
    await expectOnce(job.name, 250);
  });

  it("once it must, and commits nothing more then", async () => {
    const stopping = gate();
    const job = setting(arraySource(numbers(5)), async (item, run) => {
      if (item === "0003") await stopping.pass();
      return [row(run, item)];
    });
    const running = job.go();
    await stopping.reached;
    job.clock.advance(300_000);
    expect(await running).toMatchObject({ outcome: "timed_out", items: 0 });
    const sent = engine.proxy.requests.length;
    stopping.open();
    await new Promise(setImmediate);
    expect(engine.proxy.requests).toHaveLength(sent);
    expect(await job.rows()).toEqual([]);
  });
});

describe("A crash between two transactions", () => {
  it("loses nothing and repeats nothing: the next run goes on after the last commit", async () => {
    const crashing = gate();
    let sent = 0;
    const dying: DynamoStore = {
      ...engine.store,
      commit: (...request) => (sent++ < 2 ? engine.store.commit(...request) : crashing.pass().then(never)),
    };
    const dead = setting(arraySource(numbers(500)), once, { store: dying });
    void dead.go();
    await crashing.reached;
    const next = setting(arraySource(numbers(500)), once, { name: dead.name, clock: settableClock(now + 60_000) });
    expect(await next.go()).toMatchObject({ outcome: "succeeded", items: 302 });
    await expectOnce(dead.name, 500);
    expect(await next.records()).toMatchObject([
      { outcome: "succeeded", watermarkBefore: 198, watermarkAfter: 500 },
      { outcome: "crashed", commits: 2, items: 198 },
    ]);
  });
});

describe("A source that doesn't keep to its contract is stopped:", () => {
  const broken = (read: Source<string>["read"]): Source<string> => ({ name: "broken", read });
  const cursors = (...all: (Json | undefined)[]) =>
    all.map((cursor, at) => ({ item: String(at), cursor: cursor as Json }));

  it.each<[string, Source<string>["read"], RegExp]>([
    [
      "a page with no items that isn't the last",
      async () => ({ items: [], done: false }),
      /^broken: a page has no items and isn't the last one/,
    ],
    [
      "a cursor twice in a page",
      async () => ({ items: cursors(1, 2, 2), done: true }),
      /^broken: cursor 2 comes twice, and must be unique/,
    ],
    [
      "a page that begins with the cursor it was to go on after",
      async ({ after }) => ({ items: cursors(after ?? 1, 2), done: false }),
      /^broken: cursor 2 comes twice|^broken: cursor 1 comes twice/,
    ],
    [
      "the same page again and again",
      async () => ({ items: cursors({ at: 1 }), done: false }),
      /^broken: cursor {"at":1} comes twice/,
    ],
    [
      "an item without a cursor",
      async () => ({ items: cursors(1, undefined), done: true }),
      /^broken: an item has no cursor/,
    ],
  ])("%s", async (_, read, says) => {
    const { go } = setting(broken(read), once);
    const report = await go();
    expect(report).toMatchObject({ outcome: "failed", error: { name: "SourceError", code: "SOURCE" } });
    expect(report.error?.message).toMatch(says);
  });

  it("cursors that aren't JSON, or too large for a watermark", async () => {
    for (const cursor of [new Date(now) as unknown as Json, Number.NaN, "x".repeat(9_000)]) {
      const { go, rows } = setting(
        broken(async () => ({ items: cursors(cursor), done: true })),
        once,
      );
      expect(await go()).toMatchObject({ outcome: "failed", error: { message: expect.stringContaining("watermark") } });
      expect(await rows()).toEqual([]);
    }
  });

  it("more items than were wanted are left for the next page", async () => {
    const greedy = broken(async ({ after }) => ({
      items: cursors(1, 2, 3, 4, 5).slice((after as number | undefined) ?? 0),
      done: true,
    }));
    const { go, name, watermark } = setting(greedy, once, { limit: { items: 2 } });
    expect(await go()).toMatchObject({ outcome: "capped", items: 2 });
    expect(await watermark()).toBe(2);
    await go();
    expect(await go()).toMatchObject({ outcome: "succeeded", items: 1 });
    await expectOnce(name, 5);
  });

  it("whatever its read throws fails the run, with everything before it committed", async () => {
    const failing = broken(async ({ after }) => {
      if (after !== undefined) throw new Error("the API is down");
      return { items: cursors(1, 2), done: false };
    });
    const { go, watermark, name } = setting(failing, once);
    expect(await go()).toMatchObject({ outcome: "failed", items: 2, error: { message: "the API is down" } });
    expect(await watermark()).toBe(2);
    await expectOnce(name, 2);
  });
});
