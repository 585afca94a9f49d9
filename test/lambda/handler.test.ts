import { cron, defineJob, type Job, type JobOptions, type Run, type RunReport, type Tick } from "cronfence";
import { type LambdaDeps, lambdaHandler } from "cronfence/lambda";
import { dumpTable, type SettableClock, settableClock } from "cronfence/testing";
import { afterEach, describe, expect, it } from "vitest";
import { budgetOn, freshName, silentLog, useEngine } from "../fixture.ts";
import { gate, never } from "../gate.ts";
import { type InvocationOptions, invocation, scheduled } from "./invocation.ts";

const engine = useEngine("results");
afterEach(() => engine.proxy.reset());

const everyTenMinutes = cron("*/10 * * * *");
const start = "2026-03-01T11:25:00Z";
const at = (time: string) => `2026-03-01T${time}:00.000Z`;

/** A job and all it meets, on a clock that stands at 11:25. */
const setting = (options: Partial<JobOptions> & Record<string, unknown>, deps: LambdaDeps = {}) => {
  const clock = (deps.clock as SettableClock | undefined) ?? settableClock(start);
  const name = (options.name as string | undefined) ?? freshName();
  const job = defineJob({ schedule: everyTenMinutes, timeout: "5m", ...options, name } as Parameters<
    typeof defineJob
  >[0]) as Job;
  const handler = lambdaHandler(job, { store: engine.store, clock, log: silentLog, random: () => 0, ...deps });
  return {
    clock,
    name,
    /** Delivers a tick of the day, as "11:10". */
    deliver: (time: string, invoked: InvocationOptions = {}): Promise<RunReport> =>
      handler(scheduled(name, at(time)), invocation(clock, invoked)),
    byHand: (event: object = {}, invoked: InvocationOptions = {}) => handler(event, invocation(clock, invoked)),
    state: () => engine.store.read(name, budgetOn(clock)),
    /** Oldest first. */
    records: async () => (await engine.store.runs(name, { limit: 50 }, budgetOn(clock))).runs.toReversed(),
    results: async () =>
      (await dumpTable(engine.client, "results")).filter(({ id }) => String(id).startsWith(name)).map(({ id }) => id),
  };
};

/** One row for each tick; a second time is refused by the table. */
const rowFor = (name: string, what: string) => ({
  Put: { TableName: "results", Item: { id: `${name}/${what}` }, ConditionExpression: "attribute_not_exists(id)" },
});
const tickRow = (tick: Tick, run: { readonly job: string }) => [rowFor(run.job, tick.id)];

