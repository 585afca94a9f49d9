/**
 * The ticks that a run covers, pass by pass: a tick that is queued behind a run gives it one more pass. What earlier passes
 * settled is kept, so that the record says it all.
 */
import type { Attempt } from "./attempt.ts";
import { planTicks, type TickPlan } from "./catch-up.ts";
import type { ControlState, SkippedTicks, TickRange } from "./control/control-store.ts";
import { latest } from "./progress.ts";

export interface Passes {
  /** The latest tick that the run covers; `undefined` for a manual run that covers none. */
  readonly through: number | undefined;
  /** What the present pass does. */
  readonly plan: TickPlan | undefined;
  /** When the present pass began, in milliseconds since the epoch. */
  readonly startedAt: number;
  /** All the ticks of all passes. */
  readonly range: TickRange | undefined;
  /** The ticks that the run has left out, once `completed` is the job's last completed tick. */
  skippedThrough(completed: number | undefined): readonly SkippedTicks[];
  /** Covers `tick` too, in a pass of what is due after `completed`. */
  goRound(tick: number, completed: number): void;
}

/** A tick from before the job was known may be done by hand; those between the two aren't owed for it. */
export const owedAfter = ({ since }: ControlState, completed: number | undefined): number =>
  Math.max(since, completed ?? since);

export const passes = ({ spec, trigger, clock, startedAt }: Attempt, state: ControlState): Passes => {
  let through = trigger.tick === undefined ? undefined : latest(trigger.tick, state.pending);
  const planFrom = (after: number, delivered: readonly (number | undefined)[]): TickPlan | undefined =>
    through === undefined
      ? undefined
      : planTicks(spec.schedule, spec.catchUp, {
          after,
          through,
          delivered: delivered.filter((tick) => tick !== undefined),
          now: clock.now(),
        });
  let plan = planFrom(owedAfter(state, state.tick), [trigger.tick, state.pending]);
  let earlier: readonly TickPlan[] = [];
  let passStartedAt = startedAt;
  const all = () => (plan === undefined ? earlier : [...earlier, plan]);
  return {
    get through() {
      return through;
    },
    get plan() {
      return plan;
    },
    get startedAt() {
      return passStartedAt;
    },
    get range() {
      const ranges = all().map(({ range }) => range);
      const first = ranges[0];
      const last = ranges.at(-1);
      if (first === undefined || last === undefined) return undefined;
      return { from: first.from, through: last.through, count: ranges.reduce((sum, { count }) => sum + count, 0) };
    },
    skippedThrough: (completed) =>
      all()
        .flatMap(({ skipped }) => skipped)
        .filter((skipped) => completed !== undefined && skipped.through <= completed),
    goRound: (tick, completed) => {
      earlier = all();
      through = tick;
      plan = planFrom(completed, [tick]);
      passStartedAt = clock.now();
    },
  };
};
