/**
 * A job whose ticks leave their effect in a table, in the tick's own transaction and counted, so that a second one shows;
 * with deliveries under a clock that is set, on the local engine.
 */
import {
  defineJob,
  type Job,
  type JobOptions,
  type RunRecord,
  type RunReport,
  runJob,
  type Schedule,
  type Write,
} from "cronfence";
import { dumpTable, settableClock } from "cronfence/testing";
import { expect } from "vitest";
import { ledgerOf, type TickFate } from "../../src/rehearse/ledger.ts";
import type { ScheduleWithCalendar } from "../../src/schedule/index.ts";
import { budgetOn, type Fixture, freshName, silentLog } from "../fixture.ts";

export const minuteMs = 60_000;
/** Where most of the tests begin. */
export const noon = Date.parse("2026-01-01T12:00:00Z");
export const at = (minutes: number): number => noon + minutes * minuteMs;
export const iso = (instant: number): string => new Date(instant).toISOString();

export type TickOptions = Partial<Omit<JobOptions, "name">> & {
  readonly catchUp?: "all" | "latest" | "none";
  readonly maxTicks?: number;
  /** Runs before the tick's effect is returned; the writes are instead of it. */
  readonly work?: (tick: number) => readonly Write[] | undefined | Promise<readonly Write[] | undefined>;
};

/**
 * @param engine has a table "effects"
 * @param since when the job was made known; undefined leaves that to its first run
 */
export const sceneOf = async (
  engine: Fixture,
  schedule: Schedule,
  since: number | undefined,
  { work, ...options }: TickOptions = {},
) => {
  const clock = settableClock(since ?? noon);
  const started: number[] = [];
  const job: Job = defineJob(
    {
      name: freshName(),
      schedule,
      timeout: "30s",
      ...options,
      tick: async (tick, run) => {
        started.push(tick.at.getTime());
        const instead = await work?.(tick.at.getTime());
        return instead ?? [effectOf(run.job, tick.at.getTime())];
      },
    },
    { clock },
  );
  if (since !== undefined) await engine.store.create(job.name, since, budgetOn(clock));
  const deps = { store: engine.store, clock, log: silentLog };
  const ledger = async (): Promise<RunRecord[]> =>
    [...(await engine.store.runs(job.name, { limit: 1_000 }, budgetOn(clock))).runs].reverse();
  return {
    job,
    clock,
    deps,
    /** The ticks in the order in which their work began. */
    started,
    /** Delivers a tick `lateMs` after its time; the clock never goes back. */
    deliver: (tick: number, lateMs = 0): Promise<RunReport> => {
      clock.set(Math.max(clock.now(), tick + lateMs));
      return runJob(job, { kind: "schedule", tick }, deps);
    },
    done: () => effectsOf(engine, job.name),
    /** Run records, oldest first. */
    ledger,
    /** How each tick ended, from the records alone. */
    fates: async (from: number, through: number): Promise<ReadonlyMap<number, TickFate>> => {
      const planned = job.schedule as ScheduleWithCalendar;
      const due = [...planned.between(from - 1, through)];
      const removed = [...(planned.removed?.(from - 1, through) ?? [])];
      const entries = ledgerOf({ due, removed, records: await ledger() });
      return new Map(entries.map(({ tick, fate }) => [tick, fate]));
    },
  };
};

export const effectOf = (job: string, tick: number): Write => ({
  Update: {
    TableName: "effects",
    Key: { id: `${job} ${iso(tick)}` },
    UpdateExpression: "ADD #times :one",
    ExpressionAttributeNames: { "#times": "times" },
    ExpressionAttributeValues: { ":one": 1 },
  },
});

/** The ticks that had their effect, ascending; fails if one had it twice. */
const effectsOf = async ({ client }: Fixture, job: string): Promise<number[]> => {
  const items = (await dumpTable(client, "effects")).filter(({ id }) => String(id).startsWith(`${job} `));
  expect(items.filter(({ times }) => times !== 1)).toEqual([]);
  return items.map(({ id }) => Date.parse(String(id).slice(job.length + 1))).sort((one, other) => one - other);
};
