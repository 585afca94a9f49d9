/** What is wrong, or likely to be, with a job's schedule. Pure: nothing is read but what is passed in. */

import { durationText } from "../duration.ts";
import { clockChangesMet } from "./clock-changes.ts";
import { readExpression } from "./expression.ts";
import { type Schedule, twoYearsMs } from "./schedule.ts";

/** What is asked of a schedule. Durations are in milliseconds, instants in milliseconds since the epoch. */
export interface ScheduleLintInput {
  readonly schedule: Schedule;
  /** The instant from which the next two years are looked at: now, where nothing else is meant. */
  readonly from: number;
  /** The most that a run may take. */
  readonly timeoutMs?: number;
  /** The window over which starts are spread. */
  readonly jitterMs?: number;
  /** Whether the job says that it means the minute it names. */
  readonly exact?: boolean;
  /** The job's name. */
  readonly name?: string;
  /** Hosts that the job is to be scheduled by, such as "eventbridge" or "cloudflare". */
  readonly targets?: readonly string[];
}

export interface LintFindings {
  /** What makes the definition invalid. */
  readonly errors: readonly string[];
  /** What the author should know. */
  readonly warnings: readonly string[];
}

/** These run in UTC and take no zone. */
const utcOnly: readonly string[] = ["vercel", "cloudflare"];

/**
 * Errors: a schedule that never fires, a timeout that isn't shorter than the shortest interval between ticks over the next
 * two years, days with clock changes included. Warnings: minute 0 with neither jitter nor `exact`, a time of day that
 * clocks skip or repeat, a zone for a host that runs in UTC.
 */
export function lintSchedule(input: ScheduleLintInput): LintFindings {
  const { schedule, name } = input;
  const job = name === undefined ? "" : `${name}: `;
  const found = (findings: ReadonlyArray<string | undefined>) =>
    findings.filter((finding) => finding !== undefined).map((finding) => job + finding);
  if (schedule.next(input.from) === undefined) {
    const from = new Date(input.from).toISOString();
    return { errors: found([`the schedule "${schedule.source}" never fires after ${from}`]), warnings: [] };
  }
  return {
    errors: found([timeoutError(input)]),
    warnings: found([busyMinute(input), clockChange(input), ...zoneForUtcOnly(input)]),
  };
}

function timeoutError({ schedule, timeoutMs, from }: ScheduleLintInput): string | undefined {
  if (timeoutMs === undefined) return undefined;
  const shortestMs = schedule.shortestInterval(from);
  if (shortestMs === undefined || timeoutMs < shortestMs) return undefined;
  return `a timeout of ${durationText(timeoutMs)} must be shorter than the shortest interval between ticks, ${durationText(shortestMs)}`;
}

function busyMinute({ schedule, jitterMs = 0, exact = false }: ScheduleLintInput): string | undefined {
  if (schedule.kind !== "cron" || exact || jitterMs > 0) return undefined;
  const { minute } = readExpression(schedule.source);
  if (minute.values.length > 1 || minute.values[0] !== 0) return undefined;
  return "it starts at minute 0, as most schedules do; choose another minute, give a jitter, or say exact: true";
}

/** Only where hours are fixed: a schedule of every hour meets each change, and that is what it asks for. */
function clockChange({ schedule, from }: ScheduleLintInput): string | undefined {
  if (schedule.kind !== "cron" || readExpression(schedule.source).hour.star) return undefined;
  for (const { kind, at, time } of clockChangesMet(schedule, from, from + twoYearsMs)) {
    const day = new Date(at).toISOString().slice(0, 10);
    const happens = kind === "gap" ? "doesn't exist" : "occurs twice";
    return `${time} in ${schedule.zone} ${happens} on ${day}: it ${consequence(schedule, kind)}; choose another time, or UTC`;
  }
  return undefined;
}

function consequence(schedule: Schedule, kind: "gap" | "overlap"): string {
  if (kind === "gap") {
    return schedule.wildcard || schedule.gap === "skip" ? "is skipped" : "runs at the first instant after the gap";
  }
  return schedule.wildcard || schedule.overlap === "both" ? "runs both times" : "runs the first time only";
}

const zoneForUtcOnly = ({ schedule, targets = [] }: ScheduleLintInput): string[] =>
  schedule.zone === "UTC"
    ? []
    : targets
        .filter((target) => utcOnly.includes(target))
        .map((target) => `${target} runs in UTC, so the zone ${schedule.zone} has no effect there`);
