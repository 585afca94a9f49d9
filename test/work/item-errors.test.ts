/** What becomes of items whose own condition doesn't hold, and of those that can't be done. */
import { type DynamoStore, hasCode, type RunInfo, runJob, type Write } from "cronfence";
import type { Source } from "cronfence/sources";
import { dumpTable, settableClock } from "cronfence/testing";
import { afterEach, describe, expect, it } from "vitest";
import { budgetOn, controlTable, useEngine } from "../fixture.ts";
import { gate, never } from "../gate.ts";
import { arraySource } from "./array-source.ts";
import { newRow, now, results, row, sourceScene } from "./scene.ts";

const engine = useEngine(results);
afterEach(() => engine.proxy.reset());

const numbers = (count: number) => Array.from({ length: count }, (_, at) => String(at).padStart(3, "0"));
const onceEach = (items: readonly string[]) => Object.fromEntries(items.map((item) => [item, 1]));
/** Waits between tries take no time; the deadline and the heartbeat stay where they are. */
const clock = () => settableClock(now, { autoAdvance: { atMostMs: 5_000 } });
const transactions = () => engine.proxy.requests.filter(({ operation }) => operation === "TransactWriteItems");

/** Its row is refused, since a `prepared` run has written it before. */
const refusing =
  (...refused: string[]) =>
  (item: string, run: RunInfo): Write[] =>
    refused.includes(item)
      ? [row(run, `beside-${item}`), row(run, item, { ConditionExpression: "attribute_exists(id)" })]
      : [newRow(run, item)];

describe("An item whose own condition doesn't hold", () => {
  it.each([
    ["the first", ["000"]],
    ["in the middle", ["050"]],
    ["the last of a transaction", ["098"]],
    ["two of them", ["003", "077"]],
    ["in the second transaction, which goes with the end of the run", ["119"]],
    ["in both transactions", ["001", "100", "119"]],
  ])("is left out with all its writes, counted and logged, and the others are written (%s)", async (_, refused) => {
    const items = numbers(120);
    const here = sourceScene(engine, arraySource(items), refusing(...refused), { clock: clock() });
    const report = await here.go();
    expect(report).toMatchObject({
      outcome: "succeeded",
      items: items.length - refused.length,
      itemsSkipped: refused.length,
    });
    expect(await here.rows()).toEqual(onceEach(items.filter((item) => !refused.includes(item))));
    expect(await here.watermark()).toBe(120);
    expect((await here.records())[0]).toMatchObject({ itemsSkipped: refused.length });
    const logged = here.log.lines.filter(({ message }) => message.startsWith("an item was skipped"));
    expect(logged.map(({ cursor }) => cursor)).toEqual(refused.map((item) => items.indexOf(item) + 1));
  });

  it("may be every one: nothing is written, and the watermark passes them all", async () => {
    const items = numbers(120);
    const here = sourceScene(engine, arraySource(items), refusing(...items), { clock: clock() });
    expect(await here.go()).toMatchObject({ outcome: "succeeded", items: 0, itemsSkipped: 120 });
    expect(await here.rows()).toEqual({});
    expect(await here.watermark()).toBe(120);
    expect(await here.go()).toMatchObject({ outcome: "succeeded", items: 0 });
  });

  it.each([
    ["the refusal's reply is lost", "lost-reply"],
    ["the server forgets tokens and the refusal's reply is lost", ["strip-token", "lost-reply"]],
    ["the refusal is answered with 500", "500-after"],
    ["a conflict comes first", { conflict: true }],
  ] as const)("is left out once, though %s", async (_, fault) => {
    const items = numbers(120);
    const here = sourceScene(engine, arraySource(items), refusing("007", "110"), { clock: clock() });
    engine.proxy.when("TransactWriteItems", fault, { times: 1 });
    expect(await here.go()).toMatchObject({ outcome: "succeeded", items: 118, itemsSkipped: 2 });
    expect(await here.rows()).toEqual(onceEach(items.filter((item) => item !== "007" && item !== "110")));
    expect(await here.watermark()).toBe(120);
  });

  it("isn't taken for one when it is the run's own earlier try that made its condition fail", async () => {
    const items = numbers(120);
    for (const at of [0, 1]) {
      engine.proxy.reset();
      const here = sourceScene(engine, arraySource(items), (item, run) => [newRow(run, item)], { clock: clock() });
      let transaction = 0;
      engine.proxy.next(
        ({ operation, body }) =>
          operation === "TransactWriteItems" && body.TransactItems.length > 3 && transaction++ === at,
        ["strip-token", "lost-reply"],
      );
      const report = await here.go();
      expect(report).toMatchObject({ outcome: "succeeded", items: 120 });
      expect(report.itemsSkipped ?? 0).toBe(0);
      expect(await here.rows()).toEqual(onceEach(items));
    }
  });

  it("doesn't take along an item that DynamoDB refuses for another reason: the run fails", async () => {
    const here = sourceScene(
      engine,
      arraySource(numbers(5)),
      (item, run) =>
        item === "002"
          ? [row(run, item, { ConditionExpression: "attribute_exists(id)" })]
          : item === "003"
            ? [row(run, item, { UpdateExpression: "ADD nothing.at.all :one" })]
            : [row(run, item)],
      { clock: clock() },
    );
    expect(await here.go()).toMatchObject({ outcome: "failed", items: 0 });
    expect(await here.rows()).toEqual({});
    expect(await here.watermark()).toBeUndefined();
  });

  it("is not an error of the item: nothing is parked for it", async () => {
    const here = sourceScene(engine, arraySource(numbers(3)), refusing("001"), { clock: clock(), onItemError: "park" });
    expect(await here.go()).toMatchObject({ outcome: "succeeded", items: 2, itemsSkipped: 1 });
    expect(await here.parked()).toEqual([]);
  });
});

