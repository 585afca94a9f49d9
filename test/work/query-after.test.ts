import { type DynamoDBClient, TransactWriteItemsCommand } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { defineJob, type InvalidOptionsError, type Json, runJob } from "cronfence";
import { type QueryAfterOptions, queryAfter, type Source } from "cronfence/sources";
import { createTable, dumpTable, type SettableClock, settableClock } from "cronfence/testing";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { budgetOn, freshName, silentLog, useEngine } from "../fixture.ts";

const engine = useEngine();
afterEach(() => engine.proxy.reset());
beforeAll(async () => {
  await createTable(engine.client, {
    name: "carts",
    key: { hash: "id" },
    indexes: {
      byExpiry: { hash: "shop", range: "expiresAtId" },
      byTime: { hash: "shop", range: "expiresAt", types: { expiresAt: "N" } },
    },
  });
  await createTable(engine.client, { name: "events", key: { hash: "shop", range: "at" } });
});

const start = "2026-03-01T11:25:00.000Z";
const at = (seconds: number) => new Date(Date.parse(start) + seconds * 1_000).toISOString();

type Row = Record<string, unknown>;

const put = async (client: DynamoDBClient, table: string, rows: readonly Row[]) => {
  for (let from = 0; from < rows.length; from += 100) {
    const batch = rows.slice(from, from + 100);
    await client.send(
      new TransactWriteItemsCommand({
        TransactItems: batch.map((row) => ({ Put: { TableName: table, Item: marshall(row) } })),
      }),
    );
  }
};

/** All that a source gives, page after page, on a clock. */
const readAll = async <Item>(
  source: Source<Item>,
  clock: SettableClock,
  { after, limit }: { after?: Json; limit?: number } = {},
) => {
  const pages: (readonly { item: Item; cursor: Json }[])[] = [];
  let from = after;
  for (;;) {
    const page = await source.read({
      after: from,
      limit: limit ?? source.pageSize ?? 1_000,
      signal: new AbortController().signal,
      budget: budgetOn(clock),
      tables: engine.faulty({ requestTimeoutMs: 10_000 }).tables,
    });
    pages.push(page.items);
    from = page.items.at(-1)?.cursor ?? from;
    if (page.done)
      return { items: pages.flat().map(({ item }) => item), cursor: from, pages: pages.map(({ length }) => length) };
  }
};

const cartsOf = (shop: string, options: Partial<QueryAfterOptions> = {}) =>
  queryAfter<{ id: string; expiresAtId: string }>({
    table: "carts",
    index: "byExpiry",
    partition: { shop },
    sort: "expiresAtId",
    ...options,
  });
const eventsOf = (shop: string, options: Partial<QueryAfterOptions> = {}) =>
  queryAfter<{ at: string }>({ table: "events", partition: { shop }, sort: "at", ...options });

const cart = (shop: string, id: string, seconds: number) => ({
  id: `${shop}/${id}`,
  shop,
  expiresAtId: `${at(seconds)}#${id}`,
});
const idsOf = (items: readonly { id: string }[]) => items.map(({ id }) => id.split("/")[1]);

