/** Every way in which an attempt ends: what is reported, recorded, counted and completed by it. */
import {
  cron,
  defineJob,
  type Job,
  type Run,
  type RunDeps,
  type RunReport,
  runJob,
  type Tick,
  type TickRun,
  type Trigger,
} from "cronfence";
import { dumpTable, type SettableClock, settableClock } from "cronfence/testing";
import { afterEach, describe, expect, it } from "vitest";
import { budgetOn, controlTable, freshName, useEngine } from "../fixture.ts";
import { gate, never } from "../gate.ts";
import { recordedLog } from "../recorded-log.ts";

const engine = useEngine("results");
afterEach(() => engine.proxy.reset());

const everyTenMinutes = cron("*/10 * * * *");
const instant = (time: string) => Date.parse(`2026-03-01T${time}:00Z`);
const iso = (time: string) => new Date(instant(time)).toISOString();

/** A job and all it meets. The clock stands at 11:25; the job is known since 11:05. */
const setting = async (
  options: Record<string, unknown>,
  { deps = {}, of }: { deps?: RunDeps; of?: { name: string; clock: SettableClock } } = {},
) => {
  const clock = of?.clock ?? settableClock(instant("11:25"));
  const name = of?.name ?? freshName();
  const { log, lines } = recordedLog();
  const job = defineJob({ schedule: everyTenMinutes, timeout: "5m", ...options, name } as Parameters<
    typeof defineJob
  >[0]) as Job;
  if (of === undefined) await engine.store.create(name, instant("11:05"), budgetOn(clock));
  const go = (trigger: Trigger): Promise<RunReport> =>
    runJob(job, trigger, { store: engine.store, clock, log, random: () => 0, ...deps });
  return {
    clock,
    name,
    lines,
    go,
    /** For the tick of a time of the day. */
    tick: (time: string, trigger: Partial<Trigger> = {}) => go({ kind: "schedule", tick: instant(time), ...trigger }),
    byHand: (trigger: Partial<Trigger> = {}) => go({ kind: "manual", ...trigger }),
    state: async () => (await engine.store.read(name, budgetOn(clock)))!,
    /** Oldest first. */
    records: async () =>
      (await engine.store.runs(name, { limit: 50 }, budgetOn(clock))).runs.toSorted(
        (a, b) => a.startedAt - b.startedAt || (a.fence ?? 0) - (b.fence ?? 0),
      ),
    /** Of the user's table, without the job's name. */
    rows: async () =>
      (await dumpTable(engine.client, "results"))
        .map(({ id }) => String(id))
        .filter((id) => id.startsWith(`${name}/`))
        .map((id) => id.slice(name.length + 1)),
  };
};

const rowFor = (name: string, what: string) => ({
  Put: { TableName: "results", Item: { id: `${name}/${what}` }, ConditionExpression: "attribute_not_exists(id)" },
});
const tickRow = (tick: Tick, run: { readonly job: string }) => [rowFor(run.job, tick.id)];

const failing = () => {
  throw Object.assign(new Error("the supplier is closed"), { name: "SupplierError", code: "CLOSED" });
};

describe("succeeded", () => {
  it("records all there is to know, completes the ticks, and gives the lease back", async () => {
    const { tick, records, state, name, clock } = await setting(
      {
        run: async (run: Run) => {
          await run.commit([rowFor(run.job, "a"), rowFor(run.job, "b")], { watermark: { at: 2 }, items: 5 });
          clock.advance(1_500);
          run.commitAtEnd([rowFor(run.job, "c")], { watermark: { at: 3 } });
        },
      },
      { deps: { version: "v42" } },
    );
    const report = await tick("11:20", { requestId: "request-1" });
    expect(report).toEqual({
      job: name,
      outcome: "succeeded",
      run: expect.any(String),
      fence: instant("11:25") / 1_000 + 1,
      tick: iso("11:20"),
      ticks: { from: iso("11:10"), through: iso("11:20"), count: 2 },
      items: 6,
      commits: 2,
      durationMs: 1_500,
      nextTick: iso("11:30"),
      version: "v42",
    });
    const [record] = await records();
    expect(record).toMatchObject({
      job: name,
      id: report.run,
      owner: expect.any(String),
      fence: report.fence,
      outcome: "succeeded",
      trigger: "schedule",
      requestId: "request-1",
      version: "v42",
      startedAt: instant("11:25"),
      endedAt: instant("11:25") + 1_500,
      ticks: { from: instant("11:10"), through: instant("11:20"), count: 2 },
      completed: instant("11:20"),
      items: 6,
      commits: 2,
      watermarkAfter: { at: 3 },
      nextTick: instant("11:30"),
    });
    const after = await state();
    expect(after).toMatchObject({
      fence: report.fence,
      since: instant("11:05"),
      prev: [],
      recentOwners: [record?.owner],
      tick: instant("11:20"),
      watermark: { at: 3 },
      unfinished: 0,
      failedTicks: 0,
      lastSuccessAt: instant("11:25") + 1_500,
      recent: [{ durationMs: 1_500, items: 6 }],
    });
    for (const gone of ["owner", "leaseUntil", "run", "pending", "lastFailedTick"])
      expect(after).not.toHaveProperty(gone);
  });

  it("ends a row of failures", async () => {
    let broken = true;
    const { tick, state, clock } = await setting({ run: () => (broken ? failing() : undefined) });
    await tick("11:10");
    await tick("11:20");
    expect(await state()).toMatchObject({ failedTicks: 2, lastFailedTick: instant("11:20") });
    broken = false;
    clock.advance(1_000);
    await tick("11:20");
    expect(await state()).toMatchObject({ failedTicks: 0, unfinished: 0, lastSuccessAt: instant("11:25") + 1_000 });
    expect(await state()).not.toHaveProperty("lastFailedTick");
  });

  it("keeps what the last twenty runs took", async () => {
    const { tick, state, clock } = await setting({ run: (run: Run) => run.commitAtEnd([], { items: 7 }) });
    for (let at = 0; at < 22; at += 1) {
      clock.set(instant("11:30") + at * 600_000);
      expect(await tick("11:30", { tick: instant("11:30") + at * 600_000 })).toMatchObject({ outcome: "succeeded" });
    }
    expect((await state()).recent).toEqual(Array(20).fill({ durationMs: 0, items: 7 }));
    expect((await state()).recentOwners).toHaveLength(8);
  });
});