const positions: [string, string[]][] = [
  ["the first", ["000"]],
  ["in the middle", ["060"]],
  ["the last", ["119"]],
  ["several side by side", ["097", "098", "099"]],
];
const poisoned =
  (poison: readonly string[]) =>
  (item: string, run: RunInfo): Write[] => {
    if (poison.includes(item)) throw new Error(`${item} is broken`);
    return [newRow(run, item)];
  };

const everyPosition = [...positions, ["every one", numbers(120)] as [string, string[]]];
describe('An item that fails, with onItemError "stop"', () => {
  it.each(everyPosition.flatMap(([where, poison]) => [1, 4].map((concurrency) => ({ where, poison, concurrency }))))(
    "ends the run before it, with all that came earlier committed ($where, concurrency $concurrency)",
    async ({ poison, concurrency }) => {
      const items = numbers(120);
      const here = sourceScene(engine, arraySource(items, 50), poisoned(poison), { clock: clock(), concurrency });
      const before = items.indexOf(poison[0] as string);
      expect(await here.go()).toMatchObject({
        outcome: "failed",
        items: before,
        error: { message: `${poison[0]} is broken` },
      });
      expect(await here.rows()).toEqual(onceEach(items.slice(0, before)));
      expect(await here.watermark()).toBe(before === 0 ? undefined : before);
      expect(await here.parked()).toEqual([]);
      expect(await here.state()).not.toHaveProperty("tick");
    },
  );

  it("is tried once a run, and not again in it", async () => {
    let tries = 0;
    const here = sourceScene(engine, arraySource(["a"]), () => {
      tries += 1;
      throw new Error("broken");
    });
    await here.go();
    expect(tries).toBe(1);
  });
});