describe("A function's invocation", () => {
  it("returns the report of a run that succeeded, as it can be sent on", async () => {
    const { deliver, name } = setting({ tick: tickRow });
    const report = await deliver("11:10");
    expect(JSON.parse(JSON.stringify(report))).toEqual({
      job: name,
      outcome: "succeeded",
      run: expect.any(String),
      fence: expect.any(Number),
      tick: at("11:10"),
      ticks: { from: at("11:10"), through: at("11:10"), count: 1 },
      items: 1,
      commits: 1,
      durationMs: 0,
      nextTick: at("11:30"),
    });
  });

  it("returns the report of a run that stopped at a bound", async () => {
    const { deliver } = setting({ run: (run: Run) => run.capped("3 carts") });
    expect(await deliver("11:10")).toMatchObject({ outcome: "capped", backlog: "3 carts" });
  });

  it("throws what made a run fail, itself", async () => {
    const failure = new Error("the supplier is closed");
    const { deliver, state, records } = setting({ run: () => Promise.reject(failure) });
    await expect(deliver("11:10")).rejects.toBe(failure);
    expect((await state())?.tick).toBeUndefined();
    expect(await records()).toMatchObject([{ outcome: "failed", error: { message: "the supplier is closed" } }]);
  });

  it("throws an error even if the job threw nothing that can be thrown on", async () => {
    const { deliver } = setting({ run: () => Promise.reject(null) });
    await expect(deliver("11:10")).rejects.toThrow("ended as failed");
  });

  it("throws at the deadline of a job that goes on", async () => {
    const { deliver, clock } = setting({ timeout: "30s", run: never });
    const invoked = deliver("11:10");
    await Promise.all([expect(invoked).rejects.toMatchObject({ code: "RUN_TIMED_OUT" }), passing(clock, 30_000)]);
  });

  it("throws when another run has taken the lease", async () => {
    const held = gate();
    const { deliver, name, clock, records } = setting({
      run: async (run: Run) => {
        await held.pass();
        await run.commit([rowFor(run.job, "late")]);
      },
    });
    const invoked = deliver("11:10");
    await held.reached;
    const successor = setting({ name, overlap: "takeover", tick: tickRow }, { clock });
    expect(await successor.deliver("11:20")).toMatchObject({ outcome: "succeeded" });
    held.open();
    await expect(invoked).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect((await records()).map(({ outcome }) => outcome).sort()).toEqual(["lease_lost", "succeeded"]);
    expect(await successor.results()).not.toContain(`${name}/late`);
  });

  it("throws when the platform asks it to stop", async () => {
    const stop = new AbortController();
    const working = gate();
    const { deliver, records, state } = setting(
      {
        run: async () => {
          await working.pass();
        },
      },
      { interrupt: stop.signal },
    );
    const invoked = deliver("11:10");
    await working.reached;
    stop.abort("SIGTERM");
    await expect(invoked).rejects.toMatchObject({ code: "RUN_INTERRUPTED" });
    expect(await records()).toMatchObject([{ outcome: "interrupted" }]);
    expect(await state()).not.toHaveProperty("owner");
  });

  it("returns, when an operator has cancelled the run", async () => {
    const held = gate();
    const { deliver, name, clock } = setting({ run: () => held.pass() });
    const invoked = deliver("11:10");
    await held.reached;
    await engine.store.cancel(name, { by: "ada", why: "wrong day" }, clock.now(), budgetOn(clock));
    held.open();
    expect(await invoked).toMatchObject({ outcome: "cancelled" });
  });

  it("returns the report of a dry run, which a schedule may ask for in the job and a person in the event", async () => {
    const scheduledDry = setting({ dryRun: true, tick: tickRow });
    expect(await scheduledDry.deliver("11:10")).toMatchObject({ outcome: "dry_run", wouldWrite: 1 });
    expect(await scheduledDry.records()).toHaveLength(1);
    const byHand = setting({ tick: tickRow });
    expect(await byHand.byHand({ dryRun: true, scheduledTime: at("11:00") })).toMatchObject({
      outcome: "dry_run",
      wouldWrite: 1,
    });
    expect(await byHand.state()).toBeUndefined();
    expect(await byHand.results()).toEqual([]);
  });

  it("returns for a tick that is held, queued, done, or paused, without calling the job", async () => {
    const held = gate();
    let calls = 0;
    const { deliver, byHand, clock, name } = setting({
      run: () => {
        calls += 1;
        return held.pass();
      },
    });
    const running = deliver("11:10");
    await held.reached;
    expect(await deliver("11:10")).toMatchObject({ outcome: "held", items: 0, holder: { fence: expect.any(Number) } });
    expect(await byHand()).toMatchObject({ outcome: "held" });
    expect(calls).toBe(1);
    expect(await deliver("11:20")).toMatchObject({ outcome: "queued" });
    expect(calls).toBe(1);
    held.open();
    expect(await running).toMatchObject({ outcome: "succeeded", ticks: { count: 2 } });
    expect(calls).toBe(2);
    expect(await deliver("11:10")).toMatchObject({ outcome: "duplicate" });
    expect(await deliver("11:20")).toMatchObject({ outcome: "duplicate" });
    await engine.store.pause(name, { by: "ada", why: "stocktaking", at: clock.now() }, budgetOn(clock));
    clock.set(at("11:30"));
    expect(await deliver("11:30")).toMatchObject({ outcome: "paused" });
    expect(calls).toBe(2);
  });

  it("throws when the control table can't be used, and says what to do", async () => {
    const { deliver } = setting({ run: () => {} }, { store: engine.faulty({ table: "no-such-table" }) });
    await expect(deliver("11:10")).rejects.toThrow(/npx cronfence table create --table no-such-table/);
  });
});

