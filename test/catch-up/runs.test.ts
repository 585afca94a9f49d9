/**
 * Missed ticks, end to end: real runs on the local engine under a clock that is set, with each tick's effect counted in
 * a table by the tick's own transaction, so that a second one would show.
 */
import {
  type CronOptions,
  cron,
  defineJob,
  type Job,
  type JobOptions,
  type RunRecord,
  type RunReport,
  rate,
  runJob,
  type Schedule,
  type TickResult,
} from "cronfence";
import { calendar } from "cronfence/schedule";
import { dumpTable, type SettableClock, settableClock } from "cronfence/testing";
import { describe, expect, it } from "vitest";
import { budgetOn, freshName, silentLog, useEngine } from "../fixture.ts";

const engine = useEngine("effects");
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const noon = Date.parse("2026-01-01T12:00:00Z");

type TickOptions = Partial<Omit<JobOptions, "name">> & {
  readonly catchUp?: "all" | "latest" | "none";
  readonly maxTicks?: number;
  /** Runs before the tick's effect is returned. */
  readonly before?: (tick: number) => unknown;
};

/** A job whose ticks leave their effect, on a clock of its own, known to the control table since `since`. */
const scene = async (schedule: Schedule, since: number | undefined, options: TickOptions = {}) => {
  const { before, ...rest } = options;
  const clock = settableClock(since ?? noon);
  const job: Job = defineJob(
    {
      name: freshName(),
      schedule,
      timeout: "30s",
      ...rest,
      tick: async (tick, run): Promise<TickResult> => {
        await before?.(tick.at.getTime());
        return { writes: [effect(run.job, tick.id)] };
      },
    },
    { clock },
  );
  if (since !== undefined) await engine.store.create(job.name, since, budgetOn(clock));
  const deps = { store: engine.store, clock, log: silentLog };
  return {
    job,
    clock,
    /** Delivers a tick `lateMs` after its time, but never back in time. */
    deliver: (tick: number, lateMs = 0): Promise<RunReport> => {
      clock.set(Math.max(clock.now(), tick + lateMs));
      return runJob(job, { kind: "schedule", tick }, deps);
    },
    runByHand: () => runJob(job, { kind: "manual" }, deps),
    done: () => effectsOf(job.name),
    ledger: () => recordsOf(job.name, clock),
    state: () => engine.store.read(job.name, budgetOn(clock)),
  };
};

const effect = (job: string, tick: string) => ({
  Update: {
    TableName: "effects",
    Key: { id: `${job} ${tick}` },
    UpdateExpression: "ADD #times :one",
    ExpressionAttributeNames: { "#times": "times" },
    ExpressionAttributeValues: { ":one": 1 },
  },
});

/** The ticks that had their effect; fails if one had it twice. */
const effectsOf = async (job: string): Promise<number[]> => {
  const items = (await dumpTable(engine.client, "effects")).filter(({ id }) => String(id).startsWith(`${job} `));
  expect(items.filter(({ times }) => times !== 1)).toEqual([]);
  return items.map(({ id }) => Date.parse(String(id).slice(job.length + 1))).sort((one, other) => one - other);
};

/** Oldest first. */
const recordsOf = async (job: string, clock: SettableClock): Promise<RunRecord[]> =>
  [...(await engine.store.runs(job, { limit: 1_000 }, budgetOn(clock))).runs].reverse();

const minutesFromNoon = (ticks: readonly number[]) => ticks.map((tick) => (tick - noon) / minuteMs);
const at = (minutes: number) => noon + minutes * minuteMs;
const everyMinute = rate("1 minute");
const everyFive = cron("*/5 * * * *");

describe("a manual run", () => {
  it("goes round for all that is owed when a tick is queued behind it, not only for that tick", async () => {
    let queued: RunReport | undefined;
    const { deliver, clock, job, done } = await scene(everyFive, noon);
    await deliver(at(5));
    // 12:10 is never delivered; 12:15 comes while a person's run is going.
    clock.set(at(15));
    const report = await runJob(
      defineJob({
        name: job.name,
        schedule: everyFive,
        timeout: "30s",
        run: async (run) => {
          if (run.tick === undefined) queued = await deliver(at(15));
          else await run.commit([effect(run.job, run.tick.id)]);
        },
      }),
      { kind: "manual" },
      { store: engine.store, clock, log: silentLog },
    );
    expect([queued?.outcome, report.outcome]).toEqual(["queued", "succeeded"]);
    expect(report.ticks).toEqual({
      from: new Date(at(10)).toISOString(),
      through: new Date(at(15)).toISOString(),
      count: 2,
    });
    expect(await done()).toEqual([at(5), at(15)]);
  });
});

describe("a run that fails half-way", () => {
  it("records the ticks that its commits have passed over, with their reason", async () => {
    const { deliver, ledger } = await scene(everyFive, noon, {
      catchUp: "latest",
      maxTicks: 2,
      before: (tick) => {
        if (tick === at(25)) throw new Error("the last one fails");
      },
    });
    const report = await deliver(at(25));
    expect(report.outcome).toBe("failed");
    const [record] = await ledger();
    expect(record?.completed).toBe(at(20));
    expect(record?.skipped).toEqual([{ from: at(5), through: at(15), count: 3, reason: "catchUp" }]);
  });
});
