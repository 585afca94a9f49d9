/** The sources beside queryAfter, each in a job on the engine. */
import { TransactWriteItemsCommand } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import type { DynamoStore, InvalidOptionsError, RunInfo, RunReport, Write } from "cronfence";
import { dueItems, fromAsyncIterable, queryAfter, type Source, scanAll } from "cronfence/sources";
import { createTable, settableClock } from "cronfence/testing";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { budgetOn, freshName, useEngine } from "../fixture.ts";
import { now, results, row, type SceneOptions, sourceScene } from "./scene.ts";

const engine = useEngine(results);
afterEach(() => engine.proxy.reset());
beforeAll(() =>
  createTable(engine.client, {
    name: "reminders",
    key: { hash: "id" },
    indexes: { due: { hash: "queue", range: "dueAt" } },
  }),
);

const iso = (seconds: number) => new Date(now + seconds * 1_000).toISOString();

type Row = Record<string, unknown>;
const put = async (table: string, rows: readonly Row[]) => {
  for (let from = 0; from < rows.length; from += 100) {
    const TransactItems = rows
      .slice(from, from + 100)
      .map((item) => ({ Put: { TableName: table, Item: marshall(item) } }));
    await engine.client.send(new TransactWriteItemsCommand({ TransactItems }));
  }
};
const onceEach = (items: readonly string[]) => Object.fromEntries(items.map((item) => [item, 1]));
const numbers = (count: number) => Array.from({ length: count }, (_, at) => `i${String(at).padStart(3, "0")}`);

interface Reminder {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly dueAt?: string;
}

/** Sends each due reminder, by which it leaves the index. */
const reminders = (options: SceneOptions & { tied?: boolean; pageSize?: number } = {}) => {
  const { tied = false, pageSize = 1_000, ...more } = options;
  const queue = more.name ?? freshName();
  const source = dueItems<Reminder>({
    table: "reminders",
    index: "due",
    partition: { queue },
    sort: "dueAt",
    pageSize,
    ...(tied ? { key: ["id"] } : {}),
  });
  const send = (reminder: Reminder, run: RunInfo): Write[] => [
    {
      Update: {
        TableName: "reminders",
        Key: { id: reminder.id },
        UpdateExpression: "REMOVE dueAt",
        ConditionExpression: "attribute_exists(dueAt)",
      },
    },
    row(run, reminder.name),
  ];
  const { process = send, ...rest } = more as { process?: typeof send };
  const scene = sourceScene(engine, source, process, { ...rest, name: queue });
  return {
    ...scene,
    send,
    add: (...due: [name: string, seconds: number][]) =>
      put(
        "reminders",
        due.map(([name, seconds]) => ({
          id: `${queue}/${name}`,
          name,
          queue,
          dueAt: tied ? iso(seconds) : `${iso(seconds)}#${name}`,
        })),
      ),
  };
};

