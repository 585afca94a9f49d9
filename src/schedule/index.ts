/**
 * Schedules as values. Withheld: the reading of expressions, wall patterns and zones, which `cron` and `rate` wrap.
 * Words (words.ts), remarks (remarks.ts), stale zone data (stale-zones.ts), conversions (convert/) and calendar files
 * (calendar-file.ts) are imported by themselves, since they have no place in a function's bundle.
 */

export {
  calendar,
  type Exception,
  type RemovedTick,
  type ScheduleWithCalendar,
  withCalendar,
} from "./calendar.ts";
export { type CronOptions, cron, eventBridgeTicks } from "./cron.ts";
export { jitterOf } from "./jitter.ts";
export { type LintFindings, lintSchedule, type ScheduleLintInput } from "./lint.ts";
export { type RateOptions, rate } from "./rate.ts";
export type { Calendar, Freeze, GapPolicy, OverlapPolicy, Schedule } from "./schedule.ts";