describe("capped", () => {
  it("is a success with a backlog: it completes the tick, and keeps what is queued behind it", async () => {
    const working = gate();
    const { tick, records, state } = await setting({
      run: async (run: Run) => {
        await working.pass();
        run.capped("3 carts");
      },
    });
    const running = tick("11:10");
    await working.reached;
    expect(await tick("11:20")).toMatchObject({ outcome: "queued" });
    working.open();
    expect(await running).toMatchObject({ outcome: "capped", backlog: "3 carts" });
    expect(await records()).toMatchObject([{ outcome: "capped", backlog: "3 carts", completed: instant("11:10") }]);
    expect(await state()).toMatchObject({
      tick: instant("11:10"),
      pending: instant("11:20"),
      failedTicks: 0,
      lastSuccessAt: instant("11:25"),
      recent: [{ items: 0 }],
    });
    // The next run covers what was queued, whatever it was started for.
    expect(await tick("11:20")).toMatchObject({ outcome: "capped", ticks: { count: 1 } });
  });
});

describe("failed", () => {
  it("leaves the tick owed, records what was thrown, and writes nothing that was kept for the end", async () => {
    const { tick, records, state, rows } = await setting({
      run: async (run: Run) => {
        await run.commit([rowFor(run.job, "first")], { watermark: 1 });
        run.commitAtEnd([rowFor(run.job, "last")], { watermark: 2 });
        failing();
      },
    });
    const report = await tick("11:20");
    expect(report).toMatchObject({
      outcome: "failed",
      items: 1,
      commits: 1,
      error: { name: "SupplierError", code: "CLOSED", message: "the supplier is closed" },
    });
    expect(report.thrown).toMatchObject({ message: "the supplier is closed" });
    expect(Object.keys(report)).not.toContain("thrown");
    const [record] = await records();
    expect(record).toMatchObject({ outcome: "failed", commits: 1, watermarkAfter: 1, error: report.error });
    expect(record).not.toHaveProperty("completed");
    expect(await rows()).toEqual(["first"]);
    const after = await state();
    expect(after).toMatchObject({ watermark: 1, failedTicks: 1, lastFailedTick: instant("11:20"), unfinished: 0 });
    for (const gone of ["tick", "owner", "leaseUntil", "run", "lastSuccessAt"]) expect(after).not.toHaveProperty(gone);
  });

  it("says so where nothing was thrown, too", async () => {
    const { tick, records, lines } = await setting({ run: () => Promise.reject() });
    const error = { name: "Error", message: "the job's code threw undefined" };
    expect(await tick("11:20")).toMatchObject({ outcome: "failed", error });
    expect(await records()).toMatchObject([{ outcome: "failed", error }]);
    expect(lines.at(-1)).toMatchObject({ level: "error", error });
  });

  it("counts the retries of one tick once, and each other tick", async () => {
    const { tick, byHand, state } = await setting({ run: failing });
    const counts: number[] = [];
    for (const attempt of [
      () => tick("11:10"),
      () => tick("11:10"),
      () => tick("11:20"),
      () => tick("11:20"),
      byHand,
    ]) {
      await attempt();
      counts.push((await state()).failedTicks);
    }
    expect(counts).toEqual([1, 1, 2, 2, 3]);
  });

  it("keeps the tick that is queued behind it, and the next run covers both", async () => {
    const working = gate();
    let broken = true;
    const { tick, state, rows } = await setting({
      tick: async (due: Tick, run: Run) => {
        await working.pass();
        return broken ? failing() : tickRow(due, run);
      },
    });
    const running = tick("11:10");
    await working.reached;
    await tick("11:20");
    working.open();
    expect(await running).toMatchObject({ outcome: "failed" });
    expect(await state()).toMatchObject({ pending: instant("11:20") });
    broken = false;
    expect(await tick("11:10")).toMatchObject({ outcome: "succeeded", ticks: { count: 2 } });
    expect(await rows()).toEqual([iso("11:10"), iso("11:20")]);
    expect(await state()).not.toHaveProperty("pending");
  });

  it.each([
    ["a text", "just text", { name: "Error", message: "just text" }],
    ["nothing", undefined, undefined],
    ["null", null, { name: "Error", message: "null" }],
    ["an error with a message of a megabyte", new Error("x".repeat(1 << 20)), { message: `${"x".repeat(1_999)}…` }],
    ["an error whose code is a number", Object.assign(new Error("no"), { code: 7 }), { name: "Error", message: "no" }],
  ])("can be recorded whatever is thrown: %s", async (_, thrown, error) => {
    const { tick, records } = await setting({ run: () => Promise.reject(thrown) });
    expect(await tick("11:20")).toMatchObject({ outcome: "failed", ...(error && { error }) });
    expect(await records()).toMatchObject([{ outcome: "failed", ...(error && { error }) }]);
  });

  it("is what a run comes to whose commit was rejected without anybody looking", async () => {
    const { tick, rows, state } = await setting({
      run: (run: Run) => {
        void run.commit([
          { Delete: { ...rowFor(run.job, "a").Put, Key: { id: "a" }, ConditionExpression: "attribute_exists(id)" } },
        ]);
        run.commitAtEnd([rowFor(run.job, "b")]);
      },
    });
    expect(await tick("11:20")).toMatchObject({ outcome: "failed", error: { name: "WriteRejectedError" } });
    expect(await rows()).toEqual([]);
    expect(await state()).not.toHaveProperty("tick");
  });

  it("is what a run comes to whose last writes are rejected", async () => {
    const { tick, rows, state, records } = await setting({
      run: async (run: Run) => {
        await run.commit([rowFor(run.job, "a")]);
        run.commitAtEnd([rowFor(run.job, "b"), rowFor(run.job, "a")], { watermark: 9 });
      },
    });
    expect(await tick("11:20")).toMatchObject({
      outcome: "failed",
      commits: 1,
      error: { code: "WRITE_REJECTED", message: expect.stringContaining("write 1: ConditionalCheckFailed") },
    });
    expect(await rows()).toEqual(["a"]);
    expect(await records()).toMatchObject([{ outcome: "failed", commits: 1, items: 1 }]);
    expect(await state()).not.toHaveProperty("watermark");
  });
});

