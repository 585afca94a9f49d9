/**
 * Whatever the items and their sizes, the pages, the bounds and the faults: in the end each item's effect is in the
 * database exactly once, or the item is parked with its error, or it was skipped because its own condition didn't hold.
 */
import { type DynamoStore, defineJob, type Job, type RunInfo, runJob, type Write } from "cronfence";
import { fromAsyncIterable, type Source } from "cronfence/sources";
import { dumpTable, type SingleFault, settableClock } from "cronfence/testing";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { budgetOn, freshName, useEngine } from "../fixture.ts";
import { gate, never } from "../gate.ts";
import { recordedLog } from "../recorded-log.ts";
import { arraySource } from "./array-source.ts";
import { newRow, now, results, row, sourceScene } from "./scene.ts";

const engine = useEngine(results);
afterEach(() => engine.proxy.reset());

const effects = async (name: string): Promise<Map<string, number>> =>
  new Map(
    (await dumpTable(engine.client, results))
      .filter(({ id }) => String(id).startsWith(`${name}/`))
      .map(({ id, times }) => [String(id).slice(name.length + 1), Number(times)]),
  );

type Kind = "good" | "poison" | "refused" | "flaky";

const items = fc.array(
  fc.record({
    kind: fc.oneof(
      { weight: 8, arbitrary: fc.constant<Kind>("good") },
      { weight: 1, arbitrary: fc.constant<Kind>("poison") },
      { weight: 1, arbitrary: fc.constant<Kind>("refused") },
      { weight: 1, arbitrary: fc.constant<Kind>("flaky") },
    ),
    writes: fc.oneof(
      { weight: 6, arbitrary: fc.integer({ min: 0, max: 5 }) },
      { weight: 1, arbitrary: fc.integer({ min: 30, max: 97 }) },
    ),
    /** How often a flaky one fails before it goes well. */
    failures: fc.integer({ min: 1, max: 2 }),
  }),
  { maxLength: 60 },
);

/** What becomes of the n-th transaction that a run sends. */
type Trouble = SingleFault | readonly SingleFault[] | "crash before" | "crash after";
const trouble = fc.constantFrom<Trouble>(
  "lost-reply",
  "drop",
  "500-before",
  "500-after",
  "throttle",
  { duplicate: "first" },
  { duplicate: "second" },
  ["strip-token", "lost-reply"],
  { conflict: true },
  "crash before",
  "crash after",
);
const plans = fc.record({
  items,
  pageSize: fc.integer({ min: 1, max: 40 }),
  concurrency: fc.integer({ min: 1, max: 5 }),
  limit: fc.record(
    {
      items: fc.integer({ min: 1, max: 30 }),
      pages: fc.integer({ min: 1, max: 4 }),
      transactions: fc.integer({ min: 1, max: 3 }),
    },
    { requiredKeys: [] },
  ),
  iterable: fc.boolean(),
  /** By the number of the transaction, over all runs. */
  troubles: fc.dictionary(fc.integer({ min: 0, max: 12 }).map(String), trouble, { maxKeys: 4 }),
});

/** A store that dies at one of its commits or finishes: what comes after it never arrives. */
const mortal = (store: DynamoStore, next: () => Trouble | undefined, died: () => Promise<void>): DynamoStore => {
  let dead = false;
  const guarded =
    <Args extends unknown[], Result>(send: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      if (dead) return never();
      const planned = next();
      if (planned === "crash before" || planned === "crash after") {
        dead = true;
        if (planned === "crash after") await send(...args).catch(() => {});
        await died();
        return never();
      }
      if (planned !== undefined) engine.proxy.next("TransactWriteItems", planned);
      const result = await send(...args);
      return dead ? never() : result;
    };
  return {
    ...store,
    commit: guarded(store.commit.bind(store)),
    finish: guarded(store.finish.bind(store)),
    renew: async (...args) => (dead ? never() : store.renew(...args)),
  };
};

