/**
 * One look at all jobs: their control items are read in batches, each job is judged, what the alarms stand on is measured,
 * and what is overdue is started, where that is wanted.
 *
 * Guarantees: memory doesn't grow with the number of jobs; a definition or a control item that is broken hides none of the
 * others, and is counted as unwatched, which pages; a tick is started at most once, also by two watchdogs at a time.
 *
 * What it doesn't guarantee: that a job which was started does its work. The next look tells.
 */
import { randomUUID } from "node:crypto";
import type { Clock } from "../clock.ts";
import type { Budget, ControlState, ControlStore } from "../control/control-store.ts";
import { mostKeys } from "../control/watch.ts";
import { hasCode } from "../errors.ts";
import type { Logger } from "../observe/log.ts";
import type { MetricSet, MetricsSink } from "../observe/metrics.ts";
import { errorOf, isoOf } from "../report.ts";
import { collectFindings, type Finding } from "./findings.ts";
import { type Judgement, judge } from "./judge.ts";
import type { WatchedEntry, WatchedJob } from "./watched-job.ts";

export interface WatchOptions {
  readonly jobs: Iterable<WatchedEntry> | AsyncIterable<WatchedEntry>;
  readonly store: Pick<ControlStore, "readMany" | "create" | "noteHealed" | "noteSchedule">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Where the metrics go. @default nowhere */
  readonly metrics?: MetricsSink;
  /** The name under which the watchdog reports on itself. */
  readonly name: string;
  /** How often it looks, in milliseconds. */
  readonly everyMs: number;
  /** A pause or a dry run of this length is remarked on, in milliseconds. */
  readonly tooLongMs: number;
  /** Starts a job for a tick that is overdue. @default nothing is started */
  readonly start?: StartJob;
  /** The most jobs that are started in one look. */
  readonly mostStarts: number;
  /** Called for every job that was judged, in no particular order. */
  readonly onJudgement?: (job: string, judgement: Judgement) => void;
  /** Aborts when there is no time left. */
  readonly signal: AbortSignal;
  readonly random: () => number;
}

/** Starts another run of a job, and doesn't wait for it. */
export type StartJob = (job: string, tick: number) => Promise<void>;

/** What one look came to. Numbers, and the first of what was found. */
export interface WatchReport {
  readonly jobs: number;
  readonly overdue: number;
  readonly suspects: number;
  readonly remarks: number;
  readonly started: number;
  /** Jobs that couldn't be judged. */
  readonly unwatched: number;
  /** At most 1,000. */
  readonly findings: readonly Finding[];
}

export const watch = async (options: WatchOptions): Promise<WatchReport> => {
  const { store, clock, log, metrics, start, signal } = options;
  const found = collectFindings(log);
  const budget = (): Budget => ({ clock, random: options.random, until: clock.now() + requestsMs });
  const judging = {
    heals: start !== undefined,
    tooLongMs: options.tooLongMs,
    everyMs: options.everyMs,
  };
  let jobs = 0;
  let started = 0;
  let metricsLost = 0;

  /** A metric that is lost changes nothing; it is said once. */
  const tell = async (send: () => void | Promise<void>): Promise<void> => {
    try {
      await send();
    } catch (error) {
      if (metricsLost++ === 0) log.warn({ error: errorOf(error) }, "metrics of the watchdog were lost");
    }
  };

  const stateOf = async (job: WatchedJob, read: ControlState | Error | undefined): Promise<ControlState> => {
    if (read instanceof Error) throw read;
    if (read !== undefined) return read;
    // Deployed, and never run: from now on its ticks are owed, so that it is missed if it never does.
    const since = (job.catchUp.startAt ?? clock.now() + 1) - 1;
    if (job.schedule !== undefined) await store.create(job.name, since, budget());
    return { ...neverRun, job: job.name, since, activeSince: clock.now() };
  };

  const look = async (job: WatchedJob, read: ControlState | Error | undefined): Promise<void> => {
    const state = await stateOf(job, read);
    const now = clock.now();
    const judgement = judge(job, state, now, judging);
    if (judgement.rescheduled !== undefined && state.nextTick !== undefined) {
      const change = { nextTick: judgement.rescheduled, seen: state.nextTick, at: now };
      await store.noteSchedule(job.name, change, budget());
    }
    options.onJudgement?.(job.name, judgement);
    found.of(job.name, judgement);
    await tell(() => metrics?.record(measured(job, judgement, now)));
    if (judgement.start !== undefined && start !== undefined && started < options.mostStarts) {
      started += 1;
      if (!(await startOnce(job.name, judgement.start, state, start))) started -= 1;
    }
  };

  const startOnce = async (job: string, at: number, state: ControlState, start: StartJob): Promise<boolean> => {
    const tick = isoOf(at);
    try {
      const { healed } = state;
      const succeeded = healed !== undefined && (state.lastSuccessAt ?? 0) > healed.at;
      const times = healed === undefined || succeeded ? 1 : healed.times + 1;
      const note = { tick: at, at: clock.now(), times, by: randomUUID() };
      // Noted first: a watchdog that dies in between has started it at most once.
      if ((await store.noteHealed(job, note, budget())) === "refused") return false;
      await start(job, at);
      found.add({ job, kind: "started", tick });
      return true;
    } catch (error) {
      found.add({ job, kind: "notStarted", tick, problem: errorOf(error).message });
      return false;
    }
  };

  const lookAtBatch = async (batch: readonly WatchedJob[], states: Promise<States>): Promise<void> => {
    const read = await states;
    const looks = batch.map((job) => async () => {
      try {
        if (read instanceof Error) throw read;
        await look(job, read.get(job.name));
      } catch (error) {
        found.add({ job: job.name, kind: "unwatched", problem: problemOf(error) });
      }
    });
    await inParallel(looks, mostAtOnce);
  };

  /** The items of the next batch are read while those of the last are looked at. */
  let open: Promise<void> = Promise.resolve();
  for await (const batch of batchesOf(options.jobs, (job, problem) => found.add({ job, kind: "unwatched", problem }))) {
    const names = batch.map(({ name }) => name);
    const states = store.readMany(names, budget()).catch(asError);
    await open;
    if (signal.aborted) throw signal.reason;
    jobs += batch.length;
    open = lookAtBatch(batch, states);
  }
  await open;

  const unwatched = found.counts.unwatched;
  await tell(() => metrics?.record({ job: options.name, at: clock.now(), values: { Unwatched: unwatched } }));
  await tell(() => metrics?.flush(signal));
  const { overdue, suspect, remark } = found.counts;
  const report = { jobs, overdue, suspects: suspect, remarks: remark, started, unwatched };
  log.info({ ...report, ...(metricsLost > 0 ? { metricsLost } : {}) }, "watched");
  return { ...report, findings: found.list };
};