describe("timed_out", () => {
  it("is recorded at the deadline though the work goes on, which then can't write any more", async () => {
    const working = gate();
    let late: Promise<unknown> | undefined;
    let atEnd: unknown;
    const { tick, clock, records, state, rows } = await setting({
      timeout: "1m",
      run: async (run: Run) => {
        await run.commit([rowFor(run.job, "in time")], { watermark: 1 });
        await working.pass();
        late = run.commit([rowFor(run.job, "late")]);
        late.catch(() => {});
        try {
          run.commitAtEnd([rowFor(run.job, "at the end")]);
        } catch (error) {
          atEnd = error;
        }
      },
    });
    const running = tick("11:20");
    await working.reached;
    clock.advance(60_000);
    expect(await running).toMatchObject({
      outcome: "timed_out",
      commits: 1,
      error: { code: "RUN_TIMED_OUT" },
      durationMs: 60_000,
    });
    working.open();
    await expect.poll(() => atEnd).toMatchObject({ code: "RUN_TIMED_OUT" });
    await expect(late).rejects.toMatchObject({ code: "RUN_TIMED_OUT" });
    expect(await rows()).toEqual(["in time"]);
    expect(await records()).toMatchObject([{ outcome: "timed_out", commits: 1, watermarkAfter: 1 }]);
    expect(await state()).toMatchObject({ failedTicks: 1, watermark: 1, unfinished: 0 });
    expect(await state()).not.toHaveProperty("tick");
    expect(clock.timers).toBe(0);
  });
});