describe("dueItems", () => {
  it("gives what is due, in the order of time, and what is to come only when its time has come", async () => {
    const seen: string[] = [];
    const here = reminders({
      process: (reminder: Reminder, run: RunInfo) => {
        seen.push(reminder.name);
        return here.send(reminder, run);
      },
    });
    await here.add(["c", 5], ["b", -1], ["a", -2]);
    await here.go();
    expect(seen).toEqual(["a", "b"]);
    here.clock.advance(6_000);
    await here.go();
    expect(seen).toEqual(["a", "b", "c"]);
  });

  it("finds a row that appears late, however late, below all that was done", async () => {
    const here = reminders();
    await here.add(["b", -10], ["c", -1]);
    await here.go();
    await here.add(["a", -86_400]);
    expect(await here.go()).toMatchObject({ outcome: "succeeded", items: 1 });
    expect(await here.rows()).toEqual(onceEach(["a", "b", "c"]));
  });

  it("keeps no watermark: what is done isn't found any more", async () => {
    const here = reminders();
    await here.add(["a", -2], ["b", -1]);
    expect(await here.go()).toMatchObject({ items: 2 });
    expect(await here.state()).not.toHaveProperty("watermark");
    expect(await here.go()).toMatchObject({ outcome: "succeeded", items: 0 });
    expect(await here.rows()).toEqual(onceEach(["a", "b"]));
  });

  it.each([1, 2, 7, 100])("does each once on pages of %i, though items leave while it reads", async (pageSize) => {
    const here = reminders({ pageSize });
    const names = numbers(25);
    await here.add(...names.map((name, at): [string, number] => [name, at - 100]));
    expect(await here.go()).toMatchObject({ outcome: "succeeded", items: 25 });
    expect(await here.rows()).toEqual(onceEach(names));
  });

  it.each([1, 3, 100])("does a full page of one timestamp, on pages of %i", async (pageSize) => {
    const here = reminders({ pageSize, tied: true });
    const names = numbers(20);
    await here.add(...names.map((name): [string, number] => [name, -5]));
    expect(await here.go()).toMatchObject({ outcome: "succeeded", items: 20 });
    expect(await here.rows()).toEqual(onceEach(names));
  });

  it("stopped by a limit, the next run does the rest", async () => {
    const here = reminders({ limit: { items: 4 } });
    await here.add(...numbers(10).map((name, at): [string, number] => [name, at - 100]));
    expect(await here.go()).toMatchObject({ outcome: "capped", items: 4, backlog: expect.stringContaining("6 items") });
    expect(await here.go()).toMatchObject({ outcome: "capped", items: 4 });
    expect(await here.go()).toMatchObject({ outcome: "succeeded", items: 2 });
    expect(await here.rows()).toEqual(onceEach(numbers(10)));
  });

  it("skips what a lagging index still shows, by the item's own condition", async () => {
    const here = reminders();
    await here.add(["a", -2], ["b", -1]);
    // The index as it was before the first run, for ever.
    const { tables } = engine.store;
    let stale: Awaited<ReturnType<typeof tables.query>> | undefined;
    const lagging: DynamoStore = {
      ...engine.store,
      tables: {
        ...tables,
        query: async (...request) => {
          stale ??= await tables.query(...request);
          return stale;
        },
      },
    };
    const again = reminders({ name: here.name, store: lagging });
    expect(await again.go()).toMatchObject({ outcome: "succeeded", items: 2 });
    expect(await again.go()).toMatchObject({ outcome: "succeeded", items: 0, itemsSkipped: 2 });
    expect(await here.rows()).toEqual(onceEach(["a", "b"]));
  });

  it("passes over what is parked: it doesn't count again towards what may be parked in a run", async () => {
    let broken = ["i000", "i001", "i002"];
    const tries: string[] = [];
    const here = reminders({
      onItemError: "park",
      maxAttempts: 1,
      maxParked: 3,
      pageSize: 2,
      process: (reminder: Reminder, run: RunInfo) => {
        tries.push(reminder.name);
        if (broken.includes(reminder.name)) throw new Error(`${reminder.name} is broken`);
        return here.send(reminder, run);
      },
    });
    await here.add(...numbers(5).map((name, at): [string, number] => [name, at - 100]));
    expect(await here.go()).toMatchObject({ outcome: "succeeded", items: 2, itemsParked: 3 });
    await here.add(["i005", -50], ["i006", -49]);
    broken = [...broken, "i005"];
    expect(await here.go()).toMatchObject({ outcome: "succeeded", items: 1, itemsParked: 1 });
    expect(tries).toEqual(numbers(7));
    broken = [];
    expect(await here.go({ parked: "all" })).toMatchObject({ outcome: "succeeded", items: 4 });
    expect(await here.rows()).toEqual(onceEach(numbers(7)));
    expect(await here.go()).toMatchObject({ outcome: "succeeded", items: 0 });
  });

  it("isn't taken by surprise when a parked item has left the index by itself", async () => {
    const here = reminders({
      onItemError: "park",
      maxAttempts: 1,
      process: () => {
        throw new Error("broken");
      },
    });
    await here.add(["a", -1]);
    expect(await here.go()).toMatchObject({ itemsParked: 1 });
    await put("reminders", [{ id: `${here.name}/a`, name: "a", queue: here.name }]);
    expect(await here.go({ parked: "all" })).toMatchObject({ outcome: "succeeded", items: 0, itemsSkipped: 1 });
    expect(await here.parked()).toEqual([]);
  });

  it("refuses options that can't be, as queryAfter does, in its own name", () => {
    expect(() => dueItems({ table: "", partition: {}, sort: "x", pagesize: 3 } as never)).toThrow(
      /^dueItems: .*pagesize.*pageSize.*; table is ""/,
    );
  });
});