type States = ReadonlyMap<string, ControlState | Error> | Error;

/** How long the requests for one batch, or for one note, may be tried, in milliseconds. */
const requestsMs = 10_000;
/** Jobs of a batch that are looked at side by side: most need no request of their own. */
const mostAtOnce = 10;

const neverRun: ControlState = {
  job: "",
  fence: 0,
  prev: [],
  recentOwners: [],
  since: 0,
  unfinished: 0,
  failedTicks: 0,
  recent: [],
};

const measured = (job: WatchedJob, judgement: Judgement, at: number): MetricSet => ({
  job: job.name,
  at,
  values: {
    ...(job.schedule === undefined ? {} : { Overdue: seconds(judgement.overdueMs) }),
    ConsecutiveFailures: judgement.failures,
    ...(judgement.watermarkLagMs === undefined ? {} : { WatermarkLag: seconds(judgement.watermarkLagMs) }),
    ...(judgement.cappedInARow === 0 ? {} : { CappedInARow: judgement.cappedInARow }),
  },
});

/** Rounded up, so that what is late by less than a second isn't 0. */
const seconds = (durationMs: number): number => Math.ceil(durationMs / 1_000);

/** Jobs in batches of as many as are read at once; what can't be loaded, and a name that comes twice, is refused by itself. */
async function* batchesOf(
  entries: WatchOptions["jobs"],
  refuse: (job: string, problem: string) => void,
): AsyncGenerator<WatchedJob[]> {
  const seen = new Set<string>();
  let batch: WatchedJob[] = [];
  let index = 0;
  for await (const entry of entries) {
    index += 1;
    const job = await load(entry).catch((error) => refuse(`(number ${index})`, problemOf(error)));
    if (job === undefined) continue;
    if (seen.has(job.name)) {
      refuse(job.name, "two of the watched jobs have this name");
      continue;
    }
    seen.add(job.name);
    batch.push(job);
    if (batch.length === mostKeys) {
      yield batch;
      batch = [];
    }
  }
  if (batch.length > 0) yield batch;
}

const load = async (entry: WatchedEntry): Promise<WatchedJob> => {
  const job = typeof entry === "function" ? await entry() : entry;
  if (typeof job?.name !== "string" || typeof job.timeoutMs !== "number" || typeof job.alert !== "object") {
    throw new TypeError(
      `it isn't a job as defineJob returns it, but ${JSON.stringify(job)?.slice(0, 80) ?? typeof job}`,
    );
  }
  return job;
};

const inParallel = async (tasks: readonly (() => Promise<void>)[], most: number): Promise<void> => {
  const queue = tasks.values();
  const worker = async () => {
    for (const task of queue) await task();
  };
  await Promise.all(Array.from({ length: most }, worker));
};

const problemOf = (error: unknown): string => {
  const { message, name } = errorOf(error);
  return hasCode(error, "STORE_UNAVAILABLE") || name === "RangeError" ? message : `${name}: ${message}`;
};

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
