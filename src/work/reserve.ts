/** When to stop taking on more work, so that what is under way ends before the deadline. */
import type { LiveRun } from "../live-run.ts";

/** Whether the time left is less than two of the slowest commits so far. */
export const outOfTime = ({ attempt, slowestCommitMs }: LiveRun): boolean =>
  attempt.clock.now() + 2 * Math.max(slowestCommitMs, leastCommitMs) >= attempt.deadline;

const leastCommitMs = 50;
