/**
 * `cronfence/schedule`: schedules for tools of your own, and calendars from files for `except`. What a function needs to
 * run is in `cronfence` itself; words, remarks and conversions have no place in its bundle. Withheld: the reading of
 * expressions, wall patterns and zones, which `cron` and `rate` wrap.
 */
export {
  calendar,
  type Exception,
  type RemovedTick,
  type ScheduleWithCalendar,
  withCalendar,
} from "./calendar.ts";
export { readCalendarFile } from "./calendar-file.ts";
export { type ClockChangeMet, clockChangesMet } from "./clock-changes.ts";
export {
  type Conversion,
  type ConversionOptions,
  type Converted,
  type RefusalCode,
  type Refused,
  requireConverted,
  toCloudflare,
  toEventBridge,
  toKubernetes,
  toSystemd,
  toVercel,
} from "./convert/index.ts";
export { type CronOptions, cron, eventBridgeTicks } from "./cron.ts";
export { jitterOf } from "./jitter.ts";
export { type LintFindings, lintSchedule, type ScheduleLintInput } from "./lint.ts";
export { type RateOptions, rate } from "./rate.ts";
export { remarkOn } from "./remarks.ts";
export type { Calendar, Freeze, GapPolicy, OverlapPolicy, Schedule } from "./schedule.ts";
export { recentlyChangedZones, runtimeZoneData, staleZone, type ZoneData } from "./stale-zones.ts";
export { explain } from "./words.ts";
export { canonicalZone } from "./zone-names.ts";