/** Lets `ms` pass once the work is under way, so that its timers are set. */
const passing = async (clock: SettableClock, ms: number): Promise<void> => {
  const before = clock.now();
  while (clock.timers === 0) await new Promise(setImmediate);
  await clock.advanceAsync(before + ms - clock.now());
};

describe("Case 1: the platform delivers a failed or answered invocation again, and", () => {
  it("work that committed before it threw finds its watermark, and writes nothing more", async () => {
    let calls = 0;
    const { deliver, results, records, name, clock } = setting({
      run: async (run: Run) => {
        calls += 1;
        if (run.watermark === undefined) await run.commit([rowFor(run.job, "export")], { watermark: "exported" });
        if (calls === 1) throw new Error("after the last commit");
      },
    });
    const requestId = "the same on every try";
    await expect(deliver("11:10", { requestId })).rejects.toThrow("after the last commit");
    clock.advance(60_000);
    expect(await deliver("11:10", { requestId })).toMatchObject({ outcome: "succeeded", commits: 0, items: 0 });
    expect(await deliver("11:10", { requestId })).toMatchObject({ outcome: "duplicate", commits: 0 });
    expect(calls).toBe(2);
    expect(await results()).toEqual([`${name}/export`]);
    expect((await records()).map(({ outcome }) => outcome)).toEqual(["failed", "succeeded"]);
  });

  it("a tick whose last write is committed isn't called again, though a later one failed the run", async () => {
    const called: string[] = [];
    const { deliver, results, name, clock } = setting({
      tick: (tick: Tick, run: Run) => {
        called.push(tick.id);
        if (tick.id === at("11:20") && called.length === 2) throw new Error("the second tick");
        return tickRow(tick, run);
      },
    });
    await engine.store.create(name, Date.parse(at("11:05")), budgetOn(clock));
    await expect(deliver("11:20", { requestId: "one" })).rejects.toThrow("the second tick");
    expect(await deliver("11:20", { requestId: "one" })).toMatchObject({ outcome: "succeeded", items: 1 });
    expect(await deliver("11:20", { requestId: "one" })).toMatchObject({ outcome: "duplicate" });
    expect(called).toEqual([at("11:10"), at("11:20"), at("11:20")]);
    expect(await results()).toEqual([`${name}/${at("11:10")}`, `${name}/${at("11:20")}`]);
  });

  it("a run that had succeeded, whose answer was lost, is a duplicate: nothing is written, nothing called", async () => {
    let calls = 0;
    const store = engine.faulty();
    const { deliver } = setting(
      {
        run: (run: Run) => {
          calls += 1;
          run.commitAtEnd([rowFor(run.job, "export")]);
        },
      },
      { store },
    );
    expect(await deliver("11:10", { requestId: "one" })).toMatchObject({ outcome: "succeeded" });
    const before = await dumpTable(engine.client, "control-table");
    engine.proxy.reset();
    expect(await deliver("11:10", { requestId: "one" })).toMatchObject({ outcome: "duplicate" });
    expect(await deliver("11:10", { requestId: "one" })).toMatchObject({ outcome: "duplicate" });
    expect(calls).toBe(1);
    expect(engine.proxy.requests.map(({ operation, applied }) => [operation, applied])).toEqual([
      ["UpdateItem", false],
      ["UpdateItem", false],
    ]);
    expect(await dumpTable(engine.client, "control-table")).toEqual(before);
  });
});

