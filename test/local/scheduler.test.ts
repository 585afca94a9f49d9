/** Delivering ticks in this process, on a clock that the test sets. */
import { cron, defineJob, type Job, type Run, type RunReport, type Tick } from "cronfence";
import { type SettableClock, settableClock } from "cronfence/testing";
import { afterEach, describe, expect, it } from "vitest";
import { runSchedules, type SchedulerOptions } from "../../src/local/scheduler.ts";
import { budgetOn, freshName, silentLog, useEngine } from "../fixture.ts";

const fixture = useEngine();
const start = Date.parse("2026-03-02T06:02:00Z");
const minuteMs = 60_000;
const at = (text: string) => Date.parse(`2026-03-02T${text}:00Z`);

const stops: (() => Promise<void>)[] = [];
afterEach(() => Promise.all(stops.splice(0).map((stop) => stop())));

/** A job every five minutes, whose work is `work`. */
const everyFive = (work: (run: Run) => unknown, options: { name?: string; timeout?: string } = {}): Job =>
  defineJob({
    name: options.name ?? freshName(),
    schedule: cron("*/5 * * * *"),
    timeout: (options.timeout ?? "4m") as "4m",
    run: work,
  });

/** Its lease outlasts the leaps of a test's clock, which leave no time for renewals. */
const outlasting = (job: Job): Job => ({ ...job, ttlMs: 60 * minuteMs });

/** Things that come one after another, each of which can be waited for. */
const series = <T>() => {
  const come: T[] = [];
  const waiting: ((value: T) => void)[] = [];
  return {
    add: (value: T) => {
      const next = waiting.shift();
      if (next === undefined) come.push(value);
      else next(value);
    },
    next: () =>
      new Promise<T>((resolve) => {
        const value = come.shift();
        if (value === undefined) waiting.push(resolve);
        else resolve(value);
      }),
    left: () => come,
  };
};

const schedule = (jobs: readonly Job[], clock: SettableClock, options: Partial<SchedulerOptions> = {}) => {
  const reports = series<RunReport>();
  const failures = series<{ job: string; error: unknown }>();
  const stopping = new AbortController();
  const ended = runSchedules(jobs, {
    clock,
    deps: { store: fixture.store, log: silentLog, random: () => 0 },
    signal: stopping.signal,
    onReport: reports.add,
    onFailure: (job, error) => failures.add({ job, error }),
    ...options,
  });
  const stop = async () => {
    stopping.abort("SIGINT");
    await ended;
  };
  stops.push(stop);
  return { reports, failures, stop, ended };
};

/** Resolves when the scheduler waits for the next tick of each of `jobs`: only then can the clock be moved. */
const untilWaiting = async (clock: SettableClock, timers: number) => {
  while (clock.timers < timers) await new Promise((resolve) => setImmediate(resolve));
};

const makeKnown = (job: Job, clock: SettableClock, since: number) =>
  fixture.store.create(job.name, since, budgetOn(clock));

