/**
 * Which wall-clock times an expression means, with no zone: a wall time is written as the milliseconds that the same
 * date and time would be in UTC. The calendar (months, leap years, `L`, `W`, `#`, either or both day fields, years) is
 * croner's, used as a matcher of days only; hours and minutes repeat on each such day and are a sorted list.
 */

import { Cron } from "croner";
import { InvalidScheduleError } from "../errors.ts";
import type { Expression } from "./expression.ts";
import { type Field, isEvery, writeSpecialDay } from "./field.ts";

const minuteMs = 60_000;
export const dayMs = 86_400_000;

/** No tick is at or after this: the end of the last year that EventBridge's cron can name. */
export const horizon = Date.UTC(2200, 0, 1);

/** The wall times of one expression. */
export interface WallPattern {
  /** Times of day at which it fires, in milliseconds from midnight, ascending. */
  readonly times: readonly number[];
  /** Wall times at or after `from`, ascending, up to the horizon. */
  ascending(from: number): Iterable<number>;
  /** Wall times before `before`, descending, back to 1970. */
  descending(before: number): Iterable<number>;
}

/**
 * The wall times that `expression` means.
 * @throws InvalidScheduleError where no date ever matches, such as 30 February.
 */
export function wallPattern(expression: Expression): WallPattern {
  const times = expression.hour.values.flatMap((hour) =>
    expression.minute.values.map((minute) => (hour * 60 + minute) * minuteMs),
  );
  const days = dayFinder(expression);
  return {
    times,
    *ascending(from) {
      let day: number | undefined = Math.max(0, Math.floor(from / dayMs) * dayMs);
      while ((day = days.atOrAfter(day)) !== undefined && day < horizon) {
        for (const time of times) if (day + time >= from) yield day + time;
        day += dayMs;
      }
    },
    *descending(before) {
      let day: number | undefined = Math.min(horizon, Math.ceil(before / dayMs) * dayMs) - dayMs;
      while (day >= 0 && (day = days.atOrBefore(day)) !== undefined && day >= 0) {
        for (let index = times.length - 1; index >= 0; index--) {
          const wall = day + times[index]!;
          if (wall < before) yield wall;
        }
        day -= dayMs;
      }
    },
  };
}

/** Finds days that match; a day is its midnight in wall time. */
interface DayFinder {
  atOrAfter(day: number): number | undefined;
  atOrBefore(day: number): number | undefined;
}

const everyDay: DayFinder = { atOrAfter: (day) => day, atOrBefore: (day) => day };

function dayFinder(expression: Expression): DayFinder {
  const { dayOfMonth, month, dayOfWeek, year, days } = expression;
  const anyYear = year === undefined || isEvery(year);
  if (days === "every" && isEvery(month) && anyYear) return everyDay;
  const pattern = [
    "0 0 0",
    days === "every" || days === "of-week" ? "*" : list(dayOfMonth),
    isEvery(month) ? "*" : list(month),
    days === "every" || days === "of-month" ? "*" : list(dayOfWeek),
    anyYear ? "*" : list(year),
  ].join(" ");
  const matcher = new Cron(pattern, { mode: "7-part", utcOffset: 0, paused: true, domAndDow: days === "and" });
  // The last answer, which is also the answer from every day between the question and it: the next question is
  // mostly one of those.
  let asked = Number.POSITIVE_INFINITY;
  let answer: number | undefined;
  const finder: DayFinder = {
    // croner's reference is exclusive, by the second.
    atOrAfter(day) {
      if (answer === undefined || day < asked || day > answer) {
        asked = day;
        answer = matcher.nextRun(new Date(day - 1000))?.getTime();
      }
      return answer;
    },
    atOrBefore: (day) => matcher.previousRuns(1, new Date(day + 1000))[0]?.getTime(),
  };
  if (mayNeverMatch(expression, anyYear) && !((finder.atOrAfter(0) ?? horizon) < horizon)) {
    const written = days === "of-week" ? dayOfWeek : dayOfMonth;
    const dates = [dayOfMonth.text, month.text, dayOfWeek.text, year?.text].filter(Boolean).join(" ");
    throw new InvalidScheduleError(expression.source, `never fires: no date matches "${dates}"`, written.position);
  }
  return finder;
}

/** Only these can name no date at all, and a search for one that isn't there is dear: every other expression skips it. */
const mayNeverMatch = ({ dayOfMonth, days }: Expression, anyYear: boolean): boolean =>
  !anyYear ||
  days === "and" ||
  (days === "of-month" &&
    dayOfMonth.values.every((day) => day > 28) &&
    dayOfMonth.special.every((day) => day.kind === "nearest-workday" && day.day > 28));

const list = ({ values, special }: Field): string =>
  [...values, ...special.map((day) => writeSpecialDay(day, String))].join(",");
