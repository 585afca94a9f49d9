/**
 * Schedules by the clock on the wall: cron expressions in a zone. This is where an expression, a zone and a policy for
 * clock changes become a schedule.
 */

import { readExpression } from "./expression.ts";
import { shortestInterval } from "./interval.ts";
import { checkOptions, refuseNonText } from "./options.ts";
import { rate } from "./rate.ts";
import type { GapPolicy, OverlapPolicy, Schedule } from "./schedule.ts";
import { ascendingTicks, type ChangePolicy, descendingTicks, firstOf } from "./ticks.ts";
import { horizon, type WallPattern, wallPattern } from "./wall-pattern.ts";
import { type Zone, zoneNamed } from "./zone.ts";
import { canonicalZone } from "./zone-names.ts";

/** How a cron expression is to be read. */
export interface CronOptions {
  /** IANA zone that the times of day are in. @default "UTC" */
  readonly zone?: string;
  /** A fixed time inside the spring gap: moved to the first instant after it, or skipped. @default "after" */
  readonly gap?: GapPolicy;
  /** A fixed time in the repeated hour of autumn: the first time only, or both. @default "first" */
  readonly overlap?: OverlapPolicy;
}

/**
 * A schedule from five-field cron (`*&#47;5 * * * *`) or EventBridge's `cron(0 9 ? * MON-FRI *)`; `rate(5 minutes)` is
 * read too.
 *
 * Five-field cron takes names, ranges, steps and lists, and `L`, `15W`, `LW`, `5L`, `MON#2` in the day fields; Sunday
 * is 0 or 7. Day-of-month and day-of-week are alternatives, unless one starts with `*` (crontab(5)). EventBridge's form
 * counts Sunday as 1 and wants `?` in exactly one day field
 * (https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#cron-based).
 *
 * @throws InvalidScheduleError with the position of what can't be read, or where no date ever matches.
 * @throws InvalidOptionsError for an unknown zone or option, naming the nearest known one.
 * @example cron("30 2 * * *", { zone: "America/New_York" })
 */
export function cron(expression: string, options: CronOptions = {}): Schedule {
  checkOptions("cron", options, {
    zone: undefined,
    gap: ["after", "skip"],
    overlap: ["first", "both"],
  });
  refuseNonText(expression);
  const zone = canonicalZone(options.zone ?? "UTC");
  if (/^\s*rate\s*\(/i.test(expression)) return rate(expression);
  const read = readExpression(expression);
  const gap = options.gap ?? "after";
  const overlap = options.overlap ?? "first";
  const policy: ChangePolicy = {
    catchUp: !read.wildcard && gap === "after",
    once: !read.wildcard && overlap === "first",
  };
  const facts = { source: expression, kind: "cron", zone, wildcard: read.wildcard, gap, overlap } as const;
  return zonedSchedule(facts, wallPattern(read), zoneNamed(zone), policy);
}

/**
 * The ticks that EventBridge Scheduler would deliver for `schedule`, whatever the schedule's own policy: a time of day in
 * a gap is skipped, and each time of day fires once a day, the first time. AWS documents this for a fixed time only; for
 * `*` in minute or hour it is the literal reading, under which an hourly schedule loses an hour in autumn
 * (https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#daylist-savings-time). Calendars aren't
 * known to EventBridge, so what they remove is delivered.
 */
export function eventBridgeTicks(schedule: Schedule): Schedule {
  if (schedule.kind === "rate") return schedule;
  const { source, kind, zone, wildcard } = schedule;
  const facts = { source, kind, zone, wildcard, gap: "skip", overlap: "first" } as const;
  return zonedSchedule(facts, wallPattern(readExpression(source)), zoneNamed(zone), { catchUp: false, once: true });
}

type Facts = Pick<Schedule, "source" | "kind" | "zone" | "wildcard" | "gap" | "overlap">;

/** The schedule that fires at `pattern`'s wall times in `zone`. */
function zonedSchedule(facts: Facts, pattern: WallPattern, zone: Zone, policy: ChangePolicy): Schedule {
  const schedule: Schedule = {
    ...facts,
    next: (after) => firstOf(ascendingTicks(pattern, zone, policy, after, horizon)),
    previous: (before) => firstOf(descendingTicks(pattern, zone, policy, before)),
    between: (after, through) => ascendingTicks(pattern, zone, policy, after, through),
    shortestInterval: (from, through) => shortestInterval(schedule, pattern.times, zone, from, through),
  };
  return schedule;
}
