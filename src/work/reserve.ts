/** When to stop taking on more work, so that what is under way ends before the deadline. */
import type { LiveRun } from "../live-run.ts";

/**
 * Whether the time left is less than two of the slowest commits so far.
 * @param nextMs how long the next piece of work is likely to take, before its commit
 */
export const outOfTime = ({ attempt, slowestCommitMs }: LiveRun, nextMs = 0): boolean =>
  attempt.clock.now() + nextMs + 2 * Math.max(slowestCommitMs, leastCommitMs) >= attempt.deadline;

const leastCommitMs = 50;