describe("jobs on their schedules", () => {
  it("get each tick at its time, with the scheduled time as its identity", async () => {
    const clock = settableClock(start);
    const seen = series<Tick | undefined>();
    const job = everyFive((run) => seen.add(run.tick));
    const { reports } = schedule([job], clock);
    await untilWaiting(clock, 1);
    for (const due of ["06:05", "06:10", "06:15"]) {
      clock.set(at(due) - 1);
      expect(seen.left()).toEqual([]);
      clock.set(at(due));
      expect((await seen.next())?.at.getTime()).toBe(at(due));
      expect(await reports.next()).toMatchObject({ outcome: "succeeded", ticks: { count: 1 } });
      await untilWaiting(clock, 1);
    }
  });

  it("are told apart: one that is going doesn't hold up another", async () => {
    const clock = settableClock(start);
    let free = () => {};
    const slow = everyFive(
      () =>
        new Promise<void>((resolve) => {
          free = resolve;
        }),
    );
    const quick = everyFive(() => {});
    const { reports } = schedule([slow, quick], clock);
    await untilWaiting(clock, 2);
    clock.set(at("06:05"));
    expect(await reports.next()).toMatchObject({ job: quick.name, outcome: "succeeded" });
    free();
    expect(await reports.next()).toMatchObject({ job: slow.name, outcome: "succeeded" });
  });

  it("owe nothing at the first start, however old their schedule is", async () => {
    const clock = settableClock(start);
    const job = everyFive(() => {});
    const { reports } = schedule([job], clock);
    await untilWaiting(clock, 1);
    clock.set(at("06:05"));
    expect(await reports.next()).toMatchObject({ tick: "2026-03-02T06:05:00.000Z", ticks: { count: 1 } });
  });

  it("owe at the first start what was due since the day they say they start at", async () => {
    const clock = settableClock(start);
    const job = defineJob({
      name: freshName(),
      schedule: cron("*/5 * * * *"),
      startAt: "2026-03-02T05:50:00Z",
      timeout: "4m",
      run: () => {},
    });
    const { reports } = schedule([job], clock);
    expect(await reports.next()).toMatchObject({ ticks: { from: "2026-03-02T05:50:00.000Z", count: 3 } });
  });

  it("catch up at the start: one delivery of the latest tick covers all that were missed", async () => {
    const clock = settableClock(start);
    const job = everyFive(() => {});
    await makeKnown(job, clock, at("05:44"));
    const { reports } = schedule([job], clock);
    expect(await reports.next()).toMatchObject({
      outcome: "succeeded",
      tick: "2026-03-02T06:00:00.000Z",
      ticks: { from: "2026-03-02T05:45:00.000Z", through: "2026-03-02T06:00:00.000Z", count: 4 },
    });
  });

  it("catch up with a tick that is due at the very start", async () => {
    const clock = settableClock(at("06:05"));
    const job = everyFive(() => {});
    await makeKnown(job, clock, at("06:00"));
    const { reports } = schedule([job], clock);
    expect(await reports.next()).toMatchObject({ tick: "2026-03-02T06:05:00.000Z", ticks: { count: 1 } });
    await untilWaiting(clock, 1);
    clock.set(at("06:10"));
    expect(await reports.next()).toMatchObject({ tick: "2026-03-02T06:10:00.000Z", ticks: { count: 1 } });
  });

  it("catch up once the lease of a dead process is over", async () => {
    const clock = settableClock(start);
    const job = everyFive(() => {});
    await makeKnown(job, clock, at("05:55"));
    const dead = { id: "dead", startedAt: clock.now(), trigger: "schedule", tick: at("06:00") } as const;
    const request = { job: job.name, owner: "dead", run: dead, now: clock.now(), ttlMs: job.ttlMs, skewMs: job.skewMs };
    await fixture.store.acquire({ ...request, tick: at("06:00") }, budgetOn(clock));

    const { reports } = schedule([job], clock);
    expect(await reports.next()).toMatchObject({ outcome: "held", holder: { run: "dead" } });
    await untilWaiting(clock, 2);
    clock.advance(job.ttlMs + job.skewMs);
    expect(reports.left()).toEqual([]);
    clock.advance(1);
    expect(await reports.next()).toMatchObject({ outcome: "succeeded", tick: "2026-03-02T06:00:00.000Z" });
  });

  it("get a tick that comes due while a run is going, which is queued and covered by that run", async () => {
    const clock = settableClock(at("06:04"));
    const going = series<() => void>();
    const ticks: (string | undefined)[] = [];
    const job = outlasting(
      everyFive(
        (run) =>
          new Promise<void>((resolve) => {
            ticks.push(run.tick?.id);
            going.add(resolve);
          }),
      ),
    );
    // What was owed is caught up late, so that the next tick comes due before that is done.
    await makeKnown(job, clock, at("05:55"));
    const { reports } = schedule([job], clock);
    const finishFirst = await going.next();
    clock.set(at("06:05"));
    expect(await reports.next()).toMatchObject({ outcome: "queued", tick: "2026-03-02T06:05:00.000Z" });
    finishFirst();
    (await going.next())();
    expect(await reports.next()).toMatchObject({
      outcome: "succeeded",
      tick: "2026-03-02T06:00:00.000Z",
      ticks: { through: "2026-03-02T06:05:00.000Z", count: 2 },
    });
    expect(ticks).toEqual(["2026-03-02T06:00:00.000Z", "2026-03-02T06:05:00.000Z"]);
  });

  it("get a tick at its time also when the one before it is still going", async () => {
    const clock = settableClock(start);
    const going = series<() => void>();
    const patient = outlasting(everyFive(() => new Promise<void>((resolve) => going.add(resolve))));
    const { reports } = schedule([{ ...patient, timeoutMs: 60 * minuteMs }], clock);
    await untilWaiting(clock, 1);
    clock.set(at("06:05"));
    const finishFirst = await going.next();
    clock.set(at("06:10"));
    expect(await reports.next()).toMatchObject({ outcome: "queued", tick: "2026-03-02T06:10:00.000Z" });
    finishFirst();
    (await going.next())();
    expect(await reports.next()).toMatchObject({ outcome: "succeeded", ticks: { count: 2 } });
  });

  it("get one delivery, of the latest tick, when the machine slept through several", async () => {
    const clock = settableClock(start);
    let sleptMs = 0;
    const job = everyFive(() => {});
    const { reports } = schedule([job], clock, {
      clock: { now: () => clock.now() + sleptMs, after: clock.after },
    });
    await untilWaiting(clock, 1);
    sleptMs = 17 * minuteMs;
    clock.set(at("06:05"));
    expect(await reports.next()).toMatchObject({
      tick: "2026-03-02T06:20:00.000Z",
      ticks: { from: "2026-03-02T06:05:00.000Z", count: 4 },
    });
    await untilWaiting(clock, 1);
    clock.advance(3 * minuteMs);
    expect(await reports.next()).toMatchObject({ tick: "2026-03-02T06:25:00.000Z", ticks: { count: 1 } });
    expect(reports.left()).toEqual([]);
  });

  it("go on after a tick that came to no report", async () => {
    const clock = settableClock(start);
    const job = everyFive(() => {});
    let down = true;
    const store = {
      ...fixture.store,
      acquire: async (...request: Parameters<typeof fixture.store.acquire>) => {
        if (down) throw new Error("no network");
        return fixture.store.acquire(...request);
      },
    };
    const { reports, failures } = schedule([job], clock, { deps: { store, log: silentLog } });
    await untilWaiting(clock, 1);
    clock.set(at("06:05"));
    expect(await failures.next()).toMatchObject({ job: job.name, error: { message: "no network" } });
    down = false;
    await untilWaiting(clock, 1);
    clock.set(at("06:10"));
    expect(await reports.next()).toMatchObject({ outcome: "succeeded", ticks: { count: 2 } });
  });

  it("leave jobs without a schedule alone, and end when no job has another tick", async () => {
    const clock = settableClock(start);
    const byHand = defineJob({ name: freshName(), timeout: "1m", run: () => {} });
    const last = { ...everyFive(() => {}), schedule: { ...cron("*/5 * * * *"), next: () => undefined } };
    await schedule([byHand, last], clock).ended;
    expect(await fixture.store.read(byHand.name, budgetOn(clock))).toBeUndefined();
  });

  it("get another run for a tick that was queued behind one with no time left for it", async () => {
    const clock = settableClock(start);
    const going = series<() => void>();
    const job = everyFive(() => new Promise<void>((resolve) => going.add(resolve)), { timeout: "3m" });
    const { reports } = schedule([job], clock);
    await untilWaiting(clock, 1);
    clock.set(at("06:05"));
    const finishFirst = await going.next();
    const held = await fixture.store.read(job.name, budgetOn(clock));
    expect(held?.owner).toBeDefined();
    await fixture.store.queue(job.name, at("06:06"), held as NonNullable<typeof held>, budgetOn(clock));
    // A pass took 2 minutes, and 1 is left.
    clock.set(at("06:07"));
    finishFirst();
    expect(await reports.next()).toMatchObject({ outcome: "capped", ticks: { through: "2026-03-02T06:05:00.000Z" } });
    (await going.next())();
    expect(await reports.next()).toMatchObject({ outcome: "succeeded", tick: "2026-03-02T06:06:00.000Z" });
  });
});