describe("lease_lost", () => {
  it("is found by the heartbeat, which aborts the run's signal; the successor's state stands", async () => {
    let signal: AbortSignal | undefined;
    const working = gate();
    const { tick, clock, name, records } = await setting({
      run: async (run: Run) => {
        signal = run.signal;
        await working.pass();
        await never();
      },
    });
    const running = tick("11:10");
    await working.reached;
    const successor = await setting({ overlap: "takeover", tick: tickRow }, { of: { name, clock } });
    expect(await successor.tick("11:20")).toMatchObject({ outcome: "succeeded" });
    const before = await successor.state();
    expect(signal?.aborted).toBe(false);
    clock.advance(10_000);
    expect(await running).toMatchObject({ outcome: "lease_lost", error: { code: "LEASE_LOST" } });
    expect(signal?.aborted).toBe(true);
    expect(signal?.reason).toMatchObject({ code: "LEASE_LOST" });
    // The successor may have recorded it as crashed; the one that lived on knows better.
    expect((await records()).map(({ outcome }) => outcome)).toEqual(["lease_lost", "succeeded"]);
    expect(await successor.state()).toEqual(before);
    expect(clock.timers).toBe(0);
  });

  it("counts a commit that was applied before the lease was lost, though its reply never came", async () => {
    const store = engine.faulty();
    const clock = settableClock(instant("11:25"), { autoAdvance: { atMostMs: 2_000 } });
    const lost = await setting(
      { run: (run: Run) => run.commit([rowFor(run.job, "applied")], { watermark: 1 }) },
      { deps: { store, clock } },
    );
    const successor = await setting({ overlap: "takeover", run: () => {} }, { of: lost });
    // On a server that ignores tokens, the repeated request meets the successor's fence.
    engine.proxy.when("TransactWriteItems", "strip-token");
    engine.proxy.next("TransactWriteItems", [{ after: () => successor.tick("11:20") }, "lost-reply"]);
    expect(await lost.tick("11:10")).toMatchObject({
      outcome: "lease_lost",
      commits: 1,
      error: { message: expect.stringContaining("its last commit was applied") },
    });
    expect(await lost.rows()).toEqual(["applied"]);
    expect(await lost.records()).toMatchObject([
      { outcome: "lease_lost", commits: 1, items: 1, watermarkAfter: 1 },
      { outcome: "succeeded" },
    ]);
  });
});

describe("interrupted", () => {
  it("leaves the tick owed and the failures as they are, and keeps what was queued", async () => {
    const stop = new AbortController();
    const working = gate();
    let signal: AbortSignal | undefined;
    const { tick, state, records } = await setting(
      {
        run: async (run: Run) => {
          signal = run.signal;
          await run.commit([rowFor(run.job, "a")], { watermark: 1 });
          await working.pass();
        },
      },
      { deps: { interrupt: stop.signal } },
    );
    const running = tick("11:10");
    await working.reached;
    await tick("11:20");
    stop.abort("SIGTERM");
    expect(await running).toMatchObject({
      outcome: "interrupted",
      commits: 1,
      error: { code: "RUN_INTERRUPTED", message: expect.stringContaining("SIGTERM") },
    });
    expect(signal?.aborted).toBe(true);
    expect(await records()).toMatchObject([{ outcome: "interrupted", watermarkAfter: 1 }]);
    expect(await state()).toMatchObject({ unfinished: 0, failedTicks: 0, pending: instant("11:20"), watermark: 1 });
    expect(await state()).not.toHaveProperty("tick");
    expect(await state()).not.toHaveProperty("owner");
  });

  it("ends a run that is started when the process is stopping already, before its work has written", async () => {
    const { tick, rows, state } = await setting(
      { run: (run: Run) => run.commit([rowFor(run.job, "a")]) },
      { deps: { interrupt: AbortSignal.abort("SIGTERM") } },
    );
    expect(await tick("11:10")).toMatchObject({ outcome: "interrupted", commits: 0 });
    expect(await rows()).toEqual([]);
    expect(await state()).not.toHaveProperty("owner");
  });
});

describe("cancelled", () => {
  it("is what an operator made of a run that was going; what it kept for the end isn't written", async () => {
    const working = gate();
    const { tick, name, clock, records, state, rows } = await setting({
      run: async (run: Run) => {
        await run.commit([rowFor(run.job, "before")], { watermark: 1 });
        await working.pass();
        run.commitAtEnd([rowFor(run.job, "after")], { watermark: 2 });
      },
    });
    const running = tick("11:20");
    await working.reached;
    await engine.store.cancel(name, { by: "ada", why: "wrong day" }, clock.now(), budgetOn(clock));
    working.open();
    expect(await running).toMatchObject({ outcome: "cancelled", commits: 1, items: 1 });
    expect(await rows()).toEqual(["before"]);
    expect(await records()).toMatchObject([{ outcome: "cancelled", commits: 1, items: 1, reason: "ada: wrong day" }]);
    expect(await state()).toMatchObject({ unfinished: 0, failedTicks: 0, watermark: 1 });
    expect(await state()).not.toHaveProperty("tick");
    expect(await state()).not.toHaveProperty("owner");
    expect(await tick("11:20")).toMatchObject({ outcome: "failed", error: { code: "WRITE_REJECTED" } });
  });

  it("is also what a run is told that commits after it", async () => {
    const working = gate();
    let refused: unknown;
    const { tick, name, clock, rows } = await setting({
      run: async (run: Run) => {
        await working.pass();
        await run.commit([rowFor(run.job, "after")]).catch((error) => {
          refused = error;
          throw error;
        });
      },
    });
    const running = tick("11:20");
    await working.reached;
    await engine.store.cancel(name, { by: "ada", why: "wrong day" }, clock.now(), budgetOn(clock));
    working.open();
    expect(await running).toMatchObject({ outcome: "cancelled", commits: 0 });
    expect(refused).toMatchObject({ code: "LEASE_LOST", lastCommit: "not applied" });
    expect(await rows()).toEqual([]);
  });
});