describe("A try of an invocation whose earlier try died", () => {
  it("throws while that one's lease lasts, so that the platform tries again, and then takes over", async () => {
    const dying = gate();
    const frozen = settableClock(at("11:10"));
    const dead = setting(
      {
        run: async (run: Run) => {
          await run.commit([rowFor(run.job, "first half")], { watermark: 1 });
          await dying.pass();
        },
      },
      { clock: frozen },
    );
    void dead.deliver("11:10", { requestId: "one" });
    await dying.reached;

    const clock = settableClock("2026-03-01T11:10:20Z");
    const { deliver, records, results, name } = setting(
      {
        name: dead.name,
        run: (run: Run) => run.commit([rowFor(run.job, `after ${run.watermark}`)], { watermark: 2 }),
      },
      { clock },
    );
    await expect(deliver("11:10", { requestId: "one" })).rejects.toMatchObject({ code: "PREDECESSOR_UNFINISHED" });
    // A stranger's delivery of the same tick is in order: the tick is being done.
    expect(await deliver("11:10", { requestId: "two" })).toMatchObject({ outcome: "held" });
    clock.set("2026-03-01T11:11:00Z");
    expect(await deliver("11:10", { requestId: "one" })).toMatchObject({ outcome: "succeeded" });
    expect(await records()).toMatchObject([
      { outcome: "crashed", commits: 1, requestId: "one" },
      { outcome: "succeeded", commits: 1, requestId: "one", watermarkBefore: 1, watermarkAfter: 2 },
    ]);
    expect(await results()).toEqual([`${name}/after 1`, `${name}/first half`]);
  });
});

describe("Case 2: one schedule, two invocations:", () => {
  it("two executions of one tick at once make one run, and both succeed", async () => {
    let calls = 0;
    const { deliver, results, records, name } = setting({
      tick: (tick: Tick, run: Run) => {
        calls += 1;
        return tickRow(tick, run);
      },
    });
    const reports = await Promise.all([deliver("11:10"), deliver("11:10")]);
    const outcomes = reports.map(({ outcome }) => outcome).sort();
    expect(["duplicate", "held"]).toContain(outcomes[0]);
    expect(outcomes[1]).toBe("succeeded");
    expect(calls).toBe(1);
    expect(await results()).toEqual([`${name}/${at("11:10")}`]);
    expect(await records()).toHaveLength(1);
  });
});

describe("Case 4: a late tick meets the next:", () => {
  it("the next is queued behind the late one, and both are done, one after the other", async () => {
    const working = gate();
    const order: string[] = [];
    const { deliver, results, records, name, state } = setting({
      tick: async (tick: Tick, run: Run) => {
        order.push(tick.id);
        if (tick.id === at("11:10")) await working.pass();
        return tickRow(tick, run);
      },
    });
    const late = deliver("11:10");
    await working.reached;
    expect(await deliver("11:20")).toMatchObject({ outcome: "queued" });
    working.open();
    expect(await late).toMatchObject({
      outcome: "succeeded",
      ticks: { from: at("11:10"), through: at("11:20"), count: 2 },
      items: 2,
    });
    expect(order).toEqual([at("11:10"), at("11:20")]);
    expect(await results()).toEqual([`${name}/${at("11:10")}`, `${name}/${at("11:20")}`]);
    expect(await records()).toMatchObject([
      { ticks: { from: Date.parse(at("11:10")), through: Date.parse(at("11:20")), count: 2 } },
    ]);
    expect(await state()).toMatchObject({ tick: Date.parse(at("11:20")) });
    expect(await state()).not.toHaveProperty("pending");
  });

  it("the late one finds the next one running, which covers it", async () => {
    const working = gate();
    const { deliver, results, name, clock } = setting({
      tick: async (tick: Tick, run: Run) => {
        await working.pass();
        return tickRow(tick, run);
      },
    });
    await engine.store.create(name, Date.parse(at("11:05")), budgetOn(clock));
    const next = deliver("11:20");
    await working.reached;
    expect(await deliver("11:10")).toMatchObject({ outcome: "held" });
    working.open();
    expect(await next).toMatchObject({ outcome: "succeeded", ticks: { count: 2 } });
    expect(await results()).toEqual([`${name}/${at("11:10")}`, `${name}/${at("11:20")}`]);
  });

  it("whichever comes first, both are done once and in order, and accounted for in the records", async () => {
    const order: string[] = [];
    const { deliver, results, name, records, clock } = setting({
      tick: (tick: Tick, run: Run) => {
        order.push(tick.id);
        return tickRow(tick, run);
      },
    });
    await engine.store.create(name, Date.parse(at("11:05")), budgetOn(clock));
    const outcomes = (await Promise.all([deliver("11:10"), deliver("11:20")])).map(({ outcome }) => outcome);
    expect(["succeeded", "held", "queued", "duplicate"]).toEqual(expect.arrayContaining(outcomes));
    expect(order).toEqual([at("11:10"), at("11:20")]);
    expect(await results()).toEqual([`${name}/${at("11:10")}`, `${name}/${at("11:20")}`]);
    const covered = (await records()).reduce((sum, { ticks }) => sum + (ticks?.count ?? 0), 0);
    expect(covered).toBe(2);
  });
});