describe('An item that fails, with onItemError "park"', () => {
  it.each([1, 4])("is set aside with its error, and the others are done (concurrency %i)", async (concurrency) => {
    for (const [, poison] of positions) {
      const items = numbers(120);
      const here = sourceScene(engine, arraySource(items, 50), poisoned(poison), {
        clock: clock(),
        onItemError: "park",
        concurrency,
      });
      const report = await here.go();
      expect(report).toMatchObject({
        outcome: "succeeded",
        items: items.length - poison.length,
        itemsParked: poison.length,
      });
      expect(await here.rows()).toEqual(onceEach(items.filter((item) => !poison.includes(item))));
      expect(await here.watermark()).toBe(120);
      const parked = await here.parked();
      expect(parked.sort((one, other) => Number(one.key) - Number(other.key))).toEqual(
        poison.map((item) => ({
          key: String(items.indexOf(item) + 1),
          cursor: items.indexOf(item) + 1,
          item,
          attempts: 3,
          error: { name: "Error", message: `${item} is broken` },
          at: expect.any(Number),
          run: report.run,
        })),
      );
      expect((await here.records())[0]).toMatchObject({ itemsParked: poison.length });
      const logged = here.log.lines.filter(({ message }) => message === "an item was parked");
      expect(logged.map(({ cursor, level }) => [cursor, level])).toEqual(
        poison.map((item) => [items.indexOf(item) + 1, "error"]),
      );
    }
  });

  it("isn't read again by the next run", async () => {
    const seen: string[] = [];
    const items = ["a", "b", "c"];
    const here = sourceScene(
      engine,
      arraySource(items),
      (item, run) => {
        seen.push(item);
        return poisoned(["b"])(item, run);
      },
      { clock: clock(), onItemError: "park", maxAttempts: 1 },
    );
    await here.go();
    items.push("d");
    await here.go();
    expect(seen).toEqual(["a", "b", "c", "d"]);
  });

  it.each([1, 2, 5])("is tried maxAttempts times, here %i, and waits in between", async (maxAttempts) => {
    let tries = 0;
    const time = clock();
    const here = sourceScene(
      engine,
      arraySource(["a", "b"]),
      (item, run) => {
        if (item === "a") return [row(run, item)];
        tries += 1;
        throw new Error("broken");
      },
      { clock: time, onItemError: "park", maxAttempts, deps: { random: () => 0.5 } },
    );
    expect(await here.go()).toMatchObject({ outcome: "succeeded", itemsParked: 1 });
    expect(tries).toBe(maxAttempts);
    expect((await here.parked())[0]).toMatchObject({ attempts: maxAttempts });
    const waits = Array.from({ length: maxAttempts - 1 }, (_, at) => 0.5 * 50 * 2 ** (at + 1));
    expect(time.now() - now).toBe(waits.reduce((sum, ms) => sum + ms, 0));
  });

  it("is done after all when a later try goes well", async () => {
    const tries: Record<string, number> = {};
    const here = sourceScene(
      engine,
      arraySource(["a", "b", "c"]),
      async (item, run) => {
        tries[item] = (tries[item] ?? 0) + 1;
        if (item === "b" && tries[item] < 3) throw new Error("busy");
        return [row(run, item)];
      },
      { clock: clock(), onItemError: "park", concurrency: 3 },
    );
    expect(await here.go()).toMatchObject({ outcome: "succeeded", items: 3 });
    expect(await here.parked()).toEqual([]);
    expect(await here.rows()).toEqual(onceEach(["a", "b", "c"]));
    expect(tries).toEqual({ a: 1, b: 3, c: 1 });
  });

  it("may be one whose writes can't be committed", async () => {
    const here = sourceScene(
      engine,
      arraySource(["a", "b", "c"]),
      (item, run) =>
        item === "b" ? Array.from({ length: 100 }, (_, at) => row(run, `${item}-${at}`)) : [row(run, item)],
      { clock: clock(), onItemError: "park" },
    );
    expect(await here.go()).toMatchObject({ outcome: "succeeded", items: 2, itemsParked: 1 });
    expect((await here.parked())[0]).toMatchObject({ cursor: 2, error: { code: "COMMIT_REFUSED" } });
    expect(await here.rows()).toEqual(onceEach(["a", "c"]));
  });

  it.each([
    [1, 1],
    [3, 3],
    [10, undefined],
  ])("stops the run once more than maxParked (%i) have failed in it: something is broken", async (most, maxParked) => {
    const items = numbers(30);
    const here = sourceScene(engine, arraySource(items), poisoned(items.slice(5)), {
      clock: clock(),
      onItemError: "park",
      maxAttempts: 1,
      ...(maxParked === undefined ? {} : { maxParked }),
    });
    const report = await here.go();
    expect(report).toMatchObject({ outcome: "failed", items: 5, itemsParked: most });
    expect(hasCode(report.thrown, "PARK_LIMIT")).toBe(true);
    expect(report.error?.message).toContain(`more than ${most} items failed in one run`);
    expect(report.error?.message).toContain(`${items[5 + most]} is broken`);
    expect(await here.watermark()).toBe(5 + most);
    expect(await here.parked()).toHaveLength(most);
  });

  it("parks large items without making a transaction too large", async () => {
    const items = numbers(80).map((item) => item + "x".repeat(60_000));
    const here = sourceScene(engine, arraySource(items), poisoned(items), {
      clock: clock(),
      onItemError: "park",
      maxAttempts: 1,
      maxParked: 80,
    });
    expect(await here.go()).toMatchObject({ outcome: "succeeded", itemsParked: 80 });
    expect(await here.parked()).toHaveLength(80);
  });

  it.each<[string, unknown, RegExp]>([
    ["too large", "x".repeat(70_000), /can't be parked: its source can't read it again/],
    ["not JSON", { at: new Date(now) }, /can't be parked: its source can't read it again/],
  ])(
    "that its source can't read again and that is %s can't be parked: the run stops before it",
    async (_, item, says) => {
      const here = sourceScene<unknown>(
        engine,
        arraySource<unknown>(["a", item, "c"]),
        (each, run) => {
          if (each === item) throw new Error("broken");
          return [row(run, String(each))];
        },
        { clock: clock(), onItemError: "park", maxAttempts: 1 },
      );
      const report = await here.go();
      expect(report).toMatchObject({ outcome: "failed", items: 1 });
      expect(report.error?.message).toMatch(says);
      expect(await here.watermark()).toBe(1);
    },
  );

  it("is kept under a digest where its cursor is too long for a key", async () => {
    const cursor = (item: string) => `${item}#${"é".repeat(600)}`;
    const source: Source<string> = {
      name: "long cursors",
      read: async ({ after }) => ({
        items: ["a", "b"]
          .map((item) => ({ item, cursor: cursor(item) }))
          .filter((each) => each.cursor > String(after ?? "")),
        done: true,
      }),
    };
    let broken = true;
    const here = sourceScene(
      engine,
      source,
      (item, run) => {
        if (broken) throw new Error("broken");
        return [row(run, item)];
      },
      { clock: clock(), onItemError: "park", maxAttempts: 1 },
    );
    expect(await here.go()).toMatchObject({ outcome: "succeeded", itemsParked: 2 });
    const parked = await here.parked();
    expect(parked.map(({ key }) => key)).toEqual([
      expect.stringMatching(/^[0-9a-f]{64}$/),
      expect.stringMatching(/^[0-9a-f]{64}$/),
    ]);
    expect(parked.map((each) => each.cursor).sort()).toEqual([cursor("a"), cursor("b")]);
    broken = false;
    expect(await here.go({ parked: parked.map(({ key }) => key) })).toMatchObject({ outcome: "succeeded", items: 2 });
    expect(await here.rows()).toEqual(onceEach(["a", "b"]));
  });

  it("writes nothing in a dry run, and says how many would have been", async () => {
    const here = sourceScene(engine, arraySource(["a", "b"]), poisoned(["b"]), {
      clock: clock(),
      onItemError: "park",
      dryRun: true,
    });
    expect(await here.go()).toMatchObject({ outcome: "dry_run", itemsParked: 1, wouldWrite: 2 });
    expect(await here.parked()).toEqual([]);
  });
});

