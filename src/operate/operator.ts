/** What reading and acting on a job from outside needs. */
import { type Clock, systemClock } from "../clock.ts";
import type { Budget, ControlStore } from "../control/control-store.ts";

export interface OperateDeps {
  readonly store: ControlStore;
  /** @default the machine's clock */
  readonly clock?: Clock;
  /** From 0 up to 1, for the jitter between tries. @default Math.random */
  readonly random?: () => number;
  /** How long one request may be tried, in milliseconds. @default 10000 */
  readonly patienceMs?: number;
}

export const clockOf = ({ clock = systemClock }: OperateDeps): Clock => clock;

/** For one request, from now. */
export const budgetOf = (deps: OperateDeps): Budget => {
  const clock = clockOf(deps);
  return { clock, random: deps.random ?? Math.random, until: clock.now() + (deps.patienceMs ?? 10_000) };
};
