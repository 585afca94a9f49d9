/** Vercel's cron jobs: https://vercel.com/docs/cron-jobs#cron-expressions */

import { isEvery } from "../field.ts";
import type { Schedule } from "../schedule.ts";
import {
  type Conversion,
  type ConversionOptions,
  readCron,
  refuseAnd,
  refuseOr,
  refuseSpecial,
  refuseYear,
  refuseZone,
  warningsFor,
} from "./conversion.ts";
import { crontabText } from "./crontab.ts";

const scheduler = "Vercel";

/** `schedule` for `vercel.json`. Refused for any zone but UTC, for both day fields at once, `L`, `W`, `#` and years. */
export function toVercel(schedule: Schedule, options: ConversionOptions = {}): Conversion {
  const read = readCron(schedule, scheduler);
  if ("ok" in read) return read;
  const refused = refuseZone(schedule, scheduler) ?? refuseSpecial(scheduler, [read.dayOfMonth, read.dayOfWeek]);
  if (refused) return refused;
  if (read.year && !isEvery(read.year)) return refuseYear(scheduler);
  if (read.days === "or") return refuseOr(scheduler, read);
  if (read.days === "and") return refuseAnd(scheduler, read);
  const warnings = warningsFor(schedule, undefined, options);
  return { ok: true, expression: crontabText(read), zone: undefined, wildcard: schedule.wildcard, warnings };
}
