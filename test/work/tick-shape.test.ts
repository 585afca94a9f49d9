import {
  cron,
  type DynamoStore,
  defineJob,
  type Job,
  type RunReport,
  runJob,
  type Tick,
  type TickRun,
  type Write,
} from "cronfence";
import { dumpTable, type ProxiedRequest, settableClock } from "cronfence/testing";
import { afterEach, describe, expect, it } from "vitest";
import { budgetOn, freshName, silentLog, useEngine } from "../fixture.ts";
import { gate, never } from "../gate.ts";

const engine = useEngine("results");
afterEach(() => engine.proxy.reset());

const instant = (time: string) => Date.parse(`2026-03-01T${time}:00Z`);
const iso = (time: string) => new Date(instant(time)).toISOString();

type TickWork = (tick: Tick, run: TickRun) => unknown;

/** A job that is due every ten minutes and known since 11:05, on a clock that stands at 11:45, behind the proxy. */
const setting = async (
  work: TickWork,
  {
    name = freshName(),
    clock = settableClock(instant("11:45")),
    store,
    ...options
  }: Record<string, unknown> & {
    name?: string;
    clock?: ReturnType<typeof settableClock>;
    store?: DynamoStore;
  } = {},
) => {
  const job = defineJob({
    schedule: cron("*/10 * * * *"),
    timeout: "5m",
    ...options,
    name,
    tick: work,
  } as unknown as Parameters<typeof defineJob>[0]) as Job;
  await engine.store.create(name, instant("11:05"), budgetOn(clock));
  const deps = { store: store ?? engine.faulty({ requestTimeoutMs: 10_000 }), clock, log: silentLog, random: () => 0 };
  return {
    name,
    clock,
    tick: (time: string): Promise<RunReport> => runJob(job, { kind: "schedule", tick: instant(time) }, deps),
    state: async () => (await engine.store.read(name, budgetOn(clock)))!,
    records: async () => (await engine.store.runs(name, { limit: 50 }, budgetOn(clock))).runs.toReversed(),
    rows: async () =>
      (await dumpTable(engine.client, "results"))
        .map(({ id }) => String(id))
        .filter((id) => id.startsWith(`${name}/`))
        .map((id) => id.slice(name.length + 1)),
  };
};

/** A row that a second write of it would be refused by. */
const row = (run: { readonly job: string }, what: string | number): Write => ({
  Put: { TableName: "results", Item: { id: `${run.job}/${what}` }, ConditionExpression: "attribute_not_exists(id)" },
});
const rows = (run: { readonly job: string }, count: number): Write[] =>
  Array.from({ length: count }, (_, at) => row(run, String(at).padStart(3, "0")));

/** What a transaction sets `tick` to on the control item, and how many of the user's writes it carries. */
const transactions = () =>
  engine.proxy.requests
    .filter(({ operation }) => operation === "TransactWriteItems")
    .map(({ body }: ProxiedRequest) => {
      const [control, ...others] = body.TransactItems;
      const tick = control.Update.ExpressionAttributeValues[":tick"]?.N;
      return {
        ...(tick === undefined ? {} : { tick: new Date(Number(tick)).toISOString().slice(11, 16) }),
        writes: others.filter((action: { Put?: { TableName: string } }) => action.Put?.TableName === "results").length,
      };
    });