describe("A parked item is written together with the watermark that passes it", () => {
  it("in one transaction with the items beside it", async () => {
    const here = sourceScene(engine, arraySource(["a", "b", "c"]), poisoned(["b"]), {
      clock: clock(),
      onItemError: "park",
      maxAttempts: 1,
    });
    await engine.store.create(here.name, now - 1, budgetOn(here.clock));
    await here.go();
    expect(transactions()).toHaveLength(1);
    const touched = transactions()[0]?.body.TransactItems.map((action: object) => {
      const { Key, Item } = Object.values(action)[0] as {
        Key?: Record<string, { S: string }>;
        Item?: Record<string, { S: string }>;
      };
      return (Key ?? Item)?.sk?.S.replace(/^run#.*/, "run") ?? (Key ?? Item)?.id?.S.slice(-1);
    });
    expect(touched.sort()).toEqual(["a", "c", "control", "parked#2", "run"]);
  });

  // The poison item is in the second of three transactions, which is the run's commit number 2.
  it.each([
    ["before the commit goes out", 2, false],
    ["after the commit was applied, before its reply", 2, true],
    ["one commit earlier, applied", 1, true],
    ["one commit later, not applied", 3, false],
  ])("so that a crash %s neither loses it nor parks it twice", async (_, at, applied) => {
    const items = numbers(300);
    const crashing = gate();
    let commits = 0;
    const dying: DynamoStore = {
      ...engine.store,
      commit: async (...request) => {
        commits += 1;
        if (commits < at) return engine.store.commit(...request);
        if (applied) await engine.store.commit(...request);
        await crashing.pass();
        return never();
      },
    };
    const options = { onItemError: "park", maxAttempts: 1 };
    const dead = sourceScene(engine, arraySource(items), poisoned(["150"]), {
      ...options,
      store: dying,
      clock: clock(),
    });
    void dead.go();
    await crashing.reached;
    const whether = (await dead.watermark()) as number | undefined;
    expect(await dead.parked()).toHaveLength((whether ?? 0) > 150 ? 1 : 0);
    const next = sourceScene(engine, arraySource(items), poisoned(["150"]), {
      ...options,
      name: dead.name,
      clock: settableClock(now + 60_000, { autoAdvance: { atMostMs: 5_000 } }),
    });
    expect(await next.go()).toMatchObject({ outcome: "succeeded" });
    expect((await next.parked()).map(({ cursor }) => cursor)).toEqual([151]);
    expect(await next.rows()).toEqual(onceEach(items.filter((item) => item !== "150")));
  });

  it.each([["lost-reply"], ["500-after"], [{ duplicate: "second" }], [["strip-token", "lost-reply"]]] as const)(
    "whatever becomes of the reply (%j)",
    async (fault) => {
      const items = numbers(300);
      const here = sourceScene(engine, arraySource(items), poisoned(["000", "150", "299"]), {
        clock: clock(),
        onItemError: "park",
        maxAttempts: 1,
      });
      engine.proxy.when("TransactWriteItems", fault, { times: 4 });
      expect(await here.go()).toMatchObject({ outcome: "succeeded", items: 297, itemsParked: 3 });
      expect(await here.parked()).toHaveLength(3);
      expect(await here.rows()).toEqual(onceEach(items.filter((item) => !["000", "150", "299"].includes(item))));
    },
  );
});

/** A source over an object, whose items can be read again one by one. */
const rereadable = (all: Map<string, string>): Source<string> => ({
  ...arraySource([...all.keys()]),
  readOne: async (cursor) => all.get([...all.keys()][(cursor as number) - 1] ?? ""),
});

describe("Parked items that are retried", () => {
  const parkedScene = async (poison: string[], source: Source<string> = arraySource(numbers(6))) => {
    const broken = new Set(poison);
    const here = sourceScene(engine, source, (item, run) => poisoned([...broken])(item, run), {
      clock: clock(),
      onItemError: "park",
      maxAttempts: 1,
    });
    expect(await here.go()).toMatchObject({ outcome: "succeeded", itemsParked: poison.length });
    engine.proxy.reset();
    return { ...here, broken };
  };

  it("are done by their keys, each leaving the parked ones in the transaction that does its work", async () => {
    const here = await parkedScene(["001", "003", "004"]);
    here.broken.clear();
    const before = await here.state();
    expect(await here.go({ parked: ["2", "5"] })).toMatchObject({ outcome: "succeeded", items: 2 });
    expect((await here.parked()).map(({ key }) => key)).toEqual(["4"]);
    expect(await here.rows()).toEqual(onceEach(numbers(6).filter((item) => item !== "003")));
    const both = transactions().filter(({ body }) => JSON.stringify(body).includes("parked#"));
    expect(both.map(({ body }) => body.TransactItems.length)).toEqual([3, 3]);
    // Neither the watermark nor a tick moves by it.
    expect(await here.state()).toMatchObject({ watermark: before.watermark, tick: before.tick });
  });

  it("are all done where all are asked for", async () => {
    const here = await parkedScene(["001", "003", "004"]);
    here.broken.clear();
    expect(await here.go({ parked: "all" })).toMatchObject({ outcome: "succeeded", items: 3 });
    expect(await here.parked()).toEqual([]);
    expect(await here.rows()).toEqual(onceEach(numbers(6)));
    expect(await here.go({ parked: "all" })).toMatchObject({ outcome: "succeeded", items: 0 });
  });

  it("stay parked when they fail again: the others are done, and the run fails", async () => {
    const here = await parkedScene(["001", "003", "004"]);
    here.broken.delete("001");
    here.broken.delete("004");
    const report = await here.go({ parked: "all" });
    expect(report).toMatchObject({ outcome: "failed", items: 2 });
    expect(hasCode(report.thrown, "PARKED_ITEMS_FAILED")).toBe(true);
    expect(report.error?.message).toContain("1 parked item failed again; the last: 003 is broken");
    expect((await here.parked()).map(({ key }) => key)).toEqual(["4"]);
    expect(await here.rows()).toEqual(onceEach(numbers(6).filter((item) => item !== "003")));
  });

  it("are only taken out when their own condition doesn't hold any more", async () => {
    const here = await parkedScene(["001", "003"]);
    here.broken.clear();
    // Somebody has done it by hand.
    await runJob(
      here.job,
      { kind: "manual", parked: ["2"] },
      { store: engine.store, clock: clock(), log: here.log.log },
    );
    const again = sourceScene(
      engine,
      arraySource(numbers(6)),
      (item, run) => [newRow(run, item === "003" ? "001" : item)],
      {
        name: here.name,
        clock: clock(),
        onItemError: "park",
      },
    );
    expect(await again.go({ parked: "all" })).toMatchObject({ outcome: "succeeded", items: 0, itemsSkipped: 1 });
    expect(await again.parked()).toEqual([]);
    expect((await again.rows())["001"]).toBe(1);
  });

  it("fail by name when there are none of that key, and the others are done", async () => {
    const here = await parkedScene(["001"]);
    here.broken.clear();
    const report = await here.go({ parked: ["7", "2"] });
    expect(report).toMatchObject({ outcome: "failed", items: 1 });
    expect(report.error?.message).toContain('no item is parked under "7"');
    expect(await here.parked()).toEqual([]);
  });

  it("are read again from their source where it can, and so as they are now", async () => {
    const all = new Map(numbers(6).map((item) => [item, item]));
    const here = await parkedScene(["001"], rereadable(all));
    expect((await here.parked())[0]).not.toHaveProperty("item");
    all.set("001", "001-corrected");
    expect(await here.go({ parked: "all" })).toMatchObject({ outcome: "succeeded", items: 1 });
    expect(await here.rows()).toMatchObject({ "001-corrected": 1 });
  });

  it("are dropped with a warning when they are gone from a source that can read them again", async () => {
    const all = new Map(numbers(6).map((item) => [item, item]));
    const here = await parkedScene(["001", "002"], rereadable(all));
    here.broken.clear();
    all.set("001", undefined as unknown as string);
    expect(await here.go({ parked: "all" })).toMatchObject({ outcome: "succeeded", items: 1, itemsSkipped: 1 });
    expect(await here.parked()).toEqual([]);
    expect(here.log.lines).toContainEqual(
      expect.objectContaining({ level: "warn", parked: "2", message: expect.stringContaining("gone from its source") }),
    );
  });

  it("are done once though the reply is lost and the server forgets tokens", async () => {
    const here = await parkedScene(["001", "003"]);
    here.broken.clear();
    engine.proxy.when("TransactWriteItems", ["strip-token", "lost-reply"], { times: 2 });
    expect(await here.go({ parked: "all" })).toMatchObject({ outcome: "succeeded", items: 2 });
    expect(await here.rows()).toEqual(onceEach(numbers(6)));
  });

  it("may have as many writes as any item of a job that parks", async () => {
    const most = (run: RunInfo, item: string, count: number) =>
      Array.from({ length: count }, (_, at) => row(run, `${item}-${at}`));
    let broken = true;
    const here = sourceScene(
      engine,
      arraySource(["a", "b"]),
      (item, run) => {
        if (broken) throw new Error("broken");
        return most(run, item, item === "a" ? 98 : 99);
      },
      { clock: clock(), onItemError: "park", maxAttempts: 1 },
    );
    await here.go();
    broken = false;
    const report = await here.go({ parked: "all" });
    // The write that takes an item out of the parked ones needs room beside its work.
    expect(report).toMatchObject({ outcome: "failed", items: 1 });
    expect(report.error?.message).toContain("returned 99 writes, and one item takes at most 98");
    expect(Object.keys(await here.rows())).toHaveLength(98);
    expect((await here.parked()).map(({ key }) => key)).toEqual(["2"]);
  });

  it("are a matter of jobs with a source", async () => {
    const here = await parkedScene(["001"]);
    const { defineJob } = await import("cronfence");
    const other = defineJob({ name: here.name, timeout: "1m", run: () => {} });
    const report = await runJob(
      other,
      { kind: "manual", parked: "all" },
      { store: engine.store, clock: clock(), log: here.log.log },
    );
    expect(report).toMatchObject({ outcome: "failed", error: { code: "INVALID_OPTIONS" } });
    expect(await here.parked()).toHaveLength(1);
  });

  it("change nothing in a dry run", async () => {
    const here = await parkedScene(["001"]);
    here.broken.clear();
    const before = await dumpTable(engine.client, results);
    expect(await here.go({ parked: "all", dryRun: true })).toMatchObject({ outcome: "dry_run", wouldWrite: 2 });
    expect(await here.parked()).toHaveLength(1);
    expect(await dumpTable(engine.client, results)).toEqual(before);
  });
});

describe("A parked item that is dropped", () => {
  it("is gone, with a record of who did it and why", async () => {
    const here = sourceScene(engine, arraySource(["a", "b"]), poisoned(["b"]), { clock: clock(), onItemError: "park" });
    await here.go();
    const drop = (key: string) =>
      engine.store.dropParked(here.name, key, { by: "ann", why: "a test order" }, now + 5_000, budgetOn(here.clock));
    await drop("2");
    expect(await here.parked()).toEqual([]);
    const acts = (await dumpTable(engine.client, controlTable)).filter(
      ({ pk, sk }) => pk === `job#${here.name}` && String(sk).startsWith("act#"),
    );
    expect(acts).toMatchObject([{ kind: "drop", by: "ann", why: "a test order", key: "2", at: now + 5_000 }]);
    await expect(drop("2")).rejects.toThrow('no item is parked under "2"');
    expect(await here.go({ parked: ["2"] })).toMatchObject({ outcome: "failed" });
    expect(await here.rows()).toEqual(onceEach(["a"]));
  });

  it("is dropped once though the reply is lost", async () => {
    const here = sourceScene(engine, arraySource(["a"]), poisoned(["a"]), { clock: clock(), onItemError: "park" });
    await here.go();
    const store = engine.faulty({ requestTimeoutMs: 10_000 });
    engine.proxy.next("TransactWriteItems", ["strip-token", "lost-reply"]);
    await store.dropParked(here.name, "1", { by: "ann", why: "test" }, now, budgetOn(clock()));
    expect(await here.parked()).toEqual([]);
  });

  it("isn't dropped by a request that is repeated late, once it has been parked again", async () => {
    const here = sourceScene(engine, arraySource(["a"]), poisoned(["a"]), { clock: clock(), onItemError: "park" });
    await here.go();
    const rule = engine.proxy.next("TransactWriteItems", "strip-token");
    await engine.faulty().dropParked(here.name, "1", { by: "ann", why: "test" }, now, budgetOn(clock()));
    await engine.store.rewind(here.name, null, { by: "ann", why: "test" }, now, budgetOn(clock()));
    await here.go();
    await engine.proxy.replay(await rule.hit);
    expect(await here.parked()).toHaveLength(1);
  });
});
