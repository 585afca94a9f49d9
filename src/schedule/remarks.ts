/** What is out of the ordinary about one tick: clock changes beside it. */

import { clockChangesMet } from "./clock-changes.ts";
import type { Schedule } from "./schedule.ts";
import { changeLimitMs } from "./ticks.ts";
import { zoneNamed } from "./zone.ts";

/**
 * A remark on `tick`, one of the ticks of `schedule`, where a clock change has to do with it: it was caught up after a gap,
 * or its time of day occurs twice. Undefined for all others.
 * @param tick in milliseconds since the epoch
 */
export function remarkOn(schedule: Schedule, tick: number): string | undefined {
  if (schedule.kind === "rate" || schedule.zone === "UTC") return undefined;
  const { changes } = zoneNamed(schedule.zone);
  for (const { at, before, after } of changes(tick - changeLimitMs, tick + changeLimitMs)) {
    const backMs = before - after;
    if (at === tick && isCaughtUp(schedule, at)) {
      return `clocks go forward from ${timeOf(at + before)} to ${timeOf(at + after)}: this stands for what is due in between`;
    }
    if (backMs > 0 && tick >= at - backMs && tick < at + backMs) {
      const pass = tick < at ? "first" : "second";
      return `clocks go back from ${timeOf(at + before)} to ${timeOf(at + after)}: this time of day occurs twice, and this is the ${pass}`;
    }
  }
  return undefined;
}

/** Whether the tick at the clock change `at` stands for times of day that the change left out. */
function isCaughtUp(schedule: Schedule, at: number): boolean {
  if (schedule.wildcard || schedule.gap === "skip") return false;
  return [...clockChangesMet(schedule, at - 1, at)].some(({ kind }) => kind === "gap");
}

const timeOf = (wall: number): string => new Date(wall).toISOString().slice(11, 16);
