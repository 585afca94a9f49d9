/**
 * EventBridge Scheduler's `cron(…)` and `rate(…)`.
 * https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
 */

import type { Expression } from "../expression.ts";
import { type SpecialDay, writeSpecialDay } from "../field.ts";
import { rateText } from "../rate.ts";
import type { Schedule } from "../schedule.ts";
import {
  type Conversion,
  type ConversionOptions,
  type Refused,
  readCron,
  refuse,
  refuseAnd,
  refuseOr,
  warningsFor,
} from "./conversion.ts";
import { dayText, fieldText, startStep } from "./field-text.ts";

const scheduler = "EventBridge";

/**
 * `schedule` as a ScheduleExpression; `zone` is its ScheduleExpressionTimezone. Refused where either of two day fields is
 * enough, or both must match, or a list contains `L`, `W` or `#`.
 */
export function toEventBridge(schedule: Schedule, options: ConversionOptions = {}): Conversion {
  const rule = { scheduler, gap: "skip", overlap: "first" } as const;
  const converted = { ok: true, zone: schedule.zone, wildcard: schedule.wildcard } as const;
  const warnings = warningsFor(schedule, rule, options);
  if (schedule.kind === "rate") {
    const expression = `rate(${rateText(schedule)})`;
    // https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#rate-based
    return {
      ...converted,
      expression,
      warnings: [...warnings, "EventBridge counts a rate from StartDate: set it to one of the schedule's ticks"],
    };
  }
  const read = readCron(schedule, scheduler);
  if ("ok" in read) return read;
  const days = daysText(read);
  if (typeof days !== "object" || "ok" in days) return days;
  const minute = fieldText(read.minute.values, 0, 59, { step: startStep });
  const hour = fieldText(read.hour.values, 0, 23, { step: startStep });
  const month = fieldText(read.month.values, 1, 12);
  const year = read.year ? fieldText(read.year.values, 1970, 2199) : "*";
  const unsaid = read.dayOfMonth.special.find((day) => day.kind === "nearest-workday" && day.day > 28);
  if (unsaid) warnings.push("AWS doesn't say what W does in a month without that day; here the month is left out");
  return {
    ...converted,
    expression: `cron(${minute} ${hour} ${days.ofMonth} ${month} ${days.ofWeek} ${year})`,
    warnings,
  };
}

function daysText(read: Expression): { ofMonth: string; ofWeek: string } | Refused {
  if (read.days === "or") return refuseOr(scheduler, read);
  if (read.days === "and") return refuseAnd(scheduler, read);
  if (read.days === "every") return { ofMonth: "*", ofWeek: "?" };
  const field = read.days === "of-month" ? read.dayOfMonth : read.dayOfWeek;
  const text = dayText(field, specialText);
  if (text === undefined) {
    const instead = "write a schedule for each of them, on days that never coincide";
    return refuse("LIST", `EventBridge has no list with L, W or # (${field.text})`, instead);
  }
  return read.days === "of-month" ? { ofMonth: text, ofWeek: "?" } : { ofMonth: "?", ofWeek: text };
}

/** Numbers, counted from Sunday as 1, since AWS shows no names with `#` and `L`. */
const specialText = (day: SpecialDay): string => writeSpecialDay(day, (weekday) => String(weekday + 1));
