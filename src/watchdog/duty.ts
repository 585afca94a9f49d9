/**
 * Which tick a job must have done, and by when. Pure: schedule, zone, calendar, jitter, timeout and slack from the job's
 * definition, what it has done from its control item.
 *
 *   tick ── jitter ── timeout ── slack ── skew ──▶ late from here on
 *        the start may be      what may happen       the watchdog's clock
 *        anywhere in here      all the same          may be ahead
 *
 * A tick counts from when somebody can be expected to start it:
 *
 * | the tick | counts from |
 * | --- | --- |
 * | any other | its own time |
 * | from before the job was created, resumed or given another schedule | the first delivery after that, which covers it |
 * | one that EventBridge leaves out (a time of day that the clocks skip) | the watchdog's next look where it starts such ticks, else the next delivery |
 */
import type { ControlState } from "../control/control-store.ts";
import { eventBridgeTicks, type Schedule } from "../schedule/index.ts";
import { changeLimitMs, firstOf } from "../schedule/ticks.ts";
import { zoneNamed } from "../schedule/zone.ts";
import type { WatchedJob } from "./watched-job.ts";

export interface Duty {
  /** The oldest tick that isn't done, in milliseconds since the epoch. It need not be due yet. */
  readonly tick: number;
  /** From when on somebody can be expected to have started it. */
  readonly from: number;
  /** Somebody is the watchdog: EventBridge leaves the tick out. */
  readonly leftOut: boolean;
  /** When it must be done at the latest. */
  readonly by: number;
}

/** What a job has done, as far as its duty depends on it. */
export type Done = Pick<ControlState, "tick" | "since" | "activeSince">;

/**
 * The job's oldest undone tick; `undefined` where there is none.
 * @param healsEveryMs how often a watchdog looks that starts what EventBridge leaves out; `undefined` where none does
 */
export const dutyOf = (job: WatchedJob, done: Done, healsEveryMs: number | undefined): Duty | undefined => {
  const { schedule } = job;
  const tick = schedule?.next(doneThrough(job, done));
  if (schedule === undefined || tick === undefined) return undefined;
  return dutyAt(job, schedule, tick, done.activeSince, healsEveryMs);
};

/** The same of one tick that isn't done. */
export const dutyAt = (
  job: WatchedJob,
  schedule: Schedule,
  tick: number,
  activeSince: number | undefined,
  healsEveryMs: number | undefined,
): Duty => {
  const started = firstStart(schedule, Math.max(tick, activeSince ?? tick), healsEveryMs !== undefined);
  const from = started.tick + (started.leftOut ? (healsEveryMs ?? 0) : 0);
  return { tick, from, leftOut: started.leftOut && started.tick === tick, by: from + lateAfterMs(job) };
};

/** Everything up to here is done, or was never owed. */
const doneThrough = ({ catchUp }: WatchedJob, { tick, since }: Done): number =>
  Math.max(since, tick ?? since, (catchUp.startAt ?? Number.NEGATIVE_INFINITY) - 1);

/** How long after a tick it must be done. */
export const lateAfterMs = ({ jitterMs, timeoutMs, skewMs, alert }: WatchedJob): number =>
  jitterMs + timeoutMs + alert.missedAfterMs + skewMs;

/**
 * How long after a tick the platform may still be trying: a delivery within a minute (and the jitter), and two more tries
 * of a failed invocation, one and two minutes after it.
 * https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
 */
export const platformTriesMs = ({ jitterMs, timeoutMs }: WatchedJob): number =>
  jitterMs + deliveryMs + 3 * timeoutMs + 3 * 60_000;

/** EventBridge Scheduler delivers within a minute: https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html */
export const deliveryMs = 60_000;

/** The first tick from `from` on that is started by somebody; where there is none any more, `from` itself. */
const firstStart = (
  schedule: Schedule,
  from: number,
  heals: boolean,
): { readonly tick: number; readonly leftOut: boolean } => {
  for (let tick = schedule.next(from - 1); tick !== undefined; tick = schedule.next(tick)) {
    const delivered = isDelivered(schedule, tick);
    if (delivered || heals) return { tick, leftOut: !delivered };
  }
  return { tick: from, leftOut: false };
};

/** Whether EventBridge Scheduler starts this tick; see `eventBridgeTicks`. Only after a change of clocks may it not. */
const isDelivered = (schedule: Schedule, tick: number): boolean => {
  const changes = schedule.kind === "rate" ? [] : [...zoneNamed(schedule.zone).changes(tick - changeLimitMs, tick)];
  if (changes.length === 0) return true;
  return firstOf(deliveriesOf(schedule).between(tick - 1, tick)) !== undefined;
};

const deliveries = new WeakMap<Schedule, Schedule>();
const deliveriesOf = (schedule: Schedule): Schedule => {
  let delivered = deliveries.get(schedule);
  if (delivered === undefined) deliveries.set(schedule, (delivered = eventBridgeTicks(schedule)));
  return delivered;
};
