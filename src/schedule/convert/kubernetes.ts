/**
 * A Kubernetes CronJob's `spec.schedule` and `spec.timeZone`.
 * https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/
 */

import { isEvery } from "../field.ts";
import type { Schedule } from "../schedule.ts";
import {
  type Conversion,
  type ConversionOptions,
  readCron,
  refuseAnd,
  refuseSpecial,
  refuseYear,
  warningsFor,
} from "./conversion.ts";
import { crontabText } from "./crontab.ts";

const scheduler = "Kubernetes";

/** `schedule` for a CronJob; `zone` is its `timeZone`. Refused for `L`, `W`, `#`, years, and where both day fields must match. */
export function toKubernetes(schedule: Schedule, options: ConversionOptions = {}): Conversion {
  const read = readCron(schedule, scheduler);
  if ("ok" in read) return read;
  if (read.year && !isEvery(read.year)) return refuseYear(scheduler);
  // Its parser drops the star bit of a field with a step, so `*/2 * MON` would be either day.
  if (read.days === "and") return refuseAnd(scheduler, read);
  const refused = refuseSpecial(scheduler, [read.dayOfMonth, read.dayOfWeek]);
  if (refused) return refused;
  const warnings = warningsFor(schedule, { scheduler, gap: "skip", overlap: "both" }, options);
  if (schedule.zone === "Australia/Lord_Howe") {
    warnings.push("Kubernetes' parser skips whole days in Australia/Lord_Howe, where clocks change by half an hour");
  }
  const zone = schedule.zone === "UTC" ? "Etc/UTC" : schedule.zone;
  return { ok: true, expression: crontabText(read), zone, wildcard: schedule.wildcard, warnings };
}
