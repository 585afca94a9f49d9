/**
 * What runs before this one left behind: those that never finished are recorded beside the work, and the next commit or
 * the finish takes them off the control item.
 */
import { type Attempt, budgetUntil } from "./attempt.ts";
import type { ControlStore, RunEntry } from "./control/control-store.ts";
import { errorOf } from "./report.ts";

export interface Predecessors {
  /** Settles when no more of them will be recorded by this run. */
  readonly recording: Promise<void>;
  /** Those that are known to be recorded. */
  readonly recorded: readonly RunEntry[];
  /** Those that still have to stand on the control item. */
  readonly unrecorded: readonly RunEntry[];
}

export const recordPredecessors = (attempt: Attempt, store: ControlStore, prev: readonly RunEntry[]): Predecessors => {
  const { spec, clock, deadline, log } = attempt;
  let recorded: readonly RunEntry[] = [];
  const record = async () => {
    if (prev.length === 0) return;
    try {
      const until = Math.min(deadline, clock.now() + longestMs);
      recorded = await store.recordCrashed(spec.name, prev, clock.now(), budgetUntil(attempt, until));
    } catch (error) {
      log.warn({ error: errorOf(error) }, "predecessors couldn't be recorded; a later run tries again");
    }
  };
  return {
    recording: record(),
    get recorded() {
      return recorded;
    },
    get unrecorded() {
      return prev.filter((entry) => !recorded.includes(entry));
    },
  };
};

/** A finish doesn't wait longer than this for predecessors to be recorded. */
const longestMs = 10_000;
