/**
 * Running a job, from trigger to committed write. Start reading here.
 *
 *   trigger ─▶ acquire ──▶ work ──▶ commit … commit ──▶ finish
 *              fence +1             each a transaction    lease back, tick done, run recorded,
 *              or held, queued,     on the current fence  last writes, in one transaction
 *              duplicate, paused
 *
 * Guarantees: what a run writes is written under its fence or not at all; a tick is completed at most once; the report
 * says what happened, never what was hoped for.
 */
import { acquireLease, closeAttempt, type Granted, openAttempt, type RunDeps, unrecorded } from "./attempt.ts";
import { type GuardTrippedError, hasCode, SilentFailureError } from "./errors.ts";
import type { Job } from "./job.ts";
import { type LiveRun, liveRun } from "./live-run.ts";
import { defaultLog } from "./observe/log.ts";
import { newWatch, watched } from "./observe/observed.ts";
import { errorOf, type RunReport, rangeOf } from "./report.ts";
import type { Ending } from "./run-record.ts";
import type { Trigger } from "./trigger.ts";
import { perform } from "./work/perform.ts";

/**
 * Runs a job once for a trigger: the ticks that are due through the delivered one, or none for a manual trigger
 * without a tick. Expected outcomes are values; see `RunReport.outcome`.
 *
 * @throws OutcomeUnknownError when it couldn't be found out whether the run was recorded: a retry finds out
 * @throws PredecessorUnfinishedError when an earlier try of the same invocation still holds the lease
 * @throws StoreUnavailableError when the control table can't be used
 * @throws InvalidOptionsError when the lease's ttl is too short for the store's request timeout
 */
export const runJob = async (job: Job, trigger: Trigger, deps: RunDeps = {}): Promise<RunReport> => {
  const report = await runOnce(job, trigger, deps);
  const chain = (trigger.chain ?? 0) + 1;
  const { work } = job;
  const goesOn = work.shape === "source" && work.onBacklog === "continue" && chain <= work.maxChain;
  if (!goesOn || report.outcome !== "capped") return report;
  if (deps.continueBacklog === undefined) {
    const next = await runJob(job, { kind: "manual", chain, reason: "backlog" }, deps);
    return next.run === undefined ? report : next;
  }
  try {
    await deps.continueBacklog(job.name, chain);
  } catch (error) {
    const log = deps.log ?? defaultLog();
    log.warn(
      { job: job.name, error: errorOf(error) },
      "no run could be started for the backlog; it waits for the next tick",
    );
  }
  return report;
};

const runOnce = async (job: Job, trigger: Trigger, deps: RunDeps): Promise<RunReport> => {
  const attempt = openAttempt(job, trigger, deps);
  const granted = await acquireLease(attempt);
  if (!isGranted(granted)) return granted;
  const live = liveRun(attempt, granted, true);
  for (;;) {
    const ending = await Promise.race([performed(job, live), live.stopped]);
    const report = await endRun(live, ending);
    // Otherwise a later tick was queued behind this run, which now covers it too.
    if (report !== undefined) return report;
  }
};

/** How the work ended, with the tick that is complete by it. */
const performed = async (job: Job, live: LiveRun): Promise<Ending> => {
  const { plan } = live;
  const completes = plan === undefined ? {} : { completes: plan.range.through };
  try {
    // All that was due may have been skipped; without a plan a person asked for a run that covers no tick.
    if (plan !== undefined && plan.ticks.length === 0) return { outcome: "succeeded", ...completes };
    const watch = newWatch();
    const ending = await watched(watch, () => perform(job.work, live));
    if (watch.failures.length > 0) throw new SilentFailureError(job.name, watch.failures);
    // A tick job that stopped early has completed what its own commits say.
    return job.work.shape === "tick" && ending.outcome === "capped" ? ending : { ...ending, ...completes };
  } catch (error) {
    if (!hasCode(error, "GUARD_TRIPPED")) {
      return { outcome: "failed", error: error === undefined ? new Error("the job's code threw undefined") : error };
    }
    const { planned, hash } = error as GuardTrippedError;
    return { outcome: "guard_tripped", error, tripped: { count: planned, hash } };
  }
};

/** Records how the run ended, and reports it; `undefined` when it has to go round again. */
export const endRun = async (live: LiveRun, asked: Ending): Promise<RunReport | undefined> => {
  const { attempt } = live;
  const meant =
    live.dryRun && (asked.outcome === "succeeded" || asked.outcome === "capped") ? "dry_run" : asked.outcome;
  const finished = await live.finish({ ...asked, outcome: meant }).catch(async (error) => {
    await live.observation.ended({ error });
    return unrecorded(attempt, error);
  });
  if (finished.kind === "again") return undefined;
  const { ending, record } = finished;
  const report = closeAttempt(
    attempt,
    {
      outcome: ending.outcome,
      run: record.id,
      fence: live.fence,
      items: record.items,
      commits: record.commits,
      ...(record.itemsSkipped === undefined ? {} : { itemsSkipped: record.itemsSkipped }),
      ...(record.itemsParked === undefined ? {} : { itemsParked: record.itemsParked }),
      ...(record.ticks === undefined ? {} : { ticks: rangeOf(record.ticks) }),
      ...(ending.backlog === undefined ? {} : { backlog: ending.backlog }),
      ...(ending.error === undefined ? {} : { error: errorOf(ending.error) }),
      ...(live.dryRun ? { wouldWrite: live.wouldWrite } : {}),
    },
    ending.error,
  );
  await live.observation.ended({ report });
  return report;
};

export const isGranted = (result: Granted | RunReport): result is Granted => "lease" in result;
