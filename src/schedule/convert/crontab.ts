/** The fields that Kubernetes and Vercel share: digits, lists, ranges and steps, nothing else. */

import type { Expression } from "../expression.ts";
import { crontabStep, fieldText } from "./field-text.ts";

/** Five fields. Day fields have no steps: what a star with a step means beside another day field differs. */
export function crontabText({ minute, hour, dayOfMonth, month, dayOfWeek, days }: Expression): string {
  const ofMonth = days === "every" || days === "of-week" ? "*" : fieldText(dayOfMonth.values, 1, 31);
  const ofWeek = days === "every" || days === "of-month" ? "*" : fieldText(dayOfWeek.values, 0, 6);
  return [
    fieldText(minute.values, 0, 59, { step: crontabStep(0, 59) }),
    fieldText(hour.values, 0, 23, { step: crontabStep(0, 23) }),
    ofMonth,
    fieldText(month.values, 1, 12),
    ofWeek,
  ].join(" ");
}
