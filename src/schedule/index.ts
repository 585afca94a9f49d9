/**
 * Schedules as values. Withheld: the reading of expressions, wall patterns and zones, which `cron` and `rate` wrap.
 * Words (words.ts), conversions (convert/) and calendar files (calendar-file.ts) are imported by themselves, since what
 * they need has no place in a function's bundle.
 */

export {
  type Calendar,
  calendar,
  type Exception,
  type Freeze,
  type RemovedTick,
  type ScheduleWithCalendar,
  withCalendar,
} from "./calendar.ts";
export { type CronOptions, cron, eventBridgeTicks } from "./cron.ts";
export { type RateOptions, rate } from "./rate.ts";
export type { GapPolicy, OverlapPolicy, Schedule } from "./schedule.ts";