describe("queryAfter", () => {
  it.each([
    ["an index", "byExpiry"],
    ["a table", undefined],
  ])("gives the items of one partition of %s in the order of the sort key", async (_, index) => {
    const shop = freshName();
    const clock = settableClock(start);
    const seconds = [-5, -50, -1, -30, -20];
    await put(
      engine.client,
      "carts",
      seconds.map((second) => cart(shop, `c${-second}`, second)),
    );
    await put(engine.client, "carts", [cart(`${shop}-other`, "x", -10)]);
    await put(
      engine.client,
      "events",
      seconds.map((second) => ({ shop, at: at(second) })),
    );
    const source = index === undefined ? eventsOf(shop) : cartsOf(shop);
    const sorts = (await readAll<Row>(source as Source<Row>, clock)).items.map((item) => item.at ?? item.expiresAtId);
    expect(sorts).toHaveLength(5);
    expect(sorts).toEqual([...sorts].sort());
    const [query] = engine.proxy.requests;
    // An index can't be read consistently; a table is.
    expect(query?.body).toMatchObject(index === undefined ? { ConsistentRead: true } : { IndexName: "byExpiry" });
    expect(query?.body.ConsistentRead).toBe(index === undefined ? true : undefined);
  });

  it("goes on after a cursor, and page by page, each item once", async () => {
    const shop = freshName();
    const clock = settableClock(start);
    await put(
      engine.client,
      "carts",
      Array.from({ length: 25 }, (_, i) => cart(shop, `c${String(i).padStart(2, "0")}`, i - 100)),
    );
    const whole = await readAll(cartsOf(shop), clock);
    expect(whole.pages).toEqual([25]);
    expect(idsOf(whole.items)).toEqual(Array.from({ length: 25 }, (_, i) => `c${String(i).padStart(2, "0")}`));
    for (const pageSize of [1, 2, 7, 24, 25, 26]) {
      const paged = await readAll(cartsOf(shop, { pageSize }), clock);
      expect(paged.items).toEqual(whole.items);
      expect(Math.max(...paged.pages)).toBeLessThanOrEqual(pageSize);
      // No page is asked for only to find that nothing is left.
      expect(paged.pages).toHaveLength(Math.ceil(25 / pageSize));
    }
    const rest = await readAll(cartsOf(shop), clock, { after: whole.items[9]?.expiresAtId as Json });
    expect(rest.items).toEqual(whole.items.slice(10));
    expect((await readAll(cartsOf(shop), clock, { after: whole.cursor as Json })).items).toEqual([]);
  });

  it("never takes more than it is asked for", async () => {
    const shop = freshName();
    await put(
      engine.client,
      "carts",
      Array.from({ length: 5 }, (_, i) => cart(shop, `c${i}`, i - 100)),
    );
    const { pages } = await readAll(cartsOf(shop), settableClock(start), { limit: 2 });
    expect(pages).toEqual([2, 2, 1]);
  });

  it("reads on where a page of DynamoDB's own ends, at 1 MB", async () => {
    const shop = freshName();
    const text = "x".repeat(350 * 1024);
    const rows = Array.from({ length: 8 }, (_, i) => ({ ...cart(shop, `c${i}`, i - 100), text }));
    for (const row of rows) await put(engine.client, "carts", [row]);
    const { items, pages } = await readAll(cartsOf(shop), settableClock(start));
    expect(idsOf(items)).toEqual(["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"]);
    expect(pages.length).toBeGreaterThan(2);
    const replies = engine.proxy.requests.map(({ replies: [reply] }) => Buffer.byteLength(JSON.stringify(reply?.body)));
    expect(Math.max(...replies)).toBeLessThan(1.2 * 1024 * 1024);
  });

  it("tries again when DynamoDB is busy", async () => {
    const shop = freshName();
    await put(engine.client, "carts", [cart(shop, "c", -5)]);
    const clock = settableClock(start, { autoAdvance: { atMostMs: 2_000 } });
    engine.proxy.when("Query", "throttle", { times: 2 });
    engine.proxy.when("Query", "500-before", { times: 1 });
    expect((await readAll(cartsOf(shop), clock)).items).toHaveLength(1);
    expect(engine.proxy.requests).toHaveLength(4);
  });

  it("fails with the table's name where there is none", async () => {
    const source = queryAfter({ table: "no-such-table", partition: { shop: "eu" }, sort: "at" });
    await expect(readAll(source, settableClock(start))).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
      message: expect.stringContaining('table "no-such-table"'),
    });
  });

  it("fails where the run's store keeps no tables", async () => {
    const clock = settableClock(start);
    const { tables: _, ...store } = engine.store;
    const job = defineJob({ name: freshName(), timeout: "1m", source: eventsOf("eu"), process: () => [] });
    expect(await runJob(job, { kind: "manual" }, { store, clock, log: silentLog })).toMatchObject({
      outcome: "failed",
      error: { code: "SOURCE", message: expect.stringContaining("no DynamoDB tables to read") },
    });
  });
});

