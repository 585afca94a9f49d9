/**
 * Whether a job is well, from its definition and its control item at one instant. Pure, and the only place that decides it:
 * the watchdog, the rehearsal of alarms and whoever prints a status all ask here.
 */
import type { ControlState, RunEntry } from "../control/control-store.ts";
import { pauseInForce } from "../control/pause.ts";
import { failuresInARow } from "../control/tally.ts";
import type { Json } from "../json.ts";
import { type Duty, deliveryMs, dutyOf, lateAfterMs, platformTriesMs } from "./duty.ts";
import type { WatchedJob } from "./watched-job.ts";

export interface Judgement {
  /** How long the oldest tick that must be done by now has been late; 0 for a job that is well, paused or in a dry run. */
  readonly overdueMs: number;
  /** That tick. */
  readonly overdueTick?: number;
  readonly failures: number;
  /** How many of the latest runs were capped, one after the other. */
  readonly cappedInARow: number;
  /** How far the watermark is behind, where it is a time. */
  readonly watermarkLagMs?: number;
  readonly suspects: readonly Suspect[];
  readonly remarks: readonly Remark[];
  /** The tick to start now, where the watchdog heals. */
  readonly start?: number;
  /** The schedule isn't the one of the last run, and would make ticks of the past overdue: the next tick by that of now. */
  readonly rescheduled?: number;
}

/**
 * A run that seems to have died or to hang. Only a suspicion: an expired holder that nobody has replaced may go on, so
 * `crashed` is recorded by the next run, under a higher fence.
 */
export interface Suspect {
  readonly run: string;
  readonly startedAt: number;
  readonly tick?: number;
  /**
   * `dead`: its lease is over and nobody has taken it. `hung`: it holds its lease longer than its job's timeout allows.
   * `replaced`: a later run holds the lease, and this one never finished.
   */
  readonly kind: "dead" | "hung" | "replaced";
}

/** Something that a person should look at, and that pages nobody. */
export type Remark =
  | { readonly kind: "paused"; readonly forMs: number; readonly by: string; readonly why: string }
  | { readonly kind: "dryRun"; readonly forMs: number }
  | { readonly kind: "nearTimeout"; readonly slowestMs: number; readonly timeoutMs: number };

export interface JudgeOptions {
  /** Overdue jobs are started. */
  readonly heals: boolean;
  /** A pause or a dry run of this length is remarked on, in milliseconds. */
  readonly tooLongMs: number;
  /** How often the watchdog looks, in milliseconds. */
  readonly everyMs: number;
}

/** @throws RangeError for an item that can't be judged: something in it isn't what it must be */
export const judge = (job: WatchedJob, state: ControlState, now: number, options: JudgeOptions): Judgement => {
  checkState(job, state, now);
  const paused = pauseInForce(state, now) !== undefined;
  const idle = paused || job.dryRun;
  const activeSince = activeSinceOf(state, now);
  const rescheduled = idle ? undefined : rescheduledTo(job, state, now);
  const done = { ...state, activeSince: rescheduled === undefined ? activeSince : now };
  const duty = idle ? undefined : dutyOf(job, done, options.heals ? options.everyMs : undefined);
  const overdueMs = duty === undefined ? 0 : Math.max(0, now - duty.by);
  const start = options.heals && duty !== undefined ? tickToStart(job, state, duty, now, options.everyMs) : undefined;
  const watermarkAt = timeOf(state.watermark, now);
  return {
    overdueMs,
    ...(overdueMs > 0 && duty !== undefined ? { overdueTick: duty.tick } : {}),
    failures: failuresInARow(state),
    cappedInARow: cappedInARow(state),
    ...(watermarkAt === undefined ? {} : { watermarkLagMs: Math.max(0, now - watermarkAt) }),
    suspects: suspectsOf(job, state, now),
    remarks: remarksOn(job, state, now, paused, options.tooLongMs),
    ...(start === undefined ? {} : { start }),
    ...(rescheduled === undefined ? {} : { rescheduled }),
  };
};

/** A pause that ends by itself ends like one that somebody takes back. */
export const activeSinceOf = ({ activeSince, since, paused }: ControlState, now: number): number => {
  const until = paused?.until ?? Number.POSITIVE_INFINITY;
  return Math.max(activeSince ?? since, until <= now ? until : 0);
};

/** An item that was changed by hand, or by something else: numbers that aren't would make every comparison false. */
const checkState = (job: WatchedJob, state: ControlState, now: number): void => {
  const numbers = ["fence", "since", "unfinished", "failedTicks"] as const;
  const optional = ["tick", "leaseUntil", "activeSince", "lastSuccessAt", "nextTick"] as const;
  for (const name of numbers) mustBeNumber(name, state[name]);
  for (const name of optional) if (state[name] !== undefined) mustBeNumber(name, state[name]);
  for (const { durationMs } of state.recent) mustBeNumber("recent", durationMs);
  for (const { startedAt } of [...state.prev, ...(state.run === undefined ? [] : [state.run])])
    mustBeNumber("startedAt", startedAt);
  if ((state.tick ?? 0) > now + job.skewMs + deliveryMs) {
    throw new RangeError(
      `the last completed tick, ${new Date(state.tick as number).toISOString()}, lies in the future: no tick before it will run`,
    );
  }
};

