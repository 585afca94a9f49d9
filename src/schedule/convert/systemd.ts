/**
 * systemd's `OnCalendar=`: https://www.freedesktop.org/software/systemd/man/latest/systemd.time.html#Calendar%20Events
 * A timer may have several; it elapses once where two of them name the same instant, so lines are alternatives.
 */

import type { Expression } from "../expression.ts";
import { isEvery, type SpecialDay } from "../field.ts";
import type { Schedule } from "../schedule.ts";
import {
  type Conversion,
  type ConversionOptions,
  type Refused,
  readCron,
  refuse,
  refuseAnd,
  warningsFor,
} from "./conversion.ts";
import { type FieldStyle, fieldText } from "./field-text.ts";

const scheduler = "systemd";

/** `schedule` as lines for `OnCalendar=`, each with its zone. Refused for rates, `29W` to `31W`, and `L`, `W`, `#` under a second condition. */
export function toSystemd(schedule: Schedule, options: ConversionOptions = {}): Conversion<readonly string[]> {
  const read = readCron(schedule, scheduler);
  if ("ok" in read) return read;
  const days = dayPatterns(read);
  if ("ok" in days) return days;
  const year = read.year && !isEvery(read.year) ? fieldText(read.year.values, 1970, 2199, { to: ".." }) : "*";
  const minute = fieldText(read.minute.values, 0, 59, twoDigits);
  const time = `${fieldText(read.hour.values, 0, 23, twoDigits)}:${minute}:00`;
  const expression = days.flatMap(({ weekdays, day, month = months(read) }) =>
    month === undefined ? [] : [`${weekdays ? `${weekdays} ` : ""}${year}-${month}${day} ${time} ${schedule.zone}`],
  );
  const warnings = warningsFor(schedule, { scheduler, gap: "skip", overlap: "first" }, options);
  return { ok: true, expression, zone: undefined, wildcard: schedule.wildcard, warnings };
}

const pad = (value: number): string => String(value).padStart(2, "0");
const twoDigits: FieldStyle = { value: pad, to: "..", step: (start, step) => `${pad(start)}/${pad(step)}` };
const listed: FieldStyle = { value: pad, to: ".." };
const names = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

const months = (read: Expression): string => fieldText(read.month.values, 1, 12, listed);

/** The days of one line. */
interface DayPattern {
  readonly weekdays?: string;
  /** With its separator: `-13`, or `~01` counted from the month's end. */
  readonly day: string;
  /** Where it isn't the expression's own. */
  readonly month?: string;
}

function dayPatterns(read: Expression): readonly DayPattern[] | Refused {
  const { dayOfMonth, dayOfWeek, days } = read;
  if (days === "every") return [{ day: "-*" }];
  const special = [...dayOfMonth.special, ...dayOfWeek.special];
  const unsaid = special.find((day) => day.kind === "nearest-workday" && day.day > 28);
  if (unsaid)
    return refuse(
      "LW",
      "systemd can't count to a workday round the end of a short month",
      "write a day up to 28W, or LW",
    );
  const ofMonth = `-${fieldText(dayOfMonth.values, 1, 31, listed)}`;
  const ofWeek = weekdays(dayOfWeek.values);
  if (days === "and") {
    return special.length > 0 ? refuseAnd(scheduler, read) : [{ weekdays: ofWeek, day: ofMonth }];
  }
  const patterns: DayPattern[] = [];
  if (days !== "of-week") {
    if (dayOfMonth.values.length > 0) patterns.push({ day: ofMonth });
    patterns.push(...dayOfMonth.special.flatMap((day) => specialDays(day, read)));
  }
  if (days !== "of-month") {
    if (dayOfWeek.values.length > 0) patterns.push({ weekdays: ofWeek, day: "-*" });
    patterns.push(...dayOfWeek.special.flatMap((day) => specialDays(day, read)));
  }
  return patterns;
}

/** Weekdays from Monday, since systemd's week starts there and `Sun..Tue` would be refused. */
function weekdays(values: readonly number[]): string {
  const fromMonday = values.map((day) => (day + 6) % 7).sort((a, b) => a - b);
  return fieldText(fromMonday, 0, 6, { value: (day) => names[(day + 1) % 7]!, to: ".." });
}

function specialDays(day: SpecialDay, read: Expression): DayPattern[] {
  switch (day.kind) {
    case "last-day":
      return [{ day: "~01" }];
    case "last-workday":
      return [
        { weekdays: "Mon..Fri", day: "~01" },
        { weekdays: "Fri", day: "~02,03" },
      ];
    case "nth-weekday":
      return [{ weekdays: names[day.weekday]!, day: `-${pad(day.nth * 7 - 6)}..${pad(Math.min(day.nth * 7, 31))}` }];
    case "last-weekday":
      return [{ weekdays: names[day.weekday]!, day: "~07/1" }];
    case "nearest-workday":
      return nearestWorkday(day.day, read);
  }
}

/** The day itself, or the Friday before a Saturday, or the Monday after a Sunday, all within the month. */
function nearestWorkday(day: number, read: Expression): DayPattern[] {
  const itself = { weekdays: "Mon..Fri", day: `-${pad(day)}` };
  if (day === 1) return [itself, { weekdays: "Mon", day: "-02,03" }];
  const moved = [
    { weekdays: "Fri", day: `-${pad(day - 1)}` },
    { weekdays: "Mon", day: `-${pad(day + 1)}` },
  ];
  // A Sunday 28 February that ends its month goes back to the Friday, the third day from the end.
  const february = day === 28 && read.month.values.includes(2) ? [{ weekdays: "Fri", day: "~03", month: "02" }] : [];
  return [itself, ...moved, ...february];
}
