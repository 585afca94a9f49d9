/**
 * Calendars remove ticks: holidays by date, freezes by instant. A removed tick isn't owed, and every one of them can be
 * named with its reason, so that the ledger and the alarms know it.
 */

import { InvalidOptionsError } from "../errors.ts";
import type { Calendar, Freeze, Schedule } from "./schedule.ts";
import { dayMs, horizon } from "./wall-pattern.ts";
import { zoneNamed } from "./zone.ts";

/** Something that removes ticks. */
export type Exception =
  /** A date, or a range of dates with both ends, in the schedule's zone: "2026-12-25", "2026-12-24..2026-12-27". */
  | string
  /** The same with a reason. */
  | { readonly on: string; readonly reason: string }
  /**
   * A freeze: ticks from `from` on and before `to` are removed. Instants, as milliseconds since the epoch or ISO 8601 with
   * an offset ("2026-12-24T18:00:00+01:00").
   */
  | { readonly from: string | number; readonly to: string | number; readonly reason?: string }
  /** Another calendar, such as one that was read from a file. */
  | Calendar;

/** A tick that a calendar removed. */
export interface RemovedTick {
  readonly tick: number;
  readonly reason: string;
}

/** A schedule with ticks removed. */
export interface ScheduleWithCalendar extends Schedule {
  readonly calendar: Calendar;
  /** The removed ticks in (after, through], ascending. */
  removed(after: number, through: number): Iterable<RemovedTick>;
}

const isException = (given: unknown): boolean =>
  typeof given === "string" ||
  (typeof given === "object" && given !== null && ["on", "from", "days"].some((key) => key in given));

/**
 * A calendar of `exceptions`.
 * @throws InvalidOptionsError listing all that can't be read.
 */
export function calendar(exceptions: readonly Exception[]): Calendar {
  const days = new Map<number, string>();
  const freezes: Freeze[] = [];
  const problems: string[] = [];
  for (const exception of exceptions) {
    try {
      if (!isException(exception)) {
        problems.push(`${JSON.stringify(exception)} is no date, range, freeze or calendar`);
        continue;
      }
      if (typeof exception === "string") addDates(days, exception, exception);
      else if ("on" in exception) addDates(days, exception.on, exception.reason);
      else if ("from" in exception) freezes.push(readFreeze(exception));
      else {
        for (const [day, reason] of exception.days) addDay(days, day, reason);
        freezes.push(...exception.freezes);
      }
    } catch (error) {
      problems.push((error as Error).message);
    }
  }
  if (problems.length > 0) throw new InvalidOptionsError("calendar", problems);
  return { days, freezes: merge(freezes) };
}

/**
 * `schedule` without the ticks that `calendar` removes. Dates are taken in the schedule's zone, as of the tick itself: one
 * that was caught up after a gap at midnight belongs to the day on which it runs.
 */
export function withCalendar(schedule: Schedule, calendar: Calendar): ScheduleWithCalendar {
  const zone = zoneNamed(schedule.zone);
  const wallOf = (tick: number) => tick + zone.spanAt(tick).offset;
  const dayOf = (wall: number) => Math.floor(wall / dayMs) * dayMs;
  const reasonFor = (tick: number): string | undefined =>
    freezeAt(calendar.freezes, tick)?.reason ?? calendar.days.get(dayOf(wallOf(tick)));
  /** An instant up to which everything after `tick`, which is removed, is removed as well. */
  const removedUntil = (tick: number): number => freezeAt(calendar.freezes, tick)?.to ?? tick + 1;

  function* between(after: number, through: number): Generator<number> {
    let from = after;
    for (let resume = true; resume; ) {
      resume = false;
      for (const tick of schedule.between(from, through)) {
        if (reasonFor(tick) === undefined) yield tick;
        else if (removedUntil(tick) > tick + dayMs) {
          // A long freeze is jumped over instead of walked through.
          from = removedUntil(tick) - 1;
          resume = true;
          break;
        }
      }
    }
  }
  return {
    ...schedule,
    calendar,
    between,
    next(after) {
      for (const tick of between(after, horizon)) return tick;
      return undefined;
    },
    previous(before) {
      let tick = schedule.previous(before);
      while (tick !== undefined && reasonFor(tick) !== undefined) {
        tick = schedule.previous(freezeAt(calendar.freezes, tick)?.from ?? tick);
      }
      return tick;
    },
    // Taking ticks away can only make intervals longer, so the schedule's own is the safe answer.
    shortestInterval: schedule.shortestInterval,
    *removed(after, through) {
      for (const tick of schedule.between(after, through)) {
        const reason = reasonFor(tick);
        if (reason !== undefined) yield { tick, reason };
      }
    },
  };
}

function addDates(days: Map<number, string>, text: string, reason: string): void {
  const [first = "", last = first, ...rest] = text.split("..");
  const from = readDate(first);
  const to = readDate(last);
  if (rest.length > 0 || from === undefined || to === undefined) {
    throw new Error(`"${text}" isn't a date (2026-12-25) or a range of dates (2026-12-24..2026-12-27)`);
  }
  if (to < from) throw new Error(`"${text}" ends before it begins`);
  if (to - from > longestRangeMs) throw new Error(`"${text}" is longer than a hundred years`);
  for (let day = from; day <= to; day += dayMs) addDay(days, day, reason);
}

/** Each day of a range is kept by itself. */
const longestRangeMs = 36_525 * dayMs;

/** The first reason that is given for a day stands. */
function addDay(days: Map<number, string>, day: number, reason: string): void {
  if (!days.has(day)) days.set(day, reason);
}

/** Midnight of a date as if in UTC; undefined for one that doesn't exist. */
function readDate(text: string): number | undefined {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return undefined;
  const day = Date.parse(text);
  return Number.isNaN(day) || new Date(day).toISOString().slice(0, 10) !== text ? undefined : day;
}

function readFreeze(freeze: { from: string | number; to: string | number; reason?: string }): Freeze {
  const from = readInstant(freeze.from);
  const to = readInstant(freeze.to);
  if (to <= from) throw new Error(`a freeze from ${freeze.from} to ${freeze.to} is empty`);
  return { from, to, reason: freeze.reason ?? `freeze until ${new Date(to).toISOString()}` };
}

function readInstant(value: string | number): number {
  if (typeof value === "number" && Number.isSafeInteger(value)) return value;
  if (typeof value === "string" && /T.*(Z|[+-]\d{2}:?\d{2})$/.test(value) && !Number.isNaN(Date.parse(value))) {
    return Date.parse(value);
  }
  throw new Error(`"${value}" isn't an instant: milliseconds, or ISO 8601 with an offset (2026-12-24T18:00:00Z)`);
}

function merge(freezes: readonly Freeze[]): Freeze[] {
  const merged: Freeze[] = [];
  for (const freeze of [...freezes].sort((a, b) => a.from - b.from)) {
    const last = merged.at(-1);
    if (last === undefined || freeze.from >= last.to) merged.push(freeze);
    else if (freeze.to > last.to) merged.push({ ...freeze, from: last.to });
  }
  return merged;
}

/** The freeze that `tick` is in. Freezes don't overlap, so the last that began is the only one that it can be. */
function freezeAt(freezes: readonly Freeze[], tick: number): Freeze | undefined {
  let low = 0;
  let high = freezes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (freezes[middle]!.from <= tick) low = middle + 1;
    else high = middle;
  }
  const last = freezes[low - 1];
  return last !== undefined && tick < last.to ? last : undefined;
}
