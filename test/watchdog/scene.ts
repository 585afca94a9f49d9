/** Jobs under a watchdog's eyes: a clock that is set, a log that is kept, metrics that are collected, on the local engine. */
import { cron, type DynamoStore, defineJob, type Job, type RunReport, runJob } from "cronfence";
import { type SettableClock, settableClock } from "cronfence/testing";
import { type WatchdogOptions, type WatchedEntry, type WatchReport, watchdog } from "cronfence/watchdog";
import type { MetricSet, MetricsSink } from "../../src/observe/metrics.ts";
import { type Fixture, freshName } from "../fixture.ts";
import { type RecordedLog, recordedLog } from "../recorded-log.ts";

export const minute = 60_000;
export const hour = 60 * minute;
export const day = 24 * hour;

interface Collected extends MetricsSink {
  readonly sets: MetricSet[];
  readonly flushes: number;
  /** The last set of a job, as plain values. */
  of(job: string): MetricSet["values"] | undefined;
}

const collectedMetrics = (): Collected => {
  const sets: MetricSet[] = [];
  let flushes = 0;
  return {
    sets,
    get flushes() {
      return flushes;
    },
    record: (set) => void sets.push(set),
    flush: async () => {
      flushes += 1;
    },
    of: (job) => sets.findLast((set) => set.job === job)?.values,
  };
};

export interface Scene {
  /** Of the watchdog. */
  readonly name: string;
  readonly clock: SettableClock;
  readonly log: RecordedLog;
  readonly metrics: Collected;
  /** Ticks that the watchdog started, by job. */
  readonly started: [string, number][];
  /** A job due every hour on the hour, whose timeout is a minute and whose slack is ten. */
  job(more?: object): Job;
  /** Runs a job for a tick. */
  run(job: Job, tick?: number): Promise<RunReport>;
  /** One run of a watchdog over these jobs. */
  watch(jobs: readonly WatchedEntry[] | WatchdogOptions["jobs"], more?: Partial<WatchdogOptions>): Promise<Watched>;
}

interface Watched {
  readonly outcome: RunReport;
  readonly report: WatchReport | undefined;
}

export const openScene = (fixture: Fixture, start: string | number = "2026-03-01T00:00:30Z"): Scene => {
  const clock = settableClock(start, { autoAdvance: { atMostMs: 5_000 } });
  const log = recordedLog();
  const metrics = collectedMetrics();
  const started: Scene["started"] = [];
  const name = `watchdog-${freshName()}`;
  const deps = { store: fixture.store, clock, log: log.log };
  return {
    name,
    clock,
    log,
    metrics,
    started,
    job: (more = {}) =>
      defineJob(
        { name: freshName(), schedule: cron("0 * * * *"), exact: true, timeout: "1m", run: () => {}, ...more },
        { clock },
      ),
    run: (job, tick) =>
      runJob(job, { kind: tick === undefined ? "manual" : "schedule", ...(tick === undefined ? {} : { tick }) }, deps),
    watch: async (jobs, more = {}) => {
      let report: WatchReport | undefined;
      const { heal, ...rest } = more;
      const job = watchdog({
        name,
        jobs,
        clock,
        store: fixture.store,
        metrics,
        ...(heal ? { heal, start: async (started_: string, tick: number) => void started.push([started_, tick]) } : {}),
        ...rest,
        onReport: (made) => {
          report = made;
        },
      });
      const outcome = await runJob(job, { kind: "manual" }, deps);
      return { outcome, report };
    },
  };
};

/** A store that does everything itself but what is given. */
export const storeWith = (store: DynamoStore, more: Partial<DynamoStore>): DynamoStore => ({ ...store, ...more });