const mustBeNumber = (name: string, value: unknown): void => {
  if (typeof value !== "number" || !Number.isFinite(value))
    throw new RangeError(
      `${name} on the control item is ${JSON.stringify(value) ?? typeof value}, and must be a number`,
    );
};

/**
 * After another schedule was deployed, ticks that it has and the old one hadn't would be overdue at once. The last run
 * left behind which tick it expected next: where the schedule says an earlier one by now, which has passed, it is another
 * schedule.
 */
const rescheduledTo = (job: WatchedJob, state: ControlState, now: number): number | undefined => {
  const { nextTick, lastSuccessAt, tick } = state;
  if (nextTick === undefined || lastSuccessAt === undefined || (tick ?? 0) > lastSuccessAt) return undefined;
  const expected = job.schedule?.next(lastSuccessAt);
  return expected !== undefined && expected < nextTick && expected <= now ? expected : undefined;
};

/**
 * The latest tick that is overdue and that the platform no longer tries to do; or the oldest undone one, where EventBridge
 * has left it out. A run for it does those before it, too.
 */
const tickToStart = (
  job: WatchedJob,
  state: ControlState,
  duty: Duty,
  now: number,
  everyMs: number,
): number | undefined => {
  const held = state.owner !== undefined && (state.leaseUntil ?? 0) + job.skewMs >= now;
  const { schedule } = job;
  if (held || schedule === undefined) return undefined;
  const waitMs = Math.max(lateAfterMs(job), platformTriesMs(job));
  const overdue = now - waitMs > duty.from ? schedule.previous(now - waitMs) : undefined;
  // Nobody else would start it, so there is nothing to wait for but a little: it may have been delivered all the same.
  const leftOut = duty.leftOut && now > duty.tick + job.jitterMs + deliveryMs ? duty.tick : undefined;
  const tick = Math.max(overdue ?? 0, leftOut ?? 0);
  if (tick < duty.tick) return undefined;
  const { healed } = state;
  if (healed === undefined) return tick;
  const again = now >= healed.at + everyMs * 2 ** Math.min(healed.times, mostDoublings);
  return tick > healed.tick && (again || (state.lastSuccessAt ?? 0) > healed.at) ? tick : undefined;
};

/** Twelve doublings of five minutes are two weeks. */
const mostDoublings = 12;

const suspectsOf = (job: WatchedJob, state: ControlState, now: number): Suspect[] => {
  const suspect = ({ id, startedAt, tick }: RunEntry, kind: Suspect["kind"]): Suspect => ({
    run: id,
    startedAt,
    kind,
    ...(tick === undefined ? {} : { tick }),
  });
  const replaced = state.prev.map((entry) => suspect(entry, "replaced"));
  const { owner, run, leaseUntil = 0 } = state;
  if (owner === undefined || run === undefined) return replaced;
  if (leaseUntil + job.skewMs < now) return [...replaced, suspect(run, "dead")];
  const overdue = now > run.startedAt + job.timeoutMs + settlingMs + job.skewMs;
  return overdue ? [...replaced, suspect(run, "hung")] : replaced;
};

/** What a run may take beyond its timeout to settle what is open and to record its end. */
const settlingMs = 10_000;

const remarksOn = (job: WatchedJob, state: ControlState, now: number, paused: boolean, tooLongMs: number): Remark[] => {
  const remarks: Remark[] = [];
  if (paused && state.paused !== undefined && now - state.paused.at > tooLongMs) {
    const { at, by, why } = state.paused;
    remarks.push({ kind: "paused", forMs: now - at, by, why });
  }
  // Dry runs leave no other trace on the control item than that none of them succeeds.
  const realAt = state.lastSuccessAt ?? state.activeSince ?? state.since;
  if (job.dryRun && now - realAt > tooLongMs) remarks.push({ kind: "dryRun", forMs: now - realAt });
  const slowestMs = Math.max(0, ...state.recent.map(({ durationMs }) => durationMs));
  if (slowestMs > nearTimeout * job.timeoutMs)
    remarks.push({ kind: "nearTimeout", slowestMs, timeoutMs: job.timeoutMs });
  return remarks;
};

const nearTimeout = 0.8;

const cappedInARow = ({ recent }: ControlState): number => {
  const end = recent.findLastIndex(({ capped }) => capped !== true);
  return recent.length - 1 - end;
};

/**
 * The instant that a watermark stands for: ISO 8601 text, which may go on after it (`2026-01-01T00:00:00.000Z#id`), or
 * milliseconds since the epoch from 2010 to now. Anything else isn't taken for a time.
 */
const timeOf = (watermark: Json | undefined, now: number): number | undefined => {
  if (typeof watermark === "number") return watermark >= year2010 && watermark <= now + dayMs ? watermark : undefined;
  if (typeof watermark !== "string") return undefined;
  const [text] = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)/.exec(watermark) ?? [];
  const at = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(at) ? undefined : at;
};

const dayMs = 86_400_000;
const year2010 = Date.UTC(2010, 0, 1);