describe("A tick job", () => {
  it("does each due tick by itself, oldest first, the last one together with the end of the run", async () => {
    const called: string[] = [];
    const {
      tick,
      state,
      rows: written,
    } = await setting((due, run) => {
      called.push(due.id);
      expect(due.at.toISOString()).toBe(due.id);
      return [row(run, due.id)];
    });
    expect(await tick("11:30")).toMatchObject({ outcome: "succeeded", items: 3, commits: 3, ticks: { count: 3 } });
    expect(called).toEqual([iso("11:10"), iso("11:20"), iso("11:30")]);
    expect(transactions()).toEqual([
      { tick: "11:10", writes: 1 },
      { tick: "11:20", writes: 1 },
      { tick: "11:30", writes: 1 },
    ]);
    expect(engine.proxy.requests).toHaveLength(4);
    expect(await written()).toEqual(called);
    expect(await state()).toMatchObject({ tick: instant("11:30") });
  });

  it.each([
    ["nothing", () => undefined, 0],
    ["no writes", () => [], 0],
    ["one write", (_: Tick, run: TickRun) => rows(run, 1), 1],
    ["as many writes as fit beside the run's end", (_: Tick, run: TickRun) => rows(run, 98), 98],
  ])("takes two round trips for one tick with %s", async (_, work, writes) => {
    const { tick, state } = await setting(work);
    expect(await tick("11:10")).toMatchObject({ outcome: "succeeded", items: writes });
    expect(engine.proxy.requests.map(({ operation }) => operation)).toEqual(["UpdateItem", "TransactWriteItems"]);
    expect(transactions()).toEqual([{ tick: "11:10", writes }]);
    expect(await state()).toMatchObject({ tick: instant("11:10") });
  });

  it("takes one more where the writes fill a transaction of their own", async () => {
    const { tick, rows: written } = await setting((_, run) => rows(run, 99));
    expect(await tick("11:10")).toMatchObject({ outcome: "succeeded", items: 99 });
    expect(transactions().map(({ writes }) => writes)).toEqual([99, 0]);
    expect(await written()).toHaveLength(99);
  });

  it("makes a tick's watermark visible with its last writes", async () => {
    const marks: unknown[] = [];
    const { tick, state } = await setting((due, run) => {
      marks.push(run.watermark);
      return { writes: rows(run, marks.length === 1 ? 120 : 0), watermark: due.id };
    });
    await tick("11:20");
    expect(marks).toEqual([undefined, iso("11:10")]);
    expect(await state()).toMatchObject({ watermark: iso("11:20") });
    const marked = engine.proxy.requests
      .filter(({ operation }) => operation === "TransactWriteItems")
      .map(({ body }) => body.TransactItems[0].Update.ExpressionAttributeValues[":watermark"]?.S);
    expect(marked).toEqual([undefined, JSON.stringify(iso("11:10")), JSON.stringify(iso("11:20"))]);
  });

  it("may commit by itself in between, without completing anything by that", async () => {
    const working = gate();
    const {
      tick,
      state,
      rows: written,
    } = await setting(async (due, run) => {
      await run.commit([row(run, `${due.id} first`)]);
      await working.pass();
      return [row(run, due.id)];
    });
    const running = tick("11:10");
    await working.reached;
    expect(await state()).not.toHaveProperty("tick");
    expect(await written()).toEqual([`${iso("11:10")} first`]);
    working.open();
    expect(await running).toMatchObject({ outcome: "succeeded", commits: 2 });
    expect(await written()).toEqual([iso("11:10"), `${iso("11:10")} first`]);
  });

  it("keeps the ticks that were done before one that fails", async () => {
    let broken = true;
    const {
      tick,
      state,
      rows: written,
      records,
      clock,
    } = await setting((due, run) => {
      if (due.id === iso("11:20") && broken) throw new Error("the supplier is closed");
      return [row(run, due.id)];
    });
    expect(await tick("11:30")).toMatchObject({ outcome: "failed", items: 1 });
    expect(await state()).toMatchObject({ tick: instant("11:10") });
    expect(await written()).toEqual([iso("11:10")]);
    broken = false;
    clock.advance(1_000);
    expect(await tick("11:30")).toMatchObject({ outcome: "succeeded", ticks: { from: iso("11:20"), count: 2 } });
    expect(await written()).toEqual([iso("11:10"), iso("11:20"), iso("11:30")]);
    expect(await records()).toMatchObject([{ completed: instant("11:10") }, { completed: instant("11:30") }]);
  });
});