describe("Case 6: a client that waits for a long job invokes it again:", () => {
  it("eight invocations make one run", async () => {
    const working = gate();
    let calls = 0;
    const { byHand, records } = setting({
      run: async () => {
        calls += 1;
        await working.pass();
      },
    });
    const first = byHand({ scheduledTime: at("11:00") });
    await working.reached;
    for (let again = 0; again < 7; again += 1) {
      expect(await byHand({ scheduledTime: at("11:00") })).toMatchObject({ outcome: "held" });
    }
    working.open();
    expect(await first).toMatchObject({ outcome: "succeeded" });
    expect(await byHand({ scheduledTime: at("11:00") })).toMatchObject({ outcome: "duplicate" });
    expect(calls).toBe(1);
    expect(await records()).toHaveLength(1);
  });
});

describe("Case 10: a killed function's lease comes back by itself:", () => {
  it("the first try after the ttl and the skew runs, and records the dead run as crashed", async () => {
    const dying = gate();
    const dead = setting({ ttl: "60s", skew: "10s", run: () => dying.pass() }, { clock: settableClock(at("11:10")) });
    void dead.deliver("11:10");
    await dying.reached;

    const clock = settableClock(at("11:10"));
    const { deliver, records } = setting({ name: dead.name, ttl: "60s", skew: "10s", run: () => {} }, { clock });
    const outcomes: Record<string, string> = {};
    for (const time of ["11:11:00", "11:11:09.999", "11:11:10.000", "11:11:10.001", "11:12:00"]) {
      clock.set(`2026-03-01T${time}Z`);
      outcomes[time] = (await deliver("11:10")).outcome;
    }
    expect(outcomes).toEqual({
      "11:11:00": "held",
      "11:11:09.999": "held",
      "11:11:10.000": "held",
      "11:11:10.001": "succeeded",
      "11:12:00": "duplicate",
    });
    expect(await records()).toMatchObject([{ outcome: "crashed", commits: 0 }, { outcome: "succeeded" }]);
  });
});

describe("Case 14: a job that ignores its signal", () => {
  it("is recorded as timed out and has its lease back before the platform ends the invocation", async () => {
    const working = gate();
    let signal: AbortSignal | undefined;
    const { deliver, clock, records, state } = setting({
      run: async (run: Run) => {
        signal = run.signal;
        await working.pass();
      },
    });
    const invokedAt = Date.parse(start);
    const invoked = expect(deliver("11:10", { leftMs: 3_000 })).rejects.toMatchObject({ code: "RUN_TIMED_OUT" });
    await working.reached;
    expect(signal?.aborted).toBe(false);
    // Half of the three seconds: less than twice the reserve is left.
    await clock.advanceAsync(1_499);
    expect(signal?.aborted).toBe(false);
    await clock.advanceAsync(1);
    expect(signal?.aborted).toBe(true);
    await invoked;
    expect(clock.now()).toBeLessThan(invokedAt + 3_000);
    const [record] = await records();
    expect(record).toMatchObject({ outcome: "timed_out", error: { code: "RUN_TIMED_OUT" } });
    expect(record?.endedAt).toBeLessThan(invokedAt + 3_000);
    expect(await state()).not.toHaveProperty("owner");
    expect(await state()).not.toHaveProperty("tick");
  });

  it("is over at its own timeout where that is shorter than what the invocation has left", async () => {
    const working = gate();
    const { deliver, clock, records } = setting({ timeout: "20s", run: () => working.pass() });
    const invoked = expect(deliver("11:10", { leftMs: 900_000 })).rejects.toMatchObject({ code: "RUN_TIMED_OUT" });
    await working.reached;
    await clock.advanceAsync(20_000);
    await invoked;
    expect(await records()).toMatchObject([{ outcome: "timed_out", endedAt: Date.parse(start) + 20_000 }]);
  });
});

