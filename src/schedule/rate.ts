/**
 * Schedules by elapsed time: `rate(5 minutes)`. Arithmetic from an anchor and nothing else: a day is 24 hours, zones and
 * clock changes don't matter.
 */

import { InvalidOptionsError, InvalidScheduleError } from "../errors.ts";
import { checkOptions, refuseNonText } from "./options.ts";
import type { Schedule } from "./schedule.ts";
import { dayMs, horizon } from "./wall-pattern.ts";

/** How a rate is to be laid out. */
export interface RateOptions {
  /**
   * An instant, in milliseconds since the epoch, that is a tick; all others are whole intervals away from it, earlier
   * or later. @default 0
   */
  readonly anchor?: number;
}

const unitMs: Readonly<Record<string, number>> = { minute: 60_000, hour: 3_600_000, day: dayMs };

/**
 * A schedule that fires at a constant interval: `5 minutes` or `rate(5 minutes)`, in minutes, hours or days. As in
 * EventBridge the unit is singular for 1 and plural otherwise, and a day is 24 hours
 * (https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#rate-based).
 *
 * @throws InvalidScheduleError with the position of what can't be read.
 * @throws InvalidOptionsError for an unknown option or an anchor that isn't an instant.
 */
export function rate(expression: string, options: RateOptions = {}): Schedule {
  checkOptions("rate", options, { anchor: undefined });
  refuseNonText(expression);
  const anchor = options.anchor ?? 0;
  if (!Number.isSafeInteger(anchor)) {
    throw new InvalidOptionsError("rate", [`anchor: ${anchor} isn't an integer of milliseconds since the epoch`]);
  }
  const intervalMs = readRate(expression);
  const phase = ((anchor % intervalMs) + intervalMs) % intervalMs;
  const inRange = (tick: number) => (tick >= 0 && tick < horizon ? tick : undefined);
  const next = (after: number) =>
    inRange(Math.max(0, Math.floor((after - phase) / intervalMs) + 1) * intervalMs + phase);
  return {
    source: expression,
    kind: "rate",
    zone: "UTC",
    wildcard: false,
    gap: "after",
    overlap: "first",
    next,
    previous: (before) =>
      inRange((Math.ceil((Math.min(before, horizon) - phase) / intervalMs) - 1) * intervalMs + phase),
    *between(after, through) {
      for (let tick = next(after); tick !== undefined && tick <= through; tick = inRange(tick + intervalMs)) yield tick;
    },
    shortestInterval(from, through = Infinity) {
      const first = next(from);
      return first !== undefined && first + intervalMs <= through ? intervalMs : undefined;
    },
  };
}

/** The interval of a rate schedule as EventBridge writes it inside the parentheses: "5 minutes". */
export const rateText = (schedule: Schedule): string =>
  schedule.source
    .replace(/[()]|\brate\b/gi, " ")
    .trim()
    .replace(/\s+/, " ")
    .toLowerCase();

/** The interval of `expression`, in milliseconds. */
function readRate(expression: string): number {
  const refuse = (reason: string, position: number): never => {
    throw new InvalidScheduleError(expression, reason, position);
  };
  const match = /^(\s*(?:rate\s*\(\s*)?)(?!\s)(\S*?)(\s*)([a-z]*)(?:\s*(\)))?$/i.exec(expression.trimEnd());
  const [, before = "", count = "", space = "", unit = "", close = ""] =
    match ?? refuse("a rate is written as rate(5 minutes)", 0);
  const unitAt = before.length + count.length + space.length;
  if (before.includes("(") !== (close === ")"))
    refuse(
      close ? "the ) has no rate( before it" : "the closing ) is missing",
      expression.trimEnd().length - (close ? 1 : 0),
    );
  if (!/^[1-9]\d{0,8}$/.test(count)) refuse(`"${count}" isn't a whole number of 1 or more`, before.length);
  const singular = unit.toLowerCase().replace(/s$/, "");
  const size = unitMs[singular] ?? refuse(`"${unit}" isn't minutes, hours or days`, unitAt);
  const wanted = count === "1" ? singular : `${singular}s`;
  if (unit.toLowerCase() !== wanted) refuse(`write ${count} ${wanted}, as EventBridge wants it`, unitAt);
  return Number(count) * size;
}
