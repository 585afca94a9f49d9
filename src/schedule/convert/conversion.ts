/**
 * What a conversion into another scheduler's dialect answers: an expression that fires at exactly the schedule's times,
 * or why there is none and what to write instead. That a dialect lacks something is expected, so it is a value; a
 * caller that can't go on without an expression asks `requireConverted`.
 */

import { InvalidScheduleError } from "../../errors.ts";
import { clockChangesMet } from "../clock-changes.ts";
import { type Expression, readExpression } from "../expression.ts";
import type { Field } from "../field.ts";
import { type Schedule, twoYearsMs } from "../schedule.ts";

/** An equivalent in the other dialect. */
export interface Converted<Text = string> {
  readonly ok: true;
  readonly expression: Text;
  /** The zone to set beside the expression, where the dialect keeps it there; undefined where it is UTC or part of it. */
  readonly zone: string | undefined;
  /** The source's own `*` in minute or hour, which the expression may no longer show. */
  readonly wildcard: boolean;
  /** Where the other scheduler will behave differently all the same: clock changes, calendars. */
  readonly warnings: readonly string[];
}

/** Why there is no equivalent. */
export interface Refused {
  readonly ok: false;
  readonly code: RefusalCode;
  readonly reason: string;
  /** What to write instead. */
  readonly instead: string;
}

export type RefusalCode =
  /** A rate has no cron. */
  | "RATE"
  /** The dialect knows UTC only. */
  | "ZONE"
  /** Either day field is enough. */
  | "OR_DAYS"
  /** Both day fields must match. */
  | "AND_DAYS"
  /** `L` or `W`. */
  | "LW"
  /** `#`. */
  | "HASH"
  /** A list that contains `L`, `W` or `#`. */
  | "LIST"
  | "YEAR";

export type Conversion<Text = string> = Converted<Text> | Refused;

export interface ConversionOptions {
  /**
   * An instant in milliseconds since the epoch: clock changes in the two years after it that the other scheduler treats
   * differently are warned of. Without it none are looked for.
   */
  readonly from?: number;
}

/** How another scheduler treats a time of day in a gap and in an overlap. */
export interface ClockRule {
  readonly scheduler: string;
  readonly gap: "skip";
  readonly overlap: "first" | "both";
}

/**
 * The expression of a conversion.
 * @throws InvalidScheduleError with the reason and what to write instead, where it was refused.
 */
export function requireConverted<Text>(schedule: Schedule, conversion: Conversion<Text>): Converted<Text> {
  if (conversion.ok) return conversion;
  throw new InvalidScheduleError(schedule.source, `${conversion.reason}; ${conversion.instead}`);
}

export const refuse = (code: RefusalCode, reason: string, instead: string): Refused => ({
  ok: false,
  code,
  reason,
  instead,
});

/** Reads a cron schedule again, or refuses a rate, of which `scheduler` knows nothing. */
export function readCron(schedule: Schedule, scheduler: string): Expression | Refused {
  if (schedule.kind === "cron") return readExpression(schedule.source);
  const instead = "write a cron expression with an interval that divides an hour or a day, such as */5 * * * *";
  return refuse("RATE", `${scheduler} has no rate: a cron can't count time across hours and days`, instead);
}

/** Refuses a zone for a scheduler that knows only UTC. */
export const refuseZone = (schedule: Schedule, scheduler: string): Refused | undefined =>
  schedule.zone === "UTC"
    ? undefined
    : refuse(
        "ZONE",
        `${scheduler} runs in UTC, and ${schedule.zone} has no equivalent there`,
        "write the times in UTC and leave the zone out, or run the job where zones are known",
      );

export const refuseYear = (scheduler: string): Refused =>
  refuse("YEAR", `${scheduler} has no year field`, "leave the year out and remove the job when it is over");

export const refuseAnd = (scheduler: string, { dayOfMonth, dayOfWeek }: Expression): Refused =>
  refuse(
    "AND_DAYS",
    `${scheduler} can't ask for a day of the month (${dayOfMonth.text}) and a day of the week (${dayOfWeek.text}) at once`,
    "write one of the two fields and let the job return on other days",
  );

export const refuseOr = (scheduler: string, { dayOfMonth, dayOfWeek }: Expression): Refused =>
  refuse(
    "OR_DAYS",
    `${scheduler} can't take either a day of the month (${dayOfMonth.text}) or a day of the week (${dayOfWeek.text})`,
    "run the job every day and let it return on other days; two schedules would both fire where both fields match",
  );

/** Refuses `L`, `W` and `#` for a scheduler that has none of them. */
export function refuseSpecial(scheduler: string, fields: readonly Field[]): Refused | undefined {
  const [day] = fields.flatMap(({ special }) => special);
  if (day === undefined) return undefined;
  return day.kind === "nth-weekday"
    ? refuse("HASH", `${scheduler} has no #`, "run the job on that weekday and let it return in other weeks")
    : refuse(
        "LW",
        `${scheduler} has no L or W`,
        "write a fixed day, or run the job every day and let it return on other days",
      );
}

/** What `schedule` will do otherwise under `rule`, and what its calendar has that no scheduler knows of. */
export function warningsFor(schedule: Schedule, rule: ClockRule | undefined, { from }: ConversionOptions): string[] {
  const warnings: string[] = [];
  if (schedule.calendar !== undefined) {
    warnings.push(
      "the calendar is unknown to the scheduler: it fires on excepted days, too, and the run leaves them out",
    );
  }
  if (rule === undefined || from === undefined) return warnings;
  const wishedFor = {
    gap: schedule.wildcard || schedule.gap === "skip" ? undefined : "after",
    overlap: schedule.wildcard ? "both" : schedule.overlap,
  } as const;
  for (const kind of ["gap", "overlap"] as const) {
    const wanted = wishedFor[kind];
    if (wanted === undefined || wanted === rule[kind]) continue;
    for (const change of clockChangesMet(schedule, from, from + twoYearsMs)) {
      if (change.kind !== kind) continue;
      const day = new Date(change.at).toISOString().slice(0, 10);
      warnings.push(
        `${rule.scheduler} ${actions[rule[kind]]}, as on ${day} in ${schedule.zone} at ${change.time}; ${wishes[wanted]}`,
      );
      break;
    }
  }
  return warnings;
}

const actions = {
  skip: "skips a time of day that the clocks leave out",
  first: "fires only once in a repeated hour",
  both: "fires twice in a repeated hour",
};

const wishes = {
  after: "this schedule is due at the first instant after the gap",
  first: "this schedule is due the first time only",
  both: "this schedule is due both times; UTC or a rate has no such hour",
};