describe("stopping", () => {
  it("ends runs that are going as interrupted, gives their leases back, and delivers nothing more", async () => {
    const clock = settableClock(start);
    const going = series<Run>();
    const job = everyFive((run) => {
      going.add(run);
      return new Promise<void>(() => {});
    });
    const { reports, stop } = schedule([job], clock);
    await untilWaiting(clock, 1);
    clock.set(at("06:05"));
    const run = await going.next();
    await stop();
    expect(run.signal.aborted).toBe(true);
    // Its end has been waited for.
    expect(reports.left()).toMatchObject([{ outcome: "interrupted" }]);
    const [record] = (await fixture.store.runs(job.name, { limit: 10 }, budgetOn(clock))).runs;
    expect(record).toMatchObject({ outcome: "interrupted", id: run.id });
    expect(await fixture.store.read(job.name, budgetOn(clock))).not.toHaveProperty("owner");
    clock.set(at("06:30"));
    await new Promise((resolve) => setImmediate(resolve));
    expect(reports.left()).toHaveLength(1);
  });

  it("before anything was due resolves at once", async () => {
    const clock = settableClock(start);
    const { stop, reports } = schedule([everyFive(() => {})], clock);
    await untilWaiting(clock, 1);
    await stop();
    expect(reports.left()).toEqual([]);
    expect(clock.timers).toBe(0);
  });
});
