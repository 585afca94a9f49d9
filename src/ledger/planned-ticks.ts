/** The ticks of a schedule with those that it leaves out, in the order of time. Pure. */

import { clockChangesMet } from "../schedule/clock-changes.ts";
import type { Schedule, ScheduleWithCalendar } from "../schedule/index.ts";

export interface PlannedTick {
  /** In milliseconds since the epoch. */
  readonly tick: number;
  /** `calendar`: removed by an exception. `gap`: a fixed time that the clocks skip, and that the schedule's policy leaves out. */
  readonly kind: "due" | "calendar" | "gap";
  /** Of `calendar`, the exception's reason; of `gap`, the time of day. */
  readonly reason?: string;
}

/**
 * The ticks in (after, through]. A time that is left out in a gap stands at the first instant after the gap, unless a tick is
 * due there.
 */
export function* plannedTicks(schedule: Schedule, after: number, through: number): Generator<PlannedTick> {
  const others = [...leftOutBy(schedule, after, through)].map(peekable);
  let last = after;
  const takeBefore = function* (tick: number): Generator<PlannedTick> {
    for (let next = earliest(others); next !== undefined && next.head!.tick < tick; next = earliest(others)) {
      const planned = next.head!;
      next.take();
      // One that stands where another does is that one's.
      if (planned.tick > last) yield planned;
      last = Math.max(last, planned.tick);
    }
  };
  for (const tick of schedule.between(after, through)) {
    if (others.length > 0) yield* takeBefore(tick);
    last = tick;
    yield { tick, kind: "due" };
  }
  yield* takeBefore(Number.POSITIVE_INFINITY);
}

function* leftOutBy(schedule: Schedule, after: number, through: number): Generator<Iterator<PlannedTick>> {
  const { removed } = schedule as Partial<ScheduleWithCalendar>;
  if (removed !== undefined) yield asPlanned(removed(after, through), "calendar");
  // A schedule that follows real time has no time of day that could be left out.
  if (schedule.kind === "cron" && schedule.gap === "skip" && !schedule.wildcard) {
    yield gapsOf(schedule, after, through);
  }
}

function* asPlanned(removed: Iterable<{ tick: number; reason: string }>, kind: "calendar"): Generator<PlannedTick> {
  for (const { tick, reason } of removed) yield { tick, kind, reason };
}

function* gapsOf(schedule: Schedule, after: number, through: number): Generator<PlannedTick> {
  for (const { kind, at, time } of clockChangesMet(schedule, after, through)) {
    if (kind === "gap") yield { tick: at, kind, reason: time };
  }
}

interface Peekable {
  head: PlannedTick | undefined;
  take(): void;
}

const peekable = (iterator: Iterator<PlannedTick>): Peekable => {
  const next = () => {
    const { done, value } = iterator.next();
    return done ? undefined : value;
  };
  const peeked: Peekable = {
    head: next(),
    take: () => {
      peeked.head = next();
    },
  };
  return peeked;
};

/** The one whose head comes first, where there is one that has any; the calendar's before a gap's. */
const earliest = (others: readonly Peekable[]): Peekable | undefined => {
  let first: Peekable | undefined;
  for (const other of others) {
    if (other.head !== undefined && (first?.head === undefined || other.head.tick < first.head.tick)) first = other;
  }
  return first;
};
