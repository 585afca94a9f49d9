/**
 * The ticks of a wall-clock pattern in a zone. Between two clock changes a zone is a constant offset, so the work is
 * the pattern's own plus a decision at each change:
 *
 * - clocks go forward over a matching time: with `catchUp` there is one tick, at the first instant after the gap, for all
 *   the times that the gap swallowed. A gap of three hours or more (a zone that changes sides of the date line) swallows
 *   a day that its people didn't have, and nothing is caught up: cronie's limit, see its cron.c;
 * - clocks go back over a matching time: with `once` it fires only the first time, where the overlap is at most three hours.
 *
 * Cost is proportional to the ticks returned: where a stretch has none, the search jumps to the next matching wall time.
 */

import { horizon, type WallPattern } from "./wall-pattern.ts";
import type { Span, Zone } from "./zone.ts";

/** What to do about clock changes. */
export interface ChangePolicy {
  readonly catchUp: boolean;
  readonly once: boolean;
}

/** The most that a clock change may be and still be treated as one; larger ones are a change of calendar. */
export const changeLimitMs = 3 * 3_600_000;

/** Wall time is never farther from UTC than this: the widest offsets since 1970 are -12 and +14 hours. */
const widestOffsetMs = 15 * 3_600_000;

/** Ticks strictly later than `after`, ascending, through `through`. */
export function* ascendingTicks(
  pattern: WallPattern,
  zone: Zone,
  policy: ChangePolicy,
  after: number,
  through: number,
): Generator<number> {
  const last = Math.min(through, horizon - 1);
  let from = Math.max(0, Math.floor(after) + 1);
  while (from <= last) {
    const span = zone.spanAt(from);
    const caughtUp = from <= span.start && swallowed(pattern, span, policy);
    if (caughtUp) yield span.start;
    for (const wall of pattern.ascending(Math.max(from + span.offset, floorOf(span, policy)))) {
      const tick = wall - span.offset;
      if (tick > last || tick >= span.end) break;
      if (!(caughtUp && tick === span.start)) yield tick;
    }
    const wall = firstOf(pattern.ascending(span.end - widestOffsetMs));
    if (wall === undefined) return;
    from = Math.max(span.end, wall - widestOffsetMs);
  }
}

/** Ticks strictly earlier than `before`, descending, back to 1970. */
export function* descendingTicks(
  pattern: WallPattern,
  zone: Zone,
  policy: ChangePolicy,
  before: number,
): Generator<number> {
  let to = Math.min(horizon, Math.ceil(before));
  while (to > 0) {
    const span = zone.spanAt(to - 1);
    const floor = Math.max(span.start + span.offset, floorOf(span, policy));
    const caughtUp = swallowed(pattern, span, policy);
    for (const wall of pattern.descending(to + span.offset)) {
      if (wall < floor) break;
      const tick = wall - span.offset;
      if (tick < 0) return;
      if (!(caughtUp && tick === span.start)) yield tick;
    }
    if (caughtUp) yield span.start;
    const wall = firstOf(pattern.descending(span.start + widestOffsetMs));
    if (wall === undefined) return;
    to = Math.min(span.start, wall + widestOffsetMs);
  }
}

/** The first wall time that counts in `span`: not before those that the stretch before it has shown already. */
const floorOf = (span: Span, policy: ChangePolicy): number => {
  const overlapMs = span.offsetBefore - span.offset;
  return policy.once && overlapMs > 0 && overlapMs <= changeLimitMs ? span.start + span.offsetBefore : -Infinity;
};

/** Whether the gap at the start of `span` swallowed a matching time that is to be caught up. */
function swallowed(pattern: WallPattern, span: Span, policy: ChangePolicy): boolean {
  const gapMs = span.offset - span.offsetBefore;
  if (!policy.catchUp || gapMs <= 0 || gapMs >= changeLimitMs) return false;
  const wall = firstOf(pattern.ascending(span.start + span.offsetBefore));
  return wall !== undefined && wall < span.start + span.offset;
}

/** The first of `instants`, if there is one. */
export function firstOf(instants: Iterable<number>): number | undefined {
  for (const instant of instants) return instant;
  return undefined;
}
