/**
 * The schedule's meaning by brute force, sharing nothing with the implementation: every minute of a window is turned
 * into local time by luxon and looked at by itself. Clock changes are seen only as jumps of the local time from one
 * minute to the next, as cronie sees them.
 */

import { IANAZone } from "luxon";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
export const dayMs = 24 * hourMs;

/** A window with the local time of each of its minutes, in milliseconds as if UTC. */
export interface Window {
  readonly zone: string;
  readonly from: number;
  readonly walls: Float64Array;
}

const windows = new Map<string, Window>();

/** The minutes in [from, from + days). */
export function windowOf(zone: string, from: number, days: number): Window {
  const key = `${zone} ${from} ${days}`;
  let window = windows.get(key);
  if (window === undefined) {
    const clock = IANAZone.create(zone);
    const walls = new Float64Array(days * 1440);
    for (let index = 0; index < walls.length; index++) {
      const instant = from + index * minuteMs;
      walls[index] = instant + clock.offset(instant) * minuteMs;
    }
    windows.set(key, (window = { zone, from, walls }));
  }
  return window;
}

/** What a schedule says of one local minute; `Date` in UTC stands for local time. */
export interface Meaning {
  readonly minutes: ReadonlySet<number>;
  readonly hours: ReadonlySet<number>;
  day(date: Date): boolean;
}

export interface Policy {
  readonly catchUp: boolean;
  readonly once: boolean;
}

/** The ticks of a window. A change in its first three hours isn't judged right: begin earlier. */
export function ticksByBruteForce(meaning: Meaning, window: Window, policy: Policy): number[] {
  const days = new Map<number, boolean>();
  const matches = (wall: number): boolean => {
    const day = Math.floor(wall / dayMs);
    let dayMatches = days.get(day);
    if (dayMatches === undefined) days.set(day, (dayMatches = meaning.day(new Date(day * dayMs))));
    if (!dayMatches) return false;
    const minute = (wall - day * dayMs) / minuteMs;
    return meaning.minutes.has(minute % 60) && meaning.hours.has(Math.floor(minute / 60));
  };
  const found: number[] = [];
  let latest = -Infinity;
  window.walls.forEach((wall, index) => {
    const expected = index === 0 ? wall : window.walls[index - 1]! + minuteMs;
    const jump = wall - expected;
    let fires = matches(wall);
    if (policy.catchUp && jump > 0 && jump < 3 * hourMs) {
      for (let missed = expected; missed < wall; missed += minuteMs) fires ||= matches(missed);
    }
    if (jump < -3 * hourMs) latest = -Infinity;
    if (policy.once && wall <= latest) fires = false;
    latest = Math.max(latest, wall);
    if (fires) found.push(window.from + index * minuteMs);
  });
  return found;
}

/** The first minutes with a new offset in a year, by looking at each day. */
export function changesIn(zone: string, year: number): number[] {
  const clock = IANAZone.create(zone);
  const found: number[] = [];
  for (let day = Date.UTC(year, 0, 1); day < Date.UTC(year + 1, 0, 1); day += dayMs) {
    const before = clock.offset(day);
    if (clock.offset(day + dayMs) === before) continue;
    let at = day;
    while (clock.offset(at) === before) at += minuteMs;
    found.push(at);
  }
  return found;
}
