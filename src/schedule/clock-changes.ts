/** The clock changes that a schedule's fixed times fall into. What it then does is its policy; here they are only found. */

import { readExpression } from "./expression.ts";
import type { Schedule } from "./schedule.ts";
import { changeLimitMs, firstOf } from "./ticks.ts";
import { wallPattern } from "./wall-pattern.ts";
import { zoneNamed } from "./zone.ts";

/** A clock change that meets a schedule. */
export interface ClockChangeMet {
  /** `gap`: the time of day is left out. `overlap`: it occurs twice. */
  readonly kind: "gap" | "overlap";
  /** The first instant after the change, in milliseconds since the epoch. */
  readonly at: number;
  /** The first time of day of the schedule that it touches, as "02:30". */
  readonly time: string;
}

/**
 * The changes in (from, through] that leave out or repeat a time of day of `schedule`, ascending. Those of three hours
 * or more, with which a zone changes sides of the date line, are left out.
 * @param from, through instants in milliseconds since the epoch
 */
export function* clockChangesMet(schedule: Schedule, from: number, through: number): Generator<ClockChangeMet> {
  if (schedule.kind === "rate" || schedule.zone === "UTC") return;
  const pattern = wallPattern(readExpression(schedule.source));
  for (const { at, before, after } of zoneNamed(schedule.zone).changes(from, through)) {
    const sizeMs = Math.abs(after - before);
    const start = at + Math.min(before, after);
    const wall = firstOf(pattern.ascending(start));
    if (wall === undefined || wall >= start + sizeMs || sizeMs > changeLimitMs) continue;
    yield { kind: after > before ? "gap" : "overlap", at, time: new Date(wall).toISOString().slice(11, 16) };
  }
}
