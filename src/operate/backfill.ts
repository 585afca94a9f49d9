/**
 * Doing ticks of the past after all. Only those that are settled without having been done: left out by the job's policy or by
 * an operator, or from before the job began. What is still owed is left to the runs that owe it, and what was done stays done.
 */
import { InvalidOptionsError } from "../errors.ts";
import type { Job } from "../job.ts";
import { backfillKey } from "../work/backfill-key.ts";
import { readLedger } from "./ledger.ts";
import { budgetOf, type OperateDeps } from "./operator.ts";

export interface BackfillSpan {
  /** Instants in milliseconds since the epoch, both included. */
  readonly from: number;
  readonly to: number;
  /** The most ticks; the oldest are taken. @default 1000 */
  readonly max?: number;
}

export interface BackfillPlan {
  /** To be done, oldest first. */
  readonly ticks: readonly number[];
  /** Ticks of the span that would be done, too, and are more than `max`. */
  readonly beyond: number;
  /** Done by an earlier backfill. */
  readonly already: number;
  /** Done by a run of the job's. */
  readonly done: number;
  /** Not settled yet; a run through the last of them does them. */
  readonly owed: readonly number[];
  /** Not due, or settled in a way that no record tells. */
  readonly other: number;
}

/**
 * Which ticks of a span a backfill does.
 * @throws InvalidOptionsError for a job without ticks of its own: only tick functions do one tick at a time
 * @throws StoreUnavailableError
 */
export const planBackfill = async (job: Job, span: BackfillSpan, deps: OperateDeps): Promise<BackfillPlan> => {
  const { max = 1_000 } = span;
  const problems: string[] = [];
  if (job.work.shape !== "tick") {
    problems.push("it has no tick function, and works by its watermark: rewind that, and run it");
  }
  if (!Number.isInteger(max) || max < 1) problems.push(`max is ${max}, and must be a whole number from 1`);
  if (problems.length > 0) throw new InvalidOptionsError(`backfill of job "${job.name}"`, problems);
  const ticks: number[] = [];
  const owed: number[] = [];
  let [beyond, already, done, other] = [0, 0, 0, 0];
  for await (const { tick, state } of readLedger(job, span, deps)) {
    if (state === "done" || state === "covered" || state === "doubled") done += 1;
    else if (unsettled.has(state)) owed.push(tick);
    else if (state !== "skipped" && state !== "before") other += 1;
    else if (ticks.length >= max) beyond += 1;
    else if ((await deps.store.readOnce(job.name, backfillKey(tick), budgetOf(deps))) !== undefined) already += 1;
    else ticks.push(tick);
  }
  return { ticks, beyond, already, done, owed, other };
};

const unsettled: ReadonlySet<string> = new Set(["running", "failed", "paused", "held", "missed", "owed"]);

/** How a run of a backfill ended. */
export interface BackfillRun {
  /** Absent for an attempt that never became a run: the job is paused, or another run holds the lease. */
  readonly run?: string;
  readonly outcome: string;
  readonly items: number;
  readonly error?: { readonly name: string; readonly message: string };
}

/**
 * Does the ticks of a plan, some in each run, until all are done or a run doesn't succeed. What was done is done: planning it
 * again and going on does the rest.
 *
 * @param start starts a run for these ticks (at most `perRun`), and resolves when it has ended
 * @param onProgress told after each run how many ticks are done
 * @returns all runs, oldest first; the last one may have failed
 */
export const runBackfill = async (
  job: string,
  ticks: readonly number[],
  start: (ticks: readonly number[]) => Promise<BackfillRun>,
  deps: OperateDeps & { readonly onProgress?: (done: number) => void; readonly signal?: AbortSignal },
): Promise<readonly BackfillRun[]> => {
  const runs: BackfillRun[] = [];
  let left = ticks;
  while (left.length > 0 && !deps.signal?.aborted) {
    const part = left.slice(0, perRun);
    const run = await start(part);
    runs.push(run);
    const undone = run.outcome === "capped" ? await notDone(job, part, deps) : [];
    // A run that had no time for a single tick won't have it next time.
    if (!["succeeded", "capped"].includes(run.outcome) || undone.length === part.length) break;
    left = [...undone, ...left.slice(perRun)];
    deps.onProgress?.(ticks.length - left.length);
  }
  return runs;
};

const perRun = 100;

const notDone = async (job: string, ticks: readonly number[], deps: OperateDeps): Promise<readonly number[]> => {
  const left: number[] = [];
  for (const tick of ticks) {
    if ((await deps.store.readOnce(job, backfillKey(tick), budgetOf(deps))) === undefined) left.push(tick);
  }
  return left;
};