describe("crashed", () => {
  it("is what a successor records of a run that never finished, with as much as it had committed", async () => {
    const dying = gate();
    const dead = await setting({
      run: async (run: Run) => {
        await run.commit([rowFor(run.job, "a"), rowFor(run.job, "b")], { watermark: 1 });
        await run.commit([rowFor(run.job, "c")], { watermark: 2 });
        await dying.pass();
        await never();
      },
    });
    void dead.tick("11:10", { requestId: "request-1" });
    await dying.reached;
    // The dead one's clock stands still; time goes on for the others.
    const later = settableClock(instant("11:26"));
    const { tick, records, state } = await setting({ run: () => {} }, { of: { name: dead.name, clock: later } });
    expect(await tick("11:20")).toMatchObject({ outcome: "succeeded" });
    expect(await records()).toMatchObject([
      {
        outcome: "crashed",
        commits: 2,
        items: 3,
        requestId: "request-1",
        startedAt: instant("11:25"),
        endedAt: instant("11:26"),
        ticks: { through: instant("11:10") },
      },
      { outcome: "succeeded", watermarkBefore: 2 },
    ]);
    expect(await state()).toMatchObject({ prev: [], unfinished: 0, failedTicks: 0 });
    expect((await state()).recentOwners).toHaveLength(2);
  });

  it("counts as a failure of its tick, once", async () => {
    const dying = gate();
    const dead = await setting({ run: () => dying.pass() });
    void dead.tick("11:10");
    await dying.reached;
    const later = settableClock(instant("11:26"));
    const { tick, state } = await setting({ run: failing }, { of: { name: dead.name, clock: later } });
    await tick("11:10");
    expect(await state()).toMatchObject({ failedTicks: 1 });
    await tick("11:20");
    expect(await state()).toMatchObject({ failedTicks: 2 });
  });
});

describe("guard_tripped", () => {
  it("writes nothing and leaves the tick owed when the work is larger than it may be", async () => {
    const { tick, rows, state, records } = await setting({
      destructive: { max: 1 },
      plan: () => ["a", "b"],
      run: (run: Run) => run.commit([rowFor(run.job, "a"), rowFor(run.job, "b")]),
    });
    expect(await tick("11:20")).toMatchObject({
      outcome: "guard_tripped",
      commits: 0,
      error: { code: "GUARD_TRIPPED" },
    });
    expect(await rows()).toEqual([]);
    expect(await records()).toMatchObject([{ outcome: "guard_tripped" }]);
    expect(await state()).toMatchObject({ failedTicks: 1 });
    expect(await state()).not.toHaveProperty("tick");
  });
});

describe("held, queued, duplicate and paused", () => {
  it("leave no record, call nothing, and say who holds the lease", async () => {
    const working = gate();
    let calls = 0;
    const { tick, byHand, records, state, clock } = await setting({
      run: () => {
        calls += 1;
        return working.pass();
      },
    });
    const running = tick("11:10");
    await working.reached;
    const before = await state();
    for (const attempt of [() => tick("11:10"), () => byHand()]) {
      const report = await attempt();
      expect(report).toMatchObject({
        outcome: "held",
        items: 0,
        commits: 0,
        holder: { run: before.run?.id, fence: before.fence, leaseUntil: new Date(clock.now() + 30_000).toISOString() },
      });
      expect(report).not.toHaveProperty("run");
      expect(report).not.toHaveProperty("fence");
      expect(await state()).toEqual(before);
    }
    expect(await tick("11:20")).toMatchObject({ outcome: "queued", holder: { run: before.run?.id } });
    expect(await state()).toEqual({ ...before, pending: instant("11:20") });
    expect(await records()).toEqual([]);
    expect(calls).toBe(1);
    working.open();
    await running;
  });

  it("duplicate is a tick that has been completed, also by a run for a later one", async () => {
    const { tick, state, records } = await setting({ run: () => {} });
    await tick("11:20");
    const before = await state();
    expect(await tick("11:20")).toMatchObject({ outcome: "duplicate" });
    expect(await tick("11:10")).toMatchObject({ outcome: "duplicate" });
    expect(await state()).toEqual(before);
    expect(await records()).toHaveLength(1);
  });

  it("paused blocks new runs until it ends, and doesn't touch one that is going", async () => {
    const working = gate();
    const { tick, byHand, name, clock, state } = await setting({ run: () => working.pass() });
    const running = tick("11:10");
    await working.reached;
    const until = instant("11:28");
    await engine.store.pause(name, { by: "ada", why: "stocktaking", at: clock.now(), until }, budgetOn(clock));
    working.open();
    expect(await running).toMatchObject({ outcome: "succeeded" });
    const before = await state();
    expect(await tick("11:20")).toMatchObject({ outcome: "paused" });
    expect(await byHand()).toMatchObject({ outcome: "paused" });
    expect(await state()).toEqual(before);
    clock.set(until);
    expect(await tick("11:20")).toMatchObject({ outcome: "succeeded" });
  });

  it("skip leaves a tick owed that comes while another run is going, and the next run covers it", async () => {
    const working = gate();
    const { tick, state, clock, rows } = await setting({
      overlap: "skip",
      tick: async (due: Tick, run: Run) => {
        await working.pass();
        return tickRow(due, run);
      },
    });
    const running = tick("11:10");
    await working.reached;
    expect(await tick("11:20")).toMatchObject({ outcome: "held" });
    working.open();
    expect(await running).toMatchObject({ outcome: "succeeded", ticks: { count: 1 } });
    expect(await state()).not.toHaveProperty("pending");
    clock.set(instant("11:30"));
    expect(await tick("11:30")).toMatchObject({ ticks: { from: iso("11:20"), through: iso("11:30"), count: 2 } });
    expect(await rows()).toEqual([iso("11:10"), iso("11:20"), iso("11:30")]);
  });
});