describe("A tick of more writes than one transaction holds", () => {
  it("is written in several, of which only the last completes it", async () => {
    const { tick, state, rows: written } = await setting((_, run) => rows(run, 250));
    expect(await tick("11:10")).toMatchObject({ outcome: "succeeded", items: 250, commits: 3 });
    expect(transactions()).toEqual([{ writes: 99 }, { writes: 99 }, { tick: "11:10", writes: 52 }]);
    expect(await written()).toHaveLength(250);
    expect(await state()).not.toHaveProperty("tickPart");
  });

  it.each([0, 1, 2])(
    "is resumed after a crash behind %i of its transactions, and each write is made once",
    async (survived) => {
      const crashing = gate();
      // A process that dies has no clock, and none of its requests goes out any more.
      let sent = 0;
      const dying: DynamoStore = {
        ...engine.store,
        commit: (...request) => (sent++ < survived ? engine.store.commit(...request) : crashing.pass().then(never)),
        finish: () => crashing.pass().then(never),
      };
      const dead = await setting((_, run) => rows(run, 250), { store: dying });
      void dead.tick("11:10");
      await crashing.reached;
      expect(await dead.rows()).toHaveLength(survived * 99);

      const calls: string[] = [];
      const next = await setting(
        (due, run) => {
          calls.push(due.id);
          return rows(run, 250);
        },
        { name: dead.name, clock: settableClock(instant("11:46")) },
      );
      if (survived > 0) {
        expect(await next.state()).toMatchObject({
          tickPart: { tick: instant("11:10"), done: survived * 99, total: 250 },
        });
      }
      expect(await next.tick("11:10")).toMatchObject({ outcome: "succeeded", items: 250 - survived * 99 });
      expect(calls).toEqual([iso("11:10")]);
      expect(await next.rows()).toHaveLength(250);
      expect(await next.records()).toMatchObject([
        { outcome: "crashed", commits: survived, items: survived * 99 },
        { outcome: "succeeded" },
      ]);
      expect(await next.state()).toMatchObject({ tick: instant("11:10") });
      expect(await next.state()).not.toHaveProperty("tickPart");
    },
  );

  it("fails if it comes back with another number of writes: half of the old ones are made", async () => {
    let broken = true;
    const {
      tick,
      state,
      rows: written,
    } = await setting((_, run) => {
      if (!broken) return rows(run, 249);
      // The second transaction is rejected.
      return [...rows(run, 120), row(run, "000")];
    });
    expect(await tick("11:10")).toMatchObject({ outcome: "failed", error: { code: "WRITE_REJECTED" } });
    expect(await state()).toMatchObject({ tickPart: { done: 99, total: 121 } });
    broken = false;
    engine.proxy.reset();
    expect(await tick("11:10")).toMatchObject({
      outcome: "failed",
      error: {
        name: "TickChangedError",
        code: "TICK_CHANGED",
        message: expect.stringContaining(`tick ${iso("11:10")} was half done with 121 writes in all, and now has 249`),
      },
    });
    expect(transactions()).toEqual([{ writes: 0 }]);
    expect(await written()).toHaveLength(99);
    expect(await state()).toMatchObject({ tickPart: { done: 99, total: 121 } });
    expect(await state()).not.toHaveProperty("tick");
  });
});

describe("A tick job that runs out of time", () => {
  it("is capped: only the ticks whose last write is committed are completed, and the next run does the others", async () => {
    const called: string[] = [];
    const slow = await setting(
      (due, run) => {
        called.push(due.id);
        // Two of these fit into its five minutes, and three don't.
        slow.clock.advance(120_000);
        return [row(run, due.id)];
      },
      { ttl: "10m" },
    );
    expect(await slow.tick("11:40")).toMatchObject({
      outcome: "capped",
      backlog: `ticks after ${iso("11:20")}`,
      ticks: { count: 4 },
      items: 2,
    });
    expect(called).toEqual([iso("11:10"), iso("11:20")]);
    expect(await slow.state()).toMatchObject({ tick: instant("11:20"), failedTicks: 0 });
    expect(await slow.state()).not.toHaveProperty("owner");
    expect(await slow.tick("11:40")).toMatchObject({ outcome: "succeeded", ticks: { from: iso("11:30"), count: 2 } });
    expect(await slow.rows()).toEqual(["11:10", "11:20", "11:30", "11:40"].map(iso));
  });

  it("stops in the middle of a large tick, which completes nothing, and goes on there", async () => {
    const slow = await setting(
      (_, run) => {
        // Until the second of three transactions there is time.
        engine.proxy.next("TransactWriteItems", {});
        engine.proxy.next("TransactWriteItems", { before: () => slow.clock.advance(299_950) });
        return rows(run, 250);
      },
      { ttl: "10m" },
    );
    expect(await slow.tick("11:10")).toMatchObject({
      outcome: "capped",
      backlog: `the rest of tick ${iso("11:10")}, and those after it`,
      items: 198,
    });
    expect(await slow.state()).toMatchObject({ tickPart: { tick: instant("11:10"), done: 198, total: 250 } });
    expect(await slow.state()).not.toHaveProperty("tick");
    const next = await setting((_, run) => rows(run, 250), { name: slow.name, clock: slow.clock });
    expect(await next.tick("11:10")).toMatchObject({ outcome: "succeeded", items: 52 });
    expect(await next.rows()).toHaveLength(250);
  });
});

describe("A tick that is queued behind a tick job", () => {
  it("is done in the same run, with those in between, also when the last writes had a transaction of their own", async () => {
    const working = gate();
    const {
      tick,
      rows: written,
      state,
      records,
    } = await setting(async (due, run) => {
      await working.pass();
      return due.id === iso("11:10") ? rows(run, 99) : [row(run, due.id)];
    });
    const running = tick("11:10");
    await working.reached;
    expect(await tick("11:40")).toMatchObject({ outcome: "queued" });
    working.open();
    expect(await running).toMatchObject({
      outcome: "succeeded",
      ticks: { from: iso("11:10"), through: iso("11:40"), count: 4 },
      items: 102,
    });
    expect((await written()).slice(99)).toEqual([iso("11:20"), iso("11:30"), iso("11:40")]);
    expect(await state()).toMatchObject({ tick: instant("11:40") });
    expect(await records()).toHaveLength(1);
  });
});
