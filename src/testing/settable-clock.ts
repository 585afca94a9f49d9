/**
 * A clock that stands still until a test moves it. Timers fire in the order of their due times, and `now()` is a timer's
 * due time while it fires, so what a test sees doesn't depend on how it moved the clock.
 *
 * It controls only what is given this clock: requests, and anything on Node's own timers, still take real time.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../clock.ts";

/** How a settable clock behaves beside standing still. */
export interface SettableClockOptions {
  /**
   * Fires a pending timer by itself once the event loop has nothing else ready, the earliest first, so that waits such
   * as a backoff take no real time. A request in flight doesn't count as something ready: give `atMostMs` when the
   * code also holds deadlines or request timeouts on this clock, or they would fire while it waits for a reply.
   * @default false
   */
  autoAdvance?:
    | boolean
    | { /** Timers that were set for longer than this wait to be fired by the test. */ atMostMs: number };
}

/** A `Clock` that a test sets. Times are milliseconds since the epoch, or ISO 8601 strings. */
export interface SettableClock extends Clock {
  /**
   * Sets the time. Forward is the same as `advance` to there. Backward is a wall clock being stepped back: timers keep
   * the delay that they have left.
   */
  set(time: number | string): void;
  /** Moves the time forward by `ms`, firing the timers due by then, also those that they set. */
  advance(ms: number): void;
  /** As `advance`, but lets everything that is ready run (promise continuations too) before each timer and at the end. */
  advanceAsync(ms: number): Promise<void>;
  /** How many timers are pending. */
  readonly timers: number;
  /** The same clock as seen by a machine that is `ms` ahead (behind, when negative). */
  skewed(ms: number): Clock;
}

interface Timer {
  readonly dueAt: number;
  readonly delayMs: number;
  readonly wake: () => void;
}

/** A clock that stands at `start`, by default 2026-01-01T00:00:00Z, until it is moved. */
export const settableClock = (
  start: number | string = "2026-01-01T00:00:00Z",
  { autoAdvance = false }: SettableClockOptions = {},
): SettableClock => {
  const pending = new Set<Timer>();
  /** Time on the timers' axis, which never goes back; the wall time is this plus `step`. */
  let elapsedMs = 0;
  let step = instant(start);
  let turnAsked = false;

  const earliest = (among: (timer: Timer) => boolean): Timer | undefined => {
    let found: Timer | undefined;
    for (const timer of pending) if (among(timer) && (!found || timer.dueAt < found.dueAt)) found = timer;
    return found;
  };
  const fire = (timer: Timer) => {
    pending.delete(timer);
    elapsedMs = Math.max(elapsedMs, timer.dueAt);
    timer.wake();
  };
  const dueBy = (target: number) => earliest((timer) => timer.dueAt <= target);
  const targetAfter = (ms: number) => {
    if (!(ms >= 0)) throw new RangeError(`a clock can't be advanced by ${ms} ms; set() steps it back`);
    return elapsedMs + ms;
  };
  const mayFireAlone = (timer: Timer) =>
    typeof autoAdvance === "object" ? timer.delayMs <= autoAdvance.atMostMs : autoAdvance;
  const askForTurn = () => {
    if (turnAsked || !earliest(mayFireAlone)) return;
    turnAsked = true;
    setImmediate(() => {
      turnAsked = false;
      const timer = earliest(mayFireAlone);
      try {
        if (timer) fire(timer);
      } finally {
        askForTurn();
      }
    });
  };

  const clock: SettableClock = {
    now: () => step + elapsedMs,
    after: (delayMs, wake) => {
      const timer = { dueAt: elapsedMs + Math.max(0, delayMs), delayMs, wake };
      pending.add(timer);
      askForTurn();
      return () => void pending.delete(timer);
    },
    set: (time) => {
      const ms = instant(time) - clock.now();
      if (ms >= 0) clock.advance(ms);
      else step += ms;
    },
    advance: (ms) => {
      const target = targetAfter(ms);
      for (let timer = dueBy(target); timer; timer = dueBy(target)) fire(timer);
      elapsedMs = Math.max(elapsedMs, target);
    },
    advanceAsync: async (ms) => {
      const target = targetAfter(ms);
      await nextTurn();
      for (let timer = dueBy(target); timer; timer = dueBy(target)) {
        fire(timer);
        await nextTurn();
      }
      elapsedMs = Math.max(elapsedMs, target);
    },
    get timers() {
      return pending.size;
    },
    skewed: (ms) => ({ now: () => clock.now() + ms, after: clock.after }),
  };
  return clock;
};

const instant = (time: number | string): number => {
  const ms = typeof time === "number" ? time : Date.parse(time);
  if (Number.isNaN(ms)) throw new RangeError(`"${time}" isn't a time; give milliseconds or an ISO 8601 string`);
  return ms;
};
