/** Writes values as a field: lists and ranges that every dialect reads alike, and steps in the form asked for. */

import { type Field, type SpecialDay, writeSpecialDay } from "../field.ts";
import { valueRuns } from "../value-runs.ts";

/** How a dialect writes a field. */
export interface FieldStyle {
  /** One value. @default its digits */
  readonly value?: (value: number) => string;
  /** Between the ends of a range. @default "-" */
  readonly to?: string;
  /** A step that runs to the end of the field, in dialects and fields where it is safe. */
  readonly step?: (start: number, step: number) => string;
}

/**
 * The text for `values`, which are ascending, in a field that runs from `lowest` to `highest`; `*` for all of them.
 * Three or more in a row become a range.
 */
export function fieldText(values: readonly number[], lowest: number, highest: number, style: FieldStyle = {}): string {
  if (values.length === highest - lowest + 1) return "*";
  const step = (values[1] ?? 0) - values[0]!;
  const regular = values.length > 2 && step > 1 && values.every((value, index) => value === values[0]! + index * step);
  if (style.step && regular && values.at(-1)! + step > highest) return style.step(values[0]!, step);
  return valueRuns(values, style.value ?? String, style.to ?? "-").join(",");
}

/** A step as crontabs write it: `*` with a step, or a range with one, since `5/15` isn't known everywhere. */
export const crontabStep =
  (lowest: number, highest: number) =>
  (start: number, step: number): string =>
    start === lowest ? `*/${step}` : `${start}-${highest}/${step}`;

/** A step as EventBridge writes it. */
export const startStep = (start: number, step: number): string => `${start}/${step}`;

/**
 * A day field with names for weekdays, `special` writing what depends on the month; undefined for a list with such a day,
 * which neither EventBridge nor Cloudflare takes.
 */
export function dayText(field: Field, special: (day: SpecialDay) => string): string | undefined {
  const [day] = field.special;
  if (day === undefined) {
    return field.name === "day-of-month"
      ? fieldText(field.values, 1, 31)
      : fieldText(field.values, 0, 6, { value: dayName });
  }
  return field.special.length + field.values.length === 1 ? special(day) : undefined;
}

const dayNames = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/** The name of a day, from 0 for Sunday. */
const dayName = (day: number): string => dayNames[day]!;

/** A special day with names for weekdays. */
export const namedSpecialDay = (day: SpecialDay): string => writeSpecialDay(day, dayName);
