/**
 * The time of a long drill: it runs faster than the machine's, so that a tick a minute comes every few seconds, and can be
 * moved on at the end. Only the drill's own clocks are on it; processes, the engine and the network take real time.
 */
import { setTimeout as wait } from "node:timers/promises";

export interface WorldTime {
  /** How many milliseconds pass in one real millisecond. */
  readonly speed: number;
  /** In milliseconds since the epoch. */
  now(): number;
  /** Real milliseconds for `ms` of this time. */
  real(ms: number): number;
  /** Resolves at `instant`, or soon after `signal` aborts. */
  until(instant: number, signal: AbortSignal): Promise<void>;
  /** Moves it on at once. */
  skip(ms: number): void;
}

export const worldTime = (start: number, speed: number): WorldTime => {
  const startedAt = performance.now();
  let skipped = 0;
  const time: WorldTime = {
    speed,
    now: () => Math.floor(start + skipped + (performance.now() - startedAt) * speed),
    real: (ms) => ms / speed,
    until: (instant, signal) => pass(Math.max(0, instant - time.now()) / speed, signal),
    skip: (ms) => {
      skipped += ms;
    },
  };
  return time;
};

/** Resolves after `realMs`, or when `signal` aborts. */
export const pass = (realMs: number, signal: AbortSignal): Promise<void> =>
  wait(realMs, undefined, { signal }).catch(() => {});