describe("A tick that is queued behind a run", () => {
  it("is covered by that run, which goes round once more in the time it has", async () => {
    const working = gate();
    const seen: (string | undefined)[] = [];
    const { tick, records, state, name } = await setting({
      run: async (run: Run) => {
        seen.push(run.tick?.id);
        await working.pass();
        run.commitAtEnd([rowFor(run.job, `pass ${seen.length}`)], { watermark: seen.length });
      },
    });
    const running = tick("11:10");
    await working.reached;
    await tick("11:20");
    working.open();
    expect(await running).toMatchObject({
      outcome: "succeeded",
      ticks: { from: iso("11:10"), through: iso("11:20"), count: 2 },
      items: 2,
      commits: 2,
    });
    expect(seen).toEqual([iso("11:10"), iso("11:20")]);
    expect(await records()).toMatchObject([
      { job: name, ticks: { count: 2 }, watermarkAfter: 2, completed: instant("11:20") },
    ]);
    expect(await state()).toMatchObject({ tick: instant("11:20"), watermark: 2 });
    expect(await state()).not.toHaveProperty("pending");
  });

  it("is left to another run where no time is left, which is started once the lease is free", async () => {
    const working = gate();
    const started: unknown[] = [];
    const { tick, records, state, clock, name } = await setting(
      {
        run: async () => {
          await working.pass();
          // More than half of its time.
          clock.advance(160_000);
        },
      },
      {
        deps: {
          startAnother: async (job, at) => {
            started.push({ job, at, held: (await state()).owner !== undefined });
          },
        },
      },
    );
    const running = tick("11:10");
    await working.reached;
    await tick("11:20");
    working.open();
    expect(await running).toMatchObject({ outcome: "capped", backlog: expect.stringContaining(iso("11:20")) });
    expect(started).toEqual([{ job: name, at: instant("11:20"), held: false }]);
    expect(await records()).toMatchObject([{ outcome: "capped", completed: instant("11:10") }]);
    expect(await state()).toMatchObject({ tick: instant("11:10"), pending: instant("11:20") });
  });

  it("stays owed, with a word in the log, if no other run can be started", async () => {
    const working = gate();
    const { tick, state, lines, clock } = await setting(
      {
        run: async () => {
          await working.pass();
          clock.advance(160_000);
        },
      },
      { deps: { startAnother: () => Promise.reject(new Error("not allowed")) } },
    );
    const running = tick("11:10");
    await working.reached;
    await tick("11:20");
    working.open();
    expect(await running).toMatchObject({ outcome: "capped" });
    expect(lines).toContainEqual(
      expect.objectContaining({ level: "warn", error: { name: "Error", message: "not allowed" } }),
    );
    expect(await state()).toMatchObject({ pending: instant("11:20") });
  });
});