describe("queryAfter in a job", () => {
  it("case 20: a row below the watermark within settle is done once, and the watermark never goes back", async () => {
    const queue = freshName();
    const clock = settableClock(now);
    const source = queryAfter<Reminder>({
      table: "reminders",
      index: "due",
      partition: { queue },
      sort: "dueAt",
      settle: "5s",
    });
    const here = sourceScene(engine, source, ({ name }, run) => [row(run, name)], { name: queue, clock });
    const add = (name: string, seconds: number) =>
      put("reminders", [{ id: `${queue}/${name}`, name, queue, dueAt: `${iso(seconds)}#${name}` }]);
    const marks: string[] = [];
    const go = async () => {
      expect(await here.go({})).toMatchObject({ outcome: "succeeded" });
      marks.push(String(await here.watermark()));
    };
    await add("x", -30);
    await add("at 10", 10);
    await go();
    clock.set(now + 10_500);
    await go();
    await add("at 9", 9);
    for (let second = 11; second <= 20; second += 1) {
      clock.set(now + second * 1_000);
      await go();
    }
    expect(await here.rows()).toEqual(onceEach(["x", "at 9", "at 10"]));
    expect(marks).toEqual([...marks].sort());
    expect(marks.at(-1)).toBe(`${iso(10)}#at 10`);
  });
});

const tableOf = async (names: readonly string[]): Promise<string> => {
  const name = freshName();
  await createTable(engine.client, { name, key: { hash: "id" } });
  await put(
    name,
    names.map((id) => ({ id })),
  );
  return name;
};
const scanning = (
  table: string,
  { segments, pageSize = 1_000, ...options }: SceneOptions & { segments?: number; pageSize?: number } = {},
) =>
  sourceScene(
    engine,
    scanAll<{ id: string }>({ table, pageSize, ...(segments === undefined ? {} : { segments }) }),
    (item, run) => [row(run, item.id)],
    options,
  );

describe("scanAll", () => {
  it.each([
    [1, 1_000],
    [1, 7],
    [1, 30],
    [4, 1_000],
    [4, 3],
    [16, 1],
  ])("gives every item once, in %i segments on pages of %i", async (segments, pageSize) => {
    const names = numbers(30);
    const here = scanning(await tableOf(names), { segments, pageSize });
    expect(await here.go()).toMatchObject({ outcome: "succeeded", items: 30 });
    expect(await here.rows()).toEqual(onceEach(names));
  });

  it.each([
    [1, 5],
    [4, 4],
    [16, 7],
  ])("stopped by a limit, goes on where it stopped (%i segments, %i items at a time)", async (segments, items) => {
    const names = numbers(30);
    const here = scanning(await tableOf(names), { segments, pageSize: 3, limit: { items } });
    let report: RunReport;
    let runs = 0;
    do {
      report = await here.go();
      runs += 1;
    } while (report.outcome === "capped" && runs < 100);
    expect(report.outcome).toBe("succeeded");
    expect(await here.rows()).toEqual(onceEach(names));
  });

  it("scans anew after the end, and finds what has come and not what has gone", async () => {
    const table = await tableOf(["a", "b"]);
    const here = scanning(table);
    await here.go();
    await put(table, [{ id: "c" }]);
    await here.go();
    expect(await here.rows()).toEqual({ a: 2, b: 2, c: 1 });
    expect(await here.watermark()).toMatchObject({ scan: 3, segment: 0, key: null });
  });

  it.each([0, 1])("a table with %i items is scanned to its end each time", async (count) => {
    const here = scanning(await tableOf(numbers(count)), { segments: 3 });
    for (let time = 1; time <= 3; time += 1) {
      expect(await here.go()).toMatchObject({ outcome: "succeeded", items: count });
      expect(await here.watermark()).toMatchObject({ scan: time + 1 });
    }
  });

  it.each([
    [4, 2],
    [4, 3],
    [4, 8],
    [1, 5],
    [5, 1],
  ])(
    "begins its scan again when it has another number of segments (%i, then %i): none is left out",
    async (before, after) => {
      const names = numbers(40);
      const table = await tableOf(names);
      const first = scanning(table, { segments: before, limit: { items: 25 }, pageSize: 2 });
      expect(await first.go()).toMatchObject({ outcome: "capped", items: 25 });
      const second = scanning(table, { segments: after, name: first.name });
      expect(await second.go({})).toMatchObject({ outcome: "succeeded", items: 40 });
      expect(Object.keys(await second.rows()).sort()).toEqual(names);
      expect(await second.watermark()).toMatchObject({ scan: 2, of: after });
    },
  );

  it("says which item was skipped, also the last of the table", async () => {
    const table = await tableOf(["a"]);
    const here = sourceScene(engine, scanAll<{ id: string }>({ table }), (item, run) => [
      row(run, item.id, { ConditionExpression: "attribute_exists(id)" }),
    ]);
    expect(await here.go()).toMatchObject({ outcome: "succeeded", itemsSkipped: 1 });
    expect(here.log.lines.filter(({ message }) => message.startsWith("an item was skipped"))).toMatchObject([
      { cursor: { scan: 1, key: { id: "a" } } },
    ]);
    expect(await here.watermark()).toMatchObject({ scan: 2, key: null });
  });

  it("fails for a table that isn't there, by its name", async () => {
    const here = scanning("no-such-table");
    const report = await here.go();
    expect(report).toMatchObject({ outcome: "failed", error: { code: "STORE_UNAVAILABLE" } });
    expect(report.error?.message).toContain('table "no-such-table"');
  });

  it("fails for binary keys, which a watermark can't hold", async () => {
    const table = freshName();
    await createTable(engine.client, { name: table, key: { hash: "id", types: { id: "B" } } });
    await put(table, [{ id: new Uint8Array([1]) }]);
    const report = await scanning(table).go();
    expect(report.error?.message).toBe(
      `scanAll of ${table}: the key attribute id is binary, which a watermark can't hold`,
    );
  });

  it("refuses options that can't be, all at once", () => {
    const wrong = { table: "", segments: 0, pageSize: 1.5, segment: 3 } as never;
    const problems = (() => {
      try {
        scanAll(wrong);
        return [];
      } catch (error) {
        return (error as InvalidOptionsError).problems;
      }
    })();
    expect(problems).toHaveLength(4);
    expect(problems.join()).toMatch(/segment.*did you mean "segments"|segments/);
  });
});

