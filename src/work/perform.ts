/** Doing a job's work, by its shape. */
import { InvalidOptionsError } from "../errors.ts";
import type { Work } from "../job.ts";
import type { LiveRun } from "../live-run.ts";
import { runContext } from "../run-context.ts";
import type { Ending } from "../run-record.ts";
import { backfillTicks } from "./backfill.ts";
import { holdForGuard, passGuard, planner } from "./guard.ts";
import { retryParked } from "./retry-parked.ts";
import { performSource } from "./source-shape.ts";
import { performTicks } from "./tick-shape.ts";

/** How the work ended; rejects with whatever the user's code throws. */
export const perform = async (work: Work, live: LiveRun): Promise<Ending> => {
  const { run, ending } = runContext(live);
  const { parked, backfill } = live.attempt.trigger;
  // A tick that is queued behind such a run has a pass of its own.
  if (parked !== undefined && live.plan === undefined) {
    if (work.shape === "source") return retryParked(work, live, run, parked);
    throw new InvalidOptionsError(`job "${run.job}"`, [
      "parked items are of jobs with a source, and this one has none",
    ]);
  }
  if (backfill !== undefined && live.plan === undefined) {
    if (work.shape === "tick") return backfillTicks(work, live, run, backfill);
    throw new InvalidOptionsError(`job "${run.job}"`, [
      "a backfill is for jobs with a tick function; what others do goes by their watermark, so rewind that",
    ]);
  }
  if (work.shape === "tick") return performTicks(work, live, run);
  if (work.shape === "source") return performSource(work, live, run);
  if (work.destructive !== undefined) {
    holdForGuard(work.destructive, live);
    const planned = planner();
    for (const key of (await work.plan?.(run)) ?? []) planned.add(key);
    const plan = planned.plan();
    await passGuard(work.destructive, live, run, plan);
    live.limitItems(plan.count);
  }
  await work.run(run);
  return ending();
};