describe("A run by hand", () => {
  it("covers no tick unless it is told one", async () => {
    const { byHand, tick, state, records } = await setting({
      run: (run: Run) => {
        expect(run.tick).toBeUndefined();
        run.commitAtEnd([rowFor(run.job, "by hand")], { watermark: 1 });
      },
    });
    const report = await byHand({ reason: "after the fix" });
    expect(report).toMatchObject({ outcome: "succeeded", commits: 1 });
    expect(report).not.toHaveProperty("ticks");
    expect(await state()).toMatchObject({ watermark: 1 });
    expect(await state()).not.toHaveProperty("tick");
    const [record] = await records();
    expect(record).toMatchObject({ trigger: "manual", reason: "after the fix" });
    expect(record).not.toHaveProperty("ticks");
    expect(record).not.toHaveProperty("completed");
    void tick;
  });

  it("through a tick covers the ticks up to it", async () => {
    const { byHand, rows } = await setting({ tick: tickRow });
    expect(await byHand({ tick: instant("11:20") })).toMatchObject({ ticks: { count: 2 } });
    expect(await rows()).toEqual([iso("11:10"), iso("11:20")]);
  });

  it("goes round for a tick that is queued behind it, and then covers all that is owed", async () => {
    const working = gate();
    const seen: (string | undefined)[] = [];
    const { byHand, tick, state, records } = await setting({
      run: async (run: Run) => {
        seen.push(run.tick?.id);
        await working.pass();
      },
    });
    const running = byHand();
    await working.reached;
    expect(await tick("11:20")).toMatchObject({ outcome: "queued" });
    working.open();
    expect(await running).toMatchObject({
      outcome: "succeeded",
      ticks: { from: iso("11:10"), through: iso("11:20"), count: 2 },
    });
    expect(seen).toEqual([undefined, iso("11:20")]);
    expect(await state()).toMatchObject({ tick: instant("11:20") });
    expect(await records()).toMatchObject([{ trigger: "manual", ticks: { count: 2 } }]);
  });

  it("does each owed tick of a tick job then, and skips none", async () => {
    const queued = gate();
    const store = engine.faulty();
    const { byHand, tick, rows, state } = await setting({ tick: tickRow }, { deps: { store } });
    // The finish of the first pass, which has nothing to do, waits until a tick is queued behind it.
    engine.proxy.next("TransactWriteItems", { before: () => queued.pass() });
    const running = byHand();
    await queued.reached;
    expect(await tick("11:20")).toMatchObject({ outcome: "queued" });
    queued.open();
    expect(await running).toMatchObject({ outcome: "succeeded", ticks: { count: 2 } });
    expect(await rows()).toEqual([iso("11:10"), iso("11:20")]);
    expect(await state()).toMatchObject({ tick: instant("11:20") });
  });
});

describe("A job's first use", () => {
  it("owes no ticks from before it was known", async () => {
    const clock = settableClock(instant("11:25"));
    const name = freshName();
    const { tick, rows, state } = await setting({ tick: tickRow }, { of: { name, clock } });
    expect(await tick("11:20")).toMatchObject({ outcome: "succeeded", ticks: { count: 1 } });
    expect(await rows()).toEqual([iso("11:20")]);
    expect(await state()).toMatchObject({ since: instant("11:20") - 1, fence: instant("11:25") / 1_000 + 1 });
  });

  it("leaves its tick owed where it fails, and the next run does it", async () => {
    const clock = settableClock(instant("11:25"));
    let fails = true;
    const failing = (at: Tick, run: TickRun) => {
      if (fails) throw new Error("not yet");
      return tickRow(at, run);
    };
    const { tick, rows } = await setting({ tick: failing }, { of: { name: freshName(), clock } });
    expect(await tick("11:20")).toMatchObject({ outcome: "failed" });
    fails = false;
    expect(await tick("11:30")).toMatchObject({ outcome: "succeeded", ticks: { count: 2 } });
    expect(await rows()).toEqual([iso("11:20"), iso("11:30")]);
  });
});

describe("A run's requests are few:", () => {
  const requestsOf = async (run: (run: Run) => unknown) => {
    const store = engine.faulty({ requestTimeoutMs: 10_000 });
    const { tick } = await setting({ run }, { deps: { store } });
    expect(await tick("11:20")).toMatchObject({ outcome: "succeeded" });
    return engine.proxy.requests.map(({ operation }) => operation);
  };

  it("two for a run with nothing to write", async () => {
    expect(await requestsOf(() => {})).toEqual(["UpdateItem", "TransactWriteItems"]);
  });

  it("two for a run that keeps its writes for the end", async () => {
    expect(
      await requestsOf((run) => run.commitAtEnd([rowFor(run.job, "a"), rowFor(run.job, "b")], { watermark: 1 })),
    ).toEqual(["UpdateItem", "TransactWriteItems"]);
  });

  it("three for a run that commits once and waits for it", async () => {
    expect(await requestsOf((run) => run.commit([rowFor(run.job, "a")]))).toEqual([
      "UpdateItem",
      "TransactWriteItems",
      "TransactWriteItems",
    ]);
  });

  it("one for an attempt that isn't granted the lease", async () => {
    const store = engine.faulty({ requestTimeoutMs: 10_000 });
    const { tick } = await setting({ run: () => {} }, { deps: { store } });
    await tick("11:20");
    engine.proxy.reset();
    expect(await tick("11:20")).toMatchObject({ outcome: "duplicate" });
    expect(engine.proxy.requests.map(({ operation }) => operation)).toEqual(["UpdateItem"]);
  });
});

