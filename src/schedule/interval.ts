/**
 * The shortest time between two neighbouring ticks, without walking all of them: away from clock changes no interval is
 * shorter than the shortest between two times of day, so the walk can stop as soon as it has met that one.
 */

import { twoYearsMs } from "./schedule.ts";
import { changeLimitMs, firstOf } from "./ticks.ts";
import { dayMs } from "./wall-pattern.ts";
import type { Zone } from "./zone.ts";

/** The questions that the search asks of a schedule. */
interface Ticks {
  previous(before: number): number | undefined;
  between(after: number, through: number): Iterable<number>;
}

/**
 * The shortest interval between ticks in (from, through], in milliseconds; undefined where there are fewer than two.
 * @param times times of day at which the schedule fires, in milliseconds from midnight, ascending
 */
export function shortestInterval(
  ticks: Ticks,
  times: readonly number[],
  zone: Zone,
  from: number,
  through: number = from + twoYearsMs,
): number | undefined {
  let shortest = Infinity;
  const walk = (after: number, upTo: number, enough: number) => {
    let last: number | undefined;
    for (const tick of ticks.between(Math.max(from, after), Math.min(through, upTo))) {
      if (last !== undefined) shortest = Math.min(shortest, tick - last);
      if (shortest <= enough) return;
      last = tick;
    }
  };
  for (const change of zone.changes(from, through)) {
    const before = ticks.previous(change.at) ?? change.at;
    const next = firstOf(ticks.between(change.at + changeLimitMs, through)) ?? through;
    walk(before - 1, next, 0);
  }
  walk(from, through, shortestBetween(times));
  return shortest === Infinity ? undefined : shortest;
}

/** The shortest interval between two times of day, round the clock. */
const shortestBetween = (times: readonly number[]): number =>
  Math.min(...times.map((time, index) => (times[index + 1] ?? times[0]! + dayMs) - time));
