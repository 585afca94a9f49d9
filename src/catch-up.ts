/**
 * Which of the due ticks a run does, and why it leaves out the others. Pure: every tick in the range is to be done, or
 * skipped with its reason, or left owed.
 */
import type { SkippedTicks, TickRange } from "./control/control-store.ts";
import type { Schedule, ScheduleWithCalendar } from "./schedule/index.ts";

/** What becomes of ticks that were missed: see `TickWork.catchUp`. */
export type CatchUp = "all" | "latest" | "none";

export interface CatchUpPolicy {
  readonly catchUp: CatchUp;
  /** The most ticks that one run does. */
  readonly maxTicks?: number;
  /** A tick that would start later than this after its time, in milliseconds, is missed. */
  readonly startWithinMs?: number;
  /** Ticks before this instant aren't owed. */
  readonly startAt?: number;
}

export interface TickPlan {
  /** The ticks that are settled by this run, once it succeeds: done or skipped. */
  readonly range: TickRange;
  /** To be done, oldest first. */
  readonly ticks: readonly number[];
  /** Left out for good. */
  readonly skipped: readonly SkippedTicks[];
  /** How many more are due, and stay owed. */
  readonly owed: number;
}

/**
 * Plans the ticks due after `after` (exclusive) through `through`. The latter is a tick that was delivered, and a delivered
 * tick is due whatever the schedule says by now, unless a calendar removes it.
 *
 * @param delivered ticks that the platform delivered: with `catchUp: "none"` only these are done
 * @param now the present, in milliseconds since the epoch
 */
export const planTicks = (
  schedule: Schedule | undefined,
  policy: CatchUpPolicy,
  window: {
    readonly after: number;
    readonly through: number;
    readonly delivered: readonly number[];
    readonly now: number;
  },
): TickPlan => {
  const { after, through, delivered, now } = window;
  const { catchUp, startWithinMs = Number.POSITIVE_INFINITY, startAt = Number.NEGATIVE_INFINITY } = policy;
  const maxTicks = policy.maxTicks ?? (catchUp === "latest" ? 1 : Number.POSITIVE_INFINITY);
  const reasonFor = (tick: number): SkippedTicks["reason"] | undefined => {
    if ((tick === through || delivered.includes(tick)) && isRemoved(schedule, tick)) return "calendar";
    if (tick < startAt) return "before startAt";
    if (now - tick > startWithinMs) return "startWithin";
    return catchUp === "none" && !delivered.includes(tick) ? "catchUp" : undefined;
  };
  const due = dueTicks(schedule, after, through, delivered);
  const wanted = due.filter((tick) => reasonFor(tick) === undefined);
  const ticks = catchUp === "latest" ? wanted.slice(-maxTicks) : wanted.slice(0, maxTicks);
  // Oldest first: what comes after the last that is done stays owed, unless nothing is left to be done there.
  const last = wanted.length > ticks.length && catchUp !== "latest" ? (ticks.at(-1) as number) : through;
  const settled = due.filter((tick) => tick <= last);
  const done = new Set(ticks);
  return {
    range: { from: settled[0] as number, through: last, count: settled.length },
    ticks,
    skipped: skippedRanges(settled, (tick) => (done.has(tick) ? undefined : (reasonFor(tick) ?? "catchUp"))),
    owed: due.length - settled.length,
  };
};

/** What the schedule has, and what was delivered all the same, ascending. */
const dueTicks = (
  schedule: Schedule | undefined,
  after: number,
  through: number,
  delivered: readonly number[],
): readonly number[] => {
  const due = new Set(schedule?.between(after, through) ?? []);
  const scheduled = due.size;
  for (const tick of delivered) if (tick > after && tick < through) due.add(tick);
  due.add(through);
  return due.size === scheduled ? [...due] : [...due].sort((one, other) => one - other);
};

/** Whether a calendar takes this tick away. */
const isRemoved = (schedule: Schedule | undefined, tick: number): boolean => {
  const { removed } = (schedule ?? {}) as Partial<ScheduleWithCalendar>;
  for (const _ of removed?.(tick - 1, tick) ?? []) return true;
  return false;
};

/** Neighbours that were skipped for the same reason make one range. */
const skippedRanges = (
  ticks: readonly number[],
  reasonFor: (tick: number) => SkippedTicks["reason"] | undefined,
): SkippedTicks[] => {
  const ranges: SkippedTicks[] = [];
  let open = false;
  for (const tick of ticks) {
    const reason = reasonFor(tick);
    const last = ranges.at(-1);
    if (reason !== undefined && open && last?.reason === reason) {
      ranges[ranges.length - 1] = { ...last, through: tick, count: last.count + 1 };
    } else if (reason !== undefined) ranges.push({ from: tick, through: tick, count: 1, reason });
    open = reason !== undefined;
  }
  return ranges;
};

/** For work that does all that is due at once. */
export const everyTick: CatchUpPolicy = { catchUp: "all" };