describe("queryAfter reads only rows whose time has come", () => {
  it("and, with settle, only those that had come by then; the others later", async () => {
    const shop = freshName();
    const clock = settableClock(start);
    await put(engine.client, "carts", [cart(shop, "old", -40), cart(shop, "young", -20), cart(shop, "future", 10)]);
    const seen = async (settle?: string) =>
      idsOf((await readAll(cartsOf(shop, settle === undefined ? {} : { settle }), clock)).items);
    expect(await seen()).toEqual(["old", "young"]);
    expect(await seen("20s")).toEqual(["old"]);
    expect(await seen("30s")).toEqual(["old"]);
    expect(await seen("41s")).toEqual([]);
    clock.advance(11_000);
    expect(await seen("30s")).toEqual(["old", "young"]);
    expect(await seen()).toEqual(["old", "young", "future"]);
  });

  it("whether the time is in ISO form, milliseconds or seconds", async () => {
    const shop = freshName();
    const clock = settableClock(start);
    const ms = Date.parse(start);
    const second = Math.floor(ms / 1_000);
    const numeric = (options: Partial<QueryAfterOptions>, suffix: string) =>
      readAll(
        queryAfter<{ id: string }>({
          table: "carts",
          index: "byTime",
          partition: { shop: `${shop}${suffix}` },
          sort: "expiresAt",
          ...options,
        }),
        clock,
      ).then(({ items }) => idsOf(items));
    const numericCart = (suffix: string, id: string, expiresAt: number) => ({
      id: `${shop}${suffix}/${id}`,
      shop: `${shop}${suffix}`,
      expiresAt,
    });
    await put(engine.client, "carts", [
      numericCart("ms", "past", ms - 1),
      numericCart("ms", "now", ms),
      numericCart("ms", "next", ms + 1),
      numericCart("s", "past", second - 1),
      numericCart("s", "now", second),
      numericCart("s", "next", second + 1),
    ]);
    expect(await numeric({ time: "milliseconds" }, "ms")).toEqual(["past", "now"]);
    expect(await numeric({ time: "milliseconds", settle: 1 }, "ms")).toEqual(["past"]);
    expect(await numeric({ time: "seconds" }, "s")).toEqual(["past", "now"]);
    expect(await numeric({ time: "seconds", settle: "1s" }, "s")).toEqual(["past"]);
    expect(await numeric({ time: "none" }, "s")).toEqual(["past", "now", "next"]);
    await put(engine.client, "events", [
      { shop, at: at(-1) },
      { shop, at: at(0) },
      { shop, at: at(1) },
    ]);
    expect((await readAll(eventsOf(shop), clock)).items.map(({ at: time }) => time)).toEqual([at(-1), at(0)]);
    expect((await readAll(eventsOf(shop, { time: "none" }), clock)).items).toHaveLength(3);
  });

  it("and nothing when the clock was set back behind the cursor", async () => {
    const shop = freshName();
    await put(engine.client, "carts", [cart(shop, "a", -20), cart(shop, "b", -10)]);
    const { cursor } = await readAll(cartsOf(shop), settableClock(start));
    const keyed = await readAll(cartsOf(shop, { key: ["id"] }), settableClock(start));
    engine.proxy.reset();
    const early = settableClock(at(-15));
    expect((await readAll(cartsOf(shop), early, { after: cursor as Json })).items).toEqual([]);
    // DynamoDB refuses to start behind the last item that it may give.
    expect((await readAll(cartsOf(shop, { key: ["id"] }), early, { after: keyed.cursor as Json })).items).toEqual([]);
    expect(engine.proxy.requests).toEqual([]);
  });

  it("case 20: a row that appears below the newest is still found, if it isn't later than settle", async () => {
    const shop = freshName();
    const clock = settableClock(start);
    const done: string[] = [];
    const job = defineJob({
      name: freshName(),
      timeout: "1m",
      source: eventsOf(shop, { settle: "5s" }),
      process: (event) => {
        done.push(event.at);
        return [];
      },
    });
    const marks: unknown[] = [];
    const go = async () => {
      const deps = { store: engine.store, clock, log: silentLog };
      expect(await runJob(job, { kind: "manual" }, deps)).toMatchObject({ outcome: "succeeded" });
      marks.push((await engine.store.read(job.name, budgetOn(clock)))?.watermark);
    };
    await put(engine.client, "events", [
      { shop, at: at(-6) },
      { shop, at: at(0) },
    ]);
    await go();
    await put(engine.client, "events", [{ shop, at: at(-1) }]);
    clock.advance(6_000);
    await go();
    await go();
    expect(done).toEqual([at(-6), at(-1), at(0)]);
    expect(marks).toEqual([at(-6), at(0), at(0)]);
  });

  it("case 21: no gap while an index is behind by less than settle", async () => {
    const shop = freshName();
    const clock = settableClock(start);
    const source = cartsOf(shop, { settle: "2s" });
    await put(engine.client, "carts", [cart(shop, "a", -3), cart(shop, "c", -1)]);
    const first = await readAll(source, clock);
    // The index shows it two seconds late, behind a newer one.
    await put(engine.client, "carts", [cart(shop, "b", -2)]);
    clock.advance(1_000);
    const second = await readAll(source, clock, { after: first.cursor as Json });
    clock.advance(1_000);
    const third = await readAll(source, clock, { after: second.cursor as Json });
    expect([first, second, third].map(({ items }) => idsOf(items))).toEqual([["a"], ["b"], ["c"]]);
  });
});

