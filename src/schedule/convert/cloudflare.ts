/**
 * Cloudflare's cron triggers: https://developers.cloudflare.com/workers/configuration/cron-triggers/
 * Its parser (github.com/cloudflare/saffron) counts Sunday as 1 and goes wrong on ranges that go round, so days have
 * names and such ranges are never written.
 */

import { type Field, isEvery } from "../field.ts";
import type { Schedule } from "../schedule.ts";
import {
  type Conversion,
  type ConversionOptions,
  type Refused,
  readCron,
  refuse,
  refuseAnd,
  refuseYear,
  refuseZone,
  warningsFor,
} from "./conversion.ts";
import { crontabStep, dayText, fieldText, namedSpecialDay } from "./field-text.ts";

const scheduler = "Cloudflare";

/**
 * `schedule` for a Worker's `crons`. Refused for any zone but UTC, for years, where both day fields must match, and
 * for a list that contains `L`, `W` or `#`.
 */
export function toCloudflare(schedule: Schedule, options: ConversionOptions = {}): Conversion {
  const read = readCron(schedule, scheduler);
  if ("ok" in read) return read;
  const refused = refuseZone(schedule, scheduler);
  if (refused) return refused;
  if (read.year && !isEvery(read.year)) return refuseYear(scheduler);
  if (read.days === "and") return refuseAnd(scheduler, read);
  const ofMonth = read.days === "of-week" || read.days === "every" ? "*" : cloudflareDay(read.dayOfMonth);
  const ofWeek = read.days === "of-month" || read.days === "every" ? "*" : cloudflareDay(read.dayOfWeek);
  if (typeof ofMonth !== "string") return ofMonth;
  if (typeof ofWeek !== "string") return ofWeek;
  const minute = fieldText(read.minute.values, 0, 59, { step: crontabStep(0, 59) });
  const hour = fieldText(read.hour.values, 0, 23, { step: crontabStep(0, 23) });
  const expression = [minute, hour, ofMonth, fieldText(read.month.values, 1, 12), ofWeek].join(" ");
  const warnings = warningsFor(schedule, undefined, options);
  return { ok: true, expression, zone: undefined, wildcard: schedule.wildcard, warnings };
}

function cloudflareDay(field: Field): string | Refused {
  const [day] = field.special;
  if (day?.kind === "nearest-workday" && day.day > 28) {
    // saffron takes a Friday 30th for 31W, though there is no 31st.
    return refuse("LW", `Cloudflare fires ${day.day}W in months without that day`, "write a day up to 28W, or LW");
  }
  const instead = "write a cron trigger for each of them, on days that never coincide";
  return (
    dayText(field, namedSpecialDay) ?? refuse("LIST", `Cloudflare has no list with L, W or # (${field.text})`, instead)
  );
}
