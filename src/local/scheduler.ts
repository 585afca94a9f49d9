/**
 * Fires jobs on their schedules in this process. What a scheduler outside does in production: it delivers ticks and knows
 * nothing of leases, so a tick that comes due while a run is going is delivered like any other.
 *
 * Guarantees: a tick that came due since the job's last completed one is delivered at the start, as one delivery of the
 * latest, whose run covers them all; after that each tick is delivered once. A delivery that fails ends nothing.
 *
 * What it doesn't do: it delivers at the tick, without the job's jitter; and what comes due while nothing runs it waits for
 * the next start.
 */
import type { RunDeps } from "../attempt.ts";
import { type Clock, pause } from "../clock.ts";
import type { ControlStore } from "../control/control-store.ts";
import type { Job } from "../job.ts";
import { owedAfter } from "../passes.ts";
import type { RunReport } from "../report.ts";
import { runJob } from "../run.ts";
import type { Schedule } from "../schedule/index.ts";

export interface SchedulerOptions {
  readonly clock: Clock;
  /** What every run gets; `clock`, `interrupt` and `startAnother` come from here. */
  readonly deps: Omit<RunDeps, "clock" | "interrupt" | "startAnother" | "store"> & {
    readonly store: NonNullable<RunDeps["store"]>;
  };
  /** Aborted to stop: no more ticks are delivered, and runs that are going end as `interrupted`. */
  readonly signal: AbortSignal;
  /** Called with what became of each delivery. */
  readonly onReport?: (report: RunReport) => void;
  /** Called when a delivery came to no report: its outcome is unknown or the control table can't be used. */
  readonly onFailure?: (job: string, error: unknown) => void;
}

/**
 * Delivers the ticks of `jobs` until `signal` aborts, or no job has another tick; resolves when the last run has ended.
 * Jobs without a schedule are left alone.
 *
 * @throws StoreUnavailableError when the control table can't be read at the start.
 */
export const runSchedules = async (jobs: readonly Job[], options: SchedulerOptions): Promise<void> => {
  const { clock, deps, signal } = options;
  const going = new Set<Promise<unknown>>();

  const keep = (work: Promise<unknown>): void => {
    const kept = work.finally(() => going.delete(kept));
    going.add(kept);
  };

  const deliver = async (job: Job, tick: number): Promise<RunReport | undefined> => {
    // A tick that is queued behind a run with no time left for it waits until that run has given its lease back.
    let another: number | undefined;
    const startAnother = async (_job: string, queued: number) => {
      another = queued;
    };
    try {
      const trigger = { kind: "schedule", tick } as const;
      const report = await runJob(job, trigger, { ...deps, clock, interrupt: signal, startAnother });
      options.onReport?.(report);
      return report;
    } catch (error) {
      options.onFailure?.(job.name, error);
      return undefined;
    } finally {
      if (another !== undefined && !signal.aborted) keep(deliver(job, another));
    }
  };

  /** What holds the lease at the start may be dead: the tick is delivered again when its lease is over. */
  const catchUp = async (job: Job, tick: number): Promise<void> => {
    while (!signal.aborted) {
      const leaseUntil = (await deliver(job, tick))?.holder?.leaseUntil;
      if (leaseUntil === undefined) return;
      await pause(clock, Math.max(0, Date.parse(leaseUntil) + job.skewMs + 1 - clock.now()), signal);
    }
  };

  const follow = async (job: Job, schedule: Schedule, since: number): Promise<void> => {
    for (let last = since; ; ) {
      const next = schedule.next(last);
      if (next === undefined) return;
      while (!signal.aborted && clock.now() < next) await pause(clock, next - clock.now(), signal);
      if (signal.aborted) return;
      // A machine that slept wakes late; the run of the latest tick covers those before it.
      last = Math.max(next, schedule.previous(clock.now() + 1) ?? next);
      keep(deliver(job, last));
    }
  };

  const scheduled = jobs.flatMap((job) => (job.schedule === undefined ? [] : [{ job, schedule: job.schedule }]));
  const startedAt = clock.now();
  const owed = await Promise.all(
    scheduled.map(({ job, schedule }) => owedTick(job, schedule, startedAt, clock, deps.store)),
  );
  await Promise.all(
    scheduled.map(({ job, schedule }, index) => {
      const tick = owed[index];
      if (tick !== undefined) keep(catchUp(job, tick));
      return follow(job, schedule, startedAt);
    }),
  );
  while (going.size > 0) await Promise.all(going);
};

/** The latest tick through `now` that is due and not done. A job that wasn't known is made known, and owes no older ones. */
const owedTick = async (
  { name, catchUp: { startAt } }: Job,
  schedule: Schedule,
  now: number,
  clock: Clock,
  store: ControlStore,
): Promise<number | undefined> => {
  const budget = { clock, random: Math.random, until: now + readMs };
  const since = startAt === undefined ? now : startAt - 1;
  const state = await store.read(name, budget);
  if (state === undefined) await store.create(name, since, budget);
  const latest = schedule.previous(now + 1);
  return latest !== undefined && latest > (state === undefined ? since : owedAfter(state, state.tick))
    ? latest
    : undefined;
};

const readMs = 5_000;