interface Order {
  readonly number: number;
}

/** An API of numbered orders that is asked for those after a number. */
const api = (orders: Order[], fails?: () => boolean) => {
  const asked: (number | undefined)[] = [];
  const source = (pageSize?: number) =>
    fromAsyncIterable<Order, number>({
      name: "orders API",
      items: async function* (after) {
        asked.push(after);
        for (const order of orders) {
          if (order.number <= (after ?? 0)) continue;
          if (fails?.()) throw new Error("503 from the API");
          yield order;
        }
      },
      cursor: ({ number }) => number,
      ...(pageSize === undefined ? {} : { pageSize }),
    });
  return { asked, source };
};
const ordersTo = (count: number): Order[] => Array.from({ length: count }, (_, at) => ({ number: at + 1 }));
const asRow = ({ number }: Order, run: RunInfo) => [row(run, number)];
const numbered = (count: number) => onceEach(Array.from({ length: count }, (_, at) => String(at + 1)));

describe("fromAsyncIterable", () => {
  it.each([undefined, 1, 7, 250])("is read on through one run, whatever the pages (%j)", async (pageSize) => {
    const { source, asked } = api(ordersTo(250));
    const here = sourceScene(engine, source(pageSize), asRow);
    expect(await here.go()).toMatchObject({ outcome: "succeeded", items: 250 });
    expect(asked).toEqual([undefined]);
    expect(await here.watermark()).toBe(250);
    expect(await here.rows()).toEqual(numbered(250));
  });

  it("is asked anew by the next run, for what comes after the watermark", async () => {
    const orders = ordersTo(3);
    const { source, asked } = api(orders);
    const here = sourceScene(engine, source(), asRow);
    await here.go();
    orders.push({ number: 4 }, { number: 5 });
    expect(await here.go()).toMatchObject({ items: 2 });
    expect(asked).toEqual([undefined, 3]);
    expect(await here.rows()).toEqual(numbered(5));
  });

  it("goes on after the last item that was done where a limit stopped it within a page", async () => {
    const { source, asked } = api(ordersTo(25));
    const here = sourceScene(engine, source(10), asRow, { limit: { items: 8 } });
    for (const items of [8, 8, 8, 1]) expect(await here.go()).toMatchObject({ items });
    expect(asked).toEqual([undefined, 8, 16, 24]);
    expect(await here.rows()).toEqual(numbered(25));
  });

  it("keeps what came before it failed, and is asked for the rest by the next run", async () => {
    let left = 150;
    const { source, asked } = api(ordersTo(250), () => left-- === 0);
    const here = sourceScene(engine, source(100), asRow);
    expect(await here.go()).toMatchObject({ outcome: "failed", items: 100, error: { message: "503 from the API" } });
    expect(await here.go()).toMatchObject({ outcome: "succeeded", items: 150 });
    expect(asked).toEqual([undefined, 100]);
    expect(await here.rows()).toEqual(numbered(250));
  });

  it("takes a plain iterable too", async () => {
    const source = fromAsyncIterable<Order, number>({
      name: "a list",
      items: (after) => ordersTo(5).filter(({ number }) => number > (after ?? 0)),
      cursor: ({ number }) => number,
    });
    const here = sourceScene(engine, source, asRow);
    expect(await here.go()).toMatchObject({ outcome: "succeeded", items: 5 });
  });

  it("doesn't mix two runs that read it at once", async () => {
    const { source, asked } = api(ordersTo(120));
    const one = source(10);
    const scenes = [sourceScene(engine, one, asRow), sourceScene(engine, one, asRow)];
    const reports = await Promise.all(scenes.map((scene) => scene.go()));
    expect(reports).toMatchObject([{ items: 120 }, { items: 120 }]);
    expect(asked).toEqual([undefined, undefined]);
    for (const scene of scenes) expect(await scene.rows()).toEqual(numbered(120));
  });

  it("is handed a signal that aborts with the run", async () => {
    let handed: AbortSignal | undefined;
    const source = fromAsyncIterable<Order, number>({
      name: "slow",
      items: async function* (_after, { signal }) {
        handed = signal;
        yield { number: 1 };
        await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      },
      cursor: ({ number }) => number,
      pageSize: 1,
    });
    const here = sourceScene(engine, source, (order, run) => {
      setImmediate(() => here.clock.advance(300_000));
      return asRow(order, run);
    });
    expect(await here.go()).toMatchObject({ outcome: "timed_out" });
    expect(handed?.aborted).toBe(true);
  });

  it.each<[string, () => Iterable<Order>, RegExp]>([
    ["an item without a cursor", () => [{} as Order], /^orders: an item has no cursor/],
    ["a cursor twice", () => [{ number: 8 }, { number: 8 }], /^orders: cursor 8 comes twice/],
    ["the item that it was to start after", () => [{ number: 7 }], /^orders: cursor 7 comes twice/],
    ["an item from before it", () => [{ number: 6 }], /^orders: cursor 6 comes after 7, and cursors must ascend/],
    ["items out of order", () => [{ number: 8 }, { number: 10 }, { number: 9 }], /^orders: cursor 9 comes after 10/],
  ])("is stopped when it gives %s", async (_, items, says) => {
    const source = fromAsyncIterable<Order, number>({ name: "orders", items, cursor: ({ number }) => number });
    const here = sourceScene(engine, source, asRow);
    await engine.store.create(here.name, now - 1, budgetOn(here.clock));
    const ready = sourceScene(
      engine,
      { name: "ready", read: async () => ({ items: [{ item: { number: 7 }, cursor: 7 }], done: true }) },
      asRow,
      { name: here.name },
    );
    await ready.go();
    here.clock.advance(1_000);
    const report = await here.go({});
    expect(report).toMatchObject({ outcome: "failed", error: { code: "SOURCE" } });
    expect(report.error?.message).toMatch(says);
    expect(await here.watermark()).toBe(7);
  });

  it("is stopped at an item out of the order that it names itself", async () => {
    const source = fromAsyncIterable<string>({
      name: "codes",
      items: () => ["b-2", "b-10", "b-9"],
      cursor: (code) => code,
      compare: (one, other) => Number(one.slice(2)) - Number(other.slice(2)),
    });
    const here = sourceScene(engine, source, (code, run) => [row(run, code)]);
    const report = await here.go();
    expect(report.error?.message).toBe('codes: cursor "b-9" comes after "b-10", and cursors must ascend');
    expect(await here.watermark()).toBeUndefined();
  });

  it("refuses options that can't be, all at once", () => {
    const build = () => fromAsyncIterable({ name: "", items: [], cursor: "id", pageSize: 0, limit: 3 } as never);
    expect(build).toThrow(/^fromAsyncIterable: .*limit.*name is "".*items must be.*cursor must be.*pageSize is 0/);
  });
});

describe("A source that leads back to where it was", () => {
  it.each([2, 3, 10, 47])("is stopped instead of read for ever (round %i pages)", async (round) => {
    let reads = 0;
    const circular: Source<string> = {
      name: "a circle",
      read: async ({ after }) => {
        reads += 1;
        if (reads > 1_000) throw new Error("read for ever");
        const cursor = `c${((after === undefined ? -1 : Number(String(after).slice(1))) + 1) % round}`;
        return { items: [{ item: cursor, cursor }], done: false };
      },
    };
    const report = await sourceScene(engine, circular, (item, run) => [row(run, item)]).go();
    expect(report).toMatchObject({ outcome: "failed", error: { code: "SOURCE" } });
    expect(report.error?.message).toMatch(/^a circle: cursor "c\d+" comes again on a later page$/);
    expect(reads).toBeLessThan(3 * round + 3);
    // The guard's plan is made by reading it, too.
    reads = 0;
    const guarded = sourceScene(engine, circular, () => [], { destructive: { max: 10_000 } });
    expect(await guarded.go()).toMatchObject({ outcome: "failed", error: { code: "SOURCE" } });
  });
});