describe("Rows that share a sort key", () => {
  const tied = async (shop: string, ids: readonly string[], seconds = -10) => {
    await put(
      engine.client,
      "carts",
      ids.map((id) => ({ id: `${shop}/${id}`, shop, expiresAtId: at(seconds) })),
    );
  };

  it.each([1, 2, 3, 100])("are told apart by the table's key, on pages of %i", async (pageSize) => {
    const shop = freshName();
    const ids = ["a", "b", "c", "d", "e"];
    await tied(shop, ids);
    await put(engine.client, "carts", [cart(shop, "first", -20), cart(shop, "last", -5)]);
    const { items } = await readAll(cartsOf(shop, { key: ["id"], pageSize }), settableClock(start));
    expect(idsOf(items).at(0)).toBe("first");
    expect(idsOf(items).at(-1)).toBe("last");
    expect(idsOf(items).sort()).toEqual([...ids, "first", "last"].sort());
  });

  it("are told apart by the table's key though those that are done leave the index", async () => {
    const shop = freshName();
    const ids = Array.from({ length: 12 }, (_, i) => `c${i}`);
    await tied(shop, ids);
    const done = await expireAll(shop, { key: ["id"], pageSize: 5 });
    expect(done.sort()).toEqual([...ids].sort());
  });

  it.each([
    ["on one page", 100],
    ["parted by the end of a page", 1],
    ["parted by the end of a later page", 2],
  ])("are an error where the sort key is all there is, %s", async (_, pageSize) => {
    const shop = freshName();
    await put(engine.client, "carts", [cart(shop, "x", -30), cart(shop, "y", -20)]);
    await tied(shop, ["a", "b"]);
    await expect(readAll(cartsOf(shop, { pageSize }), settableClock(start))).rejects.toMatchObject({
      code: "SOURCE",
      message: `queryAfter on carts/byExpiry: several items have the sort key ${JSON.stringify(at(-10))}, which must be unique; name the table's key attributes in "key"`,
    });
  });

  it("are an error, and not lost, though the first of them leaves the index when it is done", async () => {
    const shop = freshName();
    await put(engine.client, "carts", [cart(shop, "x", -30)]);
    await tied(shop, ["a", "b"]);
    await expect(expireAll(shop, { pageSize: 2 })).rejects.toThrow("several items have the sort key");
    const left = (await dumpTable(engine.client, "carts")).filter(
      ({ id, expiresAtId }) => String(id).startsWith(shop) && expiresAtId,
    );
    expect(left.length).toBeGreaterThanOrEqual(2);
  });

  it("and came to be since are an error as long as the one that was done is there", async () => {
    const shop = freshName();
    await tied(shop, ["a"]);
    const { cursor } = await readAll(cartsOf(shop), settableClock(start));
    await tied(shop, ["b"]);
    await expect(readAll(cartsOf(shop), settableClock(start), { after: cursor as Json })).rejects.toMatchObject({
      code: "SOURCE",
    });
  });
});