describe("A source job, in the end,", () => {
  it("has done each item exactly once, or parked or skipped it, whatever goes wrong on the way", async () => {
    await fc.assert(
      fc.asyncProperty(plans, async ({ items, pageSize, concurrency, limit, iterable, troubles }) => {
        engine.proxy.reset();
        const name = freshName();
        const all = items.map((item, at) => ({ ...item, at }));
        const failures = new Map<number, number>();
        const process = async (
          { at, kind, writes, failures: most }: (typeof all)[number],
          run: RunInfo,
        ): Promise<Write[]> => {
          if (kind === "poison") throw new Error(`item ${at} is broken`);
          const failed = failures.get(at) ?? 0;
          failures.set(at, failed + 1);
          // The same again after a crash: a process that starts anew has forgotten it.
          if (kind === "flaky" && failed % (most + 1) < most) throw new Error(`item ${at} is busy`);
          const rows = Array.from({ length: writes }, (_, part) => row(run, `${at}/${part}`));
          return kind === "refused"
            ? [...rows, row(run, `${at}/never`, { ConditionExpression: "attribute_exists(id)" })]
            : rows;
        };
        const paged: Source<(typeof all)[number]> = iterable
          ? fromAsyncIterable<(typeof all)[number], number>({
              name: "an iterable",
              items: (after) => all.slice(after ?? 0),
              cursor: ({ at }) => at + 1,
              pageSize,
            })
          : arraySource(all, pageSize);
        const clock = settableClock(now, { autoAdvance: { atMostMs: 5_000 } });
        const log = recordedLog();
        const job = defineJob({
          name,
          timeout: "5m",
          source: paged,
          process,
          limit,
          concurrency,
          onItemError: "park",
          maxParked: 100,
        } as unknown as Parameters<typeof defineJob>[0]) as Job;
        const store = engine.faulty({ requestTimeoutMs: 10_000 });
        let sent = 0;
        let outcome = "";
        let tick = now;
        for (let runs = 0; outcome !== "succeeded"; runs += 1) {
          if (runs > 200) throw new Error("it doesn't come to an end");
          const crash = gate();
          const dying = mortal(store, () => troubles[String(sent++)], crash.pass);
          tick += 60_000;
          const trigger = { kind: "schedule", tick } as const;
          const running = runJob(job, trigger, { store: dying, clock, log: log.log, random: () => 0 });
          const ended = await Promise.race([running, crash.reached]);
          if (ended === undefined) {
            // The dead run's lease is over after its ttl and the skew.
            clock.advance(45_000);
            continue;
          }
          outcome = ended.outcome;
          expect(["succeeded", "capped", "duplicate"]).toContain(outcome);
          if (outcome === "duplicate") outcome = "succeeded";
          if (outcome === "succeeded") {
            const mark = (await engine.store.read(name, budgetOn(clock)))?.watermark;
            // A crash after the finish was applied, and a bound in it: the tick is done, and there is more.
            if ((mark ?? 0) !== all.length) outcome = "";
          }
        }
        const rows = await effects(name);
        const wanted = all.flatMap(({ at, kind, writes }) =>
          kind === "good" || kind === "flaky"
            ? Array.from({ length: writes }, (_, part): [string, number] => [`${at}/${part}`, 1])
            : [],
        );
        expect(rows).toEqual(new Map(wanted));
        const parked = (await engine.store.parked(name, { limit: 100 }, budgetOn(clock))).items;
        expect(parked.map(({ cursor, error }) => [cursor, error.message]).sort()).toEqual(
          all
            .filter(({ kind }) => kind === "poison")
            .map(({ at }) => [at + 1, `item ${at} is broken`])
            .sort(),
        );
        const skipped = new Set(
          log.lines.filter(({ message }) => message.startsWith("an item was skipped")).map(({ cursor }) => cursor),
        );
        expect(skipped).toEqual(new Set(all.filter(({ kind }) => kind === "refused").map(({ at }) => at + 1)));
        // What the records count is what was done, also by runs that crashed.
        const records = (await engine.store.runs(name, { limit: 100 }, budgetOn(clock))).runs;
        const counted = records.reduce((sum, record) => sum + record.items, 0);
        expect(counted).toBe(all.filter(({ kind }) => kind === "good" || kind === "flaky").length);
      }),
      { numRuns: 60, endOnFailure: false },
    );
  }, 300_000);
});

describe("An item's writes", () => {
  it.each(Array.from({ length: 99 }, (_, at) => at + 1).filter((count) => count < 4 || count > 95 || count % 8 === 1))(
    "go into one transaction, %i of them, as many items to each as fit",
    async (count) => {
      const amount = Math.max(3, Math.ceil(250 / count));
      const here = sourceScene(engine, arraySource(Array.from({ length: amount }, (_, at) => at)), (item, run) =>
        Array.from({ length: count }, (_, part) => newRow(run, `${item}/${part}`)),
      );
      await engine.store.create(here.name, now - 1, budgetOn(here.clock));
      expect(await here.go()).toMatchObject({ outcome: "succeeded", items: amount });
      const most = Math.floor(99 / count);
      const commits = engine.proxy.requests
        .filter(({ operation }) => operation === "TransactWriteItems")
        .map(
          ({ body }) =>
            body.TransactItems.filter(({ Update }: { Update?: { TableName: string } }) => Update?.TableName === results)
              .length,
        )
        .filter((writes) => writes > 0);
      const full = Math.floor(amount / most);
      const rest = amount % most;
      expect(commits).toEqual([...Array(full).fill(most * count), ...(rest > 0 ? [rest * count] : [])]);
      expect(await effects(here.name)).toEqual(
        new Map(
          Array.from({ length: amount }, (_, item) =>
            Array.from({ length: count }, (_, part): [string, number] => [`${item}/${part}`, 1]),
          ).flat(),
        ),
      );
    },
  );

  it.each([100, 101, 150])(
    "are refused where there are %i of them, before anything of the item is sent",
    async (count) => {
      const here = sourceScene(engine, arraySource(["a"]), (item, run) =>
        Array.from({ length: count }, (_, part) => row(run, `${item}/${part}`)),
      );
      const report = await here.go();
      expect(report).toMatchObject({ outcome: "failed", items: 0, error: { code: "COMMIT_REFUSED" } });
      expect(report.error?.message).toContain(`returned ${count} writes, and one item takes at most 99`);
      expect(await effects(here.name)).toEqual(new Map());
    },
  );
});