describe("a run whose clock is set back", () => {
  it("took no time, rather than less", async () => {
    const { tick, clock, state } = await setting({ run: () => clock.set(instant("11:24")) });
    expect(await tick("11:20")).toMatchObject({ outcome: "succeeded", durationMs: 0 });
    expect(await state()).toMatchObject({ recent: [{ durationMs: 0 }] });
  });
});

describe("dry_run", () => {
  const whatItDoes = {
    run: async (run: Run) => {
      expect(run.dryRun).toBe(true);
      await run.commit([rowFor(run.job, "a"), rowFor(run.job, "b")], { watermark: 7 });
      run.commitAtEnd([rowFor(run.job, "c")], { watermark: 8 });
    },
    tick: tickRow,
  };

  it.each(["run", "tick"] as const)(
    "of a job that is configured so (%s) takes the lease and is recorded, and changes nothing else",
    async (shape) => {
      const { tick, name, clock, records, state, lines } = await setting({ dryRun: true, [shape]: whatItDoes[shape] });
      const real = await setting(
        { run: (run: Run) => run.commitAtEnd([rowFor(run.job, run.tick?.id ?? "")], { watermark: 1 }) },
        { of: { name, clock } },
      );
      await real.tick("11:10");
      const before = await state();
      const results = await dumpTable(engine.client, "results");
      clock.advance(1_000);

      expect(await tick("11:20")).toMatchObject({ outcome: "dry_run", wouldWrite: shape === "run" ? 3 : 1 });

      expect(await dumpTable(engine.client, "results")).toEqual(results);
      expect(await state()).toEqual({
        ...before,
        fence: before.fence + 1,
        recentOwners: [...before.recentOwners, expect.any(String)],
      });
      expect((await records()).map(({ outcome }) => outcome)).toEqual(["succeeded", "dry_run"]);
      expect((await records())[1]).toMatchObject({
        watermarkBefore: 1,
        watermarkAfter: 1,
        completed: instant("11:10"),
      });
      expect(lines.at(-1)).toMatchObject({ outcome: "dry_run" });
      // The tick is still owed.
      expect(await real.tick("11:20")).toMatchObject({ outcome: "succeeded", ticks: { count: 1 } });
    },
  );

  it("that is recorded excludes other runs, and leaves queued ticks to real ones", async () => {
    const working = gate();
    const { tick, state } = await setting({ dryRun: true, run: () => working.pass() });
    const running = tick("11:10");
    await working.reached;
    expect(await tick("11:10")).toMatchObject({ outcome: "held" });
    expect(await tick("11:20")).toMatchObject({ outcome: "queued" });
    working.open();
    expect(await running).toMatchObject({ outcome: "dry_run" });
    expect(await state()).toMatchObject({ pending: instant("11:20") });
  });

  it.each(["run", "tick"] as const)(
    "that a person asks for (%s) neither takes the lease nor leaves a record: no request of it writes",
    async (shape) => {
      const store = engine.faulty();
      const { byHand, name, clock } = await setting({ [shape]: whatItDoes[shape] }, { deps: { store } });
      const real = await setting({ run: (run: Run) => run.commitAtEnd([], { watermark: 1 }) }, { of: { name, clock } });
      await real.tick("11:10");
      const before = [await dumpTable(engine.client, controlTable), await dumpTable(engine.client, "results")];

      expect(await byHand({ dryRun: true, tick: instant("11:20") })).toMatchObject({
        outcome: "dry_run",
        wouldWrite: shape === "run" ? 3 : 1,
        ticks: { from: iso("11:20"), count: 1 },
      });

      expect(engine.proxy.requests.map(({ operation }) => operation)).toEqual(["GetItem"]);
      expect([await dumpTable(engine.client, controlTable), await dumpTable(engine.client, "results")]).toEqual(before);
    },
  );

  it("that a person asks for goes beside a real run, which isn't disturbed", async () => {
    const working = gate();
    const { tick, byHand } = await setting({ run: (run: Run) => (run.dryRun ? undefined : working.pass()) });
    const running = tick("11:20");
    await working.reached;
    expect(await byHand({ dryRun: true })).toMatchObject({ outcome: "dry_run" });
    working.open();
    expect(await running).toMatchObject({ outcome: "succeeded" });
  });

  it("that fails has failed, and is recorded only where it takes the lease", async () => {
    const { tick, byHand, records, state } = await setting({ dryRun: true, run: failing });
    expect(await byHand({ dryRun: true })).toMatchObject({ outcome: "failed" });
    expect(await records()).toEqual([]);
    expect(await tick("11:20")).toMatchObject({ outcome: "failed" });
    expect(await records()).toMatchObject([{ outcome: "failed" }]);
    expect(await state()).not.toHaveProperty("owner");
  });

  it("refuses the same writes as a real run", async () => {
    const { byHand } = await setting({
      run: (run: Run) => run.commit([{ Put: { TableName: controlTable, Item: { id: "a" } } }]),
    });
    expect(await byHand({ dryRun: true })).toMatchObject({ outcome: "failed", error: { code: "COMMIT_REFUSED" } });
  });
});