describe("Case 19: after missed deliveries", () => {
  it("the next run covers every tick since the last one that was done, and not those after the delivered one", async () => {
    const { deliver, results, name, clock } = setting({ schedule: cron("*/5 * * * *"), timeout: "4m", tick: tickRow });
    // Tick 12:00 is done at 12:10, late.
    await engine.store.create(name, Date.parse(at("11:55")), budgetOn(clock));
    clock.set(at("12:10"));
    expect(await deliver("12:00")).toMatchObject({ ticks: { from: at("12:00"), through: at("12:00"), count: 1 } });
    expect(await results()).toEqual([`${name}/${at("12:00")}`]);
    expect(await deliver("12:10")).toMatchObject({ ticks: { from: at("12:05"), through: at("12:10"), count: 2 } });
    expect(await results()).toEqual(["12:00", "12:05", "12:10"].map((time) => `${name}/${at(time)}`));
  });
});

describe("A run that is thawed in a later invocation of the same process", () => {
  const thawing = (shared: boolean) => {
    const frozen = gate();
    const store = engine.faulty();
    const clock = settableClock(start);
    let late: Promise<unknown> = never();
    const first = setting(
      {
        run: async (run: Run) => {
          await frozen.pass();
          late = run.commit([rowFor(run.job, "zombie")]);
          await late;
        },
      },
      { clock, store },
    );
    const later = setting(
      { name: first.name, tick: tickRow },
      { store, clock: shared ? clock : settableClock("2026-03-01T11:35:00Z") },
    );
    return { frozen, first, later, late: () => late };
  };

  it("can't write after a later run has been granted the lease, even if its own timers never fired", async () => {
    const { frozen, first, later } = thawing(false);
    const zombie = first.deliver("11:10");
    await frozen.reached;
    expect(await later.deliver("11:20")).toMatchObject({ outcome: "succeeded" });
    frozen.open();
    await expect(zombie).rejects.toMatchObject({ code: "LEASE_LOST", lastCommit: "not applied" });
    // The later run did the zombie's tick, too.
    expect(await later.results()).toEqual(["11:10", "11:20"].map((time) => `${first.name}/${at(time)}`));
    expect((await later.records()).map(({ outcome }) => outcome)).toEqual(["lease_lost", "succeeded"]);
    expect(await later.deliver("11:30")).toMatchObject({ outcome: "succeeded", items: 1 });
  });

  it("sends nothing at all once its deadline has passed", async () => {
    const { frozen, first, later, late } = thawing(true);
    const zombie = expect(first.deliver("11:10")).rejects.toMatchObject({ code: "RUN_TIMED_OUT" });
    await frozen.reached;
    // On thawing, due timers fire first.
    first.clock.set(at("11:30"));
    await zombie;
    engine.proxy.reset();
    frozen.open();
    expect(await later.deliver("11:20")).toMatchObject({ outcome: "succeeded" });
    await expect(late()).rejects.toMatchObject({ code: "RUN_TIMED_OUT" });
    // The acquisition of the later run, the commit of the tick that timed out, and the finish with its own.
    expect(engine.proxy.requests.map(({ operation }) => operation)).toEqual([
      "UpdateItem",
      "TransactWriteItems",
      "TransactWriteItems",
    ]);
    expect(await later.results()).not.toContain(`${first.name}/zombie`);
  });
});