/** Runs a job that takes each cart out of the index, and gives the carts that it did. */
const expireAll = async (shop: string, options: Partial<QueryAfterOptions>): Promise<string[]> => {
  const done: string[] = [];
  const job = defineJob({
    name: freshName(),
    timeout: "1m",
    source: cartsOf(shop, options),
    process: ({ id }) => {
      done.push(id.split("/")[1] as string);
      return [
        {
          Update: { TableName: "carts", Key: { id }, UpdateExpression: "REMOVE expiresAtId" },
        },
        // So that transactions are committed while pages are read.
        ...Array.from({ length: 39 }, (_, i) => ({ Put: { TableName: "carts", Item: { id: `${id}/audit/${i}` } } })),
      ];
    },
  });
  const report = await runJob(
    job,
    { kind: "manual" },
    { store: engine.store, clock: settableClock(start), log: silentLog },
  );
  if (report.outcome !== "succeeded") throw report.thrown;
  return done;
};

describe("Rows that leave the index while they are processed", () => {
  it.each([1, 3, 10, 100])("are each done once, on pages of %i", async (pageSize) => {
    const shop = freshName();
    const ids = Array.from({ length: 23 }, (_, i) => `c${String(i).padStart(2, "0")}`);
    await put(
      engine.client,
      "carts",
      ids.map((id, i) => cart(shop, id, i - 100)),
    );
    expect(await expireAll(shop, { pageSize })).toEqual(ids);
    const left = (await dumpTable(engine.client, "carts")).filter(
      ({ shop: of, expiresAtId }) => of === shop && expiresAtId,
    );
    expect(left).toEqual([]);
  });
});

describe("queryAfter's options", () => {
  const problemsOf = (options: unknown): readonly string[] => {
    try {
      queryAfter(options as QueryAfterOptions);
      return [];
    } catch (error) {
      expect(error).toMatchObject({ code: "INVALID_OPTIONS" });
      return (error as InvalidOptionsError).problems;
    }
  };
  const fine = { table: "carts", partition: { shop: "eu" }, sort: "expiresAtId" };

  it("are refused all at once, each with its value and what is allowed", () => {
    expect(
      problemsOf({
        tabel: "carts",
        index: 5,
        partition: { a: 1, b: 2 },
        sort: "",
        time: "ISO",
        settle: "soon",
        key: [],
        pageSize: 0,
      }),
    ).toEqual([
      "tabel is not an option; did you mean table?",
      "table is undefined, and must be a table's name",
      "index is 5, and must be an index's name",
      'sort is "", and must be the sort key attribute\'s name',
      'partition is {"a":1,"b":2}, and must be one attribute with its value, such as { shop: "eu" }',
      'time is "ISO", and must be one of iso, milliseconds, seconds, none',
      'settle is "soon", and must be a duration such as "30s" or a number of milliseconds',
      "key is [], and must list the table's key attributes",
      "pageSize is 0, and must be a whole number of at least 1",
    ]);
  });

  it.each<[string, object]>([
    ["table", { table: "" }],
    ["index", { index: "" }],
    ["partition", { partition: {} }],
    ["partition", { partition: { shop: true } }],
    ["partition", { partition: null }],
    ["partition", { partition: "eu" }],
    ["time", { time: "days" }],
    ["settle", { settle: -1 }],
    ["settle", { settle: "30s", time: "none" }],
    ["key", { key: "id" }],
    ["key", { key: [""] }],
    ["pageSize", { pageSize: 1.5 }],
    ["pageSize", { pageSize: "100" }],
  ])("can't have this %s: %j", (option, wrong) => {
    const problems = problemsOf({ ...fine, ...wrong });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(new RegExp(`^${option} (is|needs) `));
  });

  it.each([[undefined], [null], ["carts"]])("must be there: %j", (options) => {
    expect(problemsOf(options).length).toBeGreaterThan(0);
  });

  it("are fine with a settle of nothing, and a numeric partition", () => {
    expect(problemsOf({ ...fine, settle: 0, partition: { shop: 5 } })).toEqual([]);
    expect(queryAfter(fine).name).toBe("queryAfter on carts");
    expect(queryAfter({ ...fine, index: "byExpiry" }).name).toBe("queryAfter on carts/byExpiry");
  });
});
