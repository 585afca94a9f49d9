/**
 * A clock that is set to each delivery and runs on from there at its usual pace, so that a job's own waits and deadlines
 * take as long as they would.
 */
import { type Clock, systemClock } from "../clock.ts";

export interface SimulatedClock extends Clock {
  /** Sets the time; it never goes back, since a run may just have taken longer than the next delivery was away. */
  set(instant: number): void;
}

/** @param start in milliseconds since the epoch */
export const simulatedClock = (start: number): SimulatedClock => {
  let aheadMs = start - systemClock.now();
  const now = () => systemClock.now() + aheadMs;
  return {
    now,
    after: systemClock.after,
    set: (instant) => {
      aheadMs += Math.max(0, instant - now());
    },
  };
};
