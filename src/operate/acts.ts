/**
 * What an operator does to a job, as functions. Each act is one transaction on the fence that was seen, and leaves a record of
 * who did it, why and when; a run that is going either isn't touched by it, or is fenced out and recorded as `cancelled` by the
 * same transaction. An act that is refused has changed nothing.
 *
 * All of them throw ActRefusedError where the job isn't in a state that allows the act, StoreUnavailableError where the
 * control table can't be used, OutcomeUnknownError where it couldn't be found out in time whether the act was done (doing it
 * again is safe), and InvalidOptionsError for an act without a name or a reason.
 */
import type { RunDeps } from "../attempt.ts";
import type { Act, Approval, EndingAct, RunEntry, SeenAct } from "../control/control-store.ts";
import type { Job } from "../job.ts";
import { type Json, notJson } from "../json.ts";
import type { RunReport } from "../report.ts";
import { runJob } from "../run.ts";
import { keyProblems, laterProblems, nameProblems, problemsOf, refuse, show } from "./act-check.ts";
import { budgetOf, clockOf, type OperateDeps } from "./operator.ts";

/** What an act that may end a run did besides. */
export interface Ended {
  /** The run that it cancelled, where one held the lease. */
  readonly cancelled?: RunEntry;
}

export interface PauseAct extends EndingAct {
  /** When the pause ends by itself, in milliseconds since the epoch. @default when somebody resumes the job */
  readonly until?: number;
}

/**
 * Blocks new runs of `job`, one that nobody knows yet too. A run that is going isn't touched, unless `cancel` says so. Ticks
 * that come meanwhile stay owed, and the first run after it covers them.
 */
export const pauseJob = async (job: string, act: PauseAct, deps: OperateDeps): Promise<Ended> => {
  const at = clockOf(deps).now();
  const problems = problemsOf(job, act);
  refuse("pause", act?.until === undefined ? problems : [...problems, ...laterProblems("until", act.until, at)]);
  return endedBy(await deps.store.pause(job, { ...act, at }, budgetOf(deps)));
};

/** Lets runs of `job` start again. Nothing is started by it: the next delivery, or the watchdog, is what starts one. */
export const resumeJob = async (job: string, act: SeenAct, deps: OperateDeps): Promise<void> => {
  refuse("resume", problemsOf(job, act));
  await deps.store.resume(job, act, clockOf(deps).now(), budgetOf(deps));
};

/**
 * Fences out the run of `job` that holds the lease, and records it as `cancelled`: none of its later commits is accepted.
 * What it committed stays, and its ticks stay owed. The result is empty where no run held the lease, and no act is recorded.
 */
export const cancelRun = async (job: string, act: SeenAct, deps: OperateDeps): Promise<Ended> => {
  refuse("cancel", problemsOf(job, act));
  return endedBy(await deps.store.cancel(job, act, clockOf(deps).now(), budgetOf(deps)));
};

export interface RewindAct extends EndingAct {
  /** The new watermark; `null` takes it away. */
  readonly watermark: Json | null;
}

/**
 * Sets the watermark of `job`, mostly back; the next run goes on from there. No tick is owed again for it: start a run by hand
 * to do the work now. Both watermarks are recorded.
 */
export const rewindJob = async (job: string, act: RewindAct, deps: OperateDeps): Promise<Ended> => {
  const { watermark, ...rest } = act ?? {};
  const problems = problemsOf(job, rest);
  const found = notJson(watermark);
  if (found !== undefined) problems.push(`watermark can't be kept as JSON: ${found}`);
  refuse("rewind", problems);
  return endedBy(await deps.store.rewind(job, watermark, rest, clockOf(deps).now(), budgetOf(deps)));
};

/** Gives `job` the name `to`; see `ControlStore.move`. The definition must have the new name from then on. */
export const moveJob = async (job: string, to: string, act: EndingAct, deps: OperateDeps): Promise<Ended> => {
  const problems = [...problemsOf(job, act), ...nameProblems("the new name", to)];
  if (job === to) problems.push(`the new name is ${show(to)}, and must be another one`);
  refuse("move", problems);
  return endedBy(await deps.store.move(job, to, act, clockOf(deps).now(), budgetOf(deps)));
};

export interface ApproveAct extends SeenAct {
  /** The most items that are approved of. */
  readonly max: number;
  /** Until when, in milliseconds since the epoch. */
  readonly until: number;
}

/** Lets one run of a destructive job do the very plan that its guard stopped last. */
export const approvePlan = async (job: string, act: ApproveAct, deps: OperateDeps): Promise<Approval> => {
  const at = clockOf(deps).now();
  const problems = problemsOf(job, act);
  const { max, until } = act ?? {};
  if (!Number.isSafeInteger(max) || max < 1) problems.push(`max is ${show(max)}, and must be a whole number from 1 on`);
  refuse("approve", [...problems, ...laterProblems("until", until, at)]);
  return deps.store.approve(job, act, at, budgetOf(deps));
};

/** Says what became of an effect (`run.once`) that a run began and whose end nobody knows. */
export const releaseEffect = async (
  job: string,
  key: string,
  verdict: "done" | "not done",
  act: Act,
  deps: OperateDeps,
): Promise<void> => {
  const problems = [...problemsOf(job, act), ...keyProblems(key)];
  // What isn't "done" mustn't be taken for "not done": the effect would be called again.
  if (verdict !== "done" && verdict !== "not done")
    problems.push(`the verdict is ${show(verdict)}, and must be "done" or "not done"`);
  refuse("release", problems);
  await deps.store.releaseOnce(job, key, verdict, act, clockOf(deps).now(), budgetOf(deps));
};

/** Gives a parked item up for good. */
export const dropParked = async (job: string, key: string, act: Act, deps: OperateDeps): Promise<void> => {
  refuse("drop", [...problemsOf(job, act), ...keyProblems(key)]);
  await deps.store.dropParked(job, key, act, clockOf(deps).now(), budgetOf(deps));
};

/**
 * Does parked items after all, in this process and with its credentials, in a manual run of its own. The run's record says
 * who and why.
 * @param keys of parked items, or all of them
 * @param run what the run works with besides the store and the clock
 */
export const retryParked = async (
  job: Job,
  keys: readonly string[] | "all",
  act: Act & { readonly dryRun?: boolean },
  deps: OperateDeps & { readonly run?: Omit<RunDeps, "store" | "clock" | "random"> },
): Promise<RunReport> => {
  const problems = problemsOf(job.name, act);
  // A run that is asked for no parked item would do what is due.
  const some = Array.isArray(keys) && keys.length > 0 && keys.every((key) => keyProblems(key).length === 0);
  if (keys !== "all" && !some) problems.push(`keys is ${show(keys)}, and must be "all" or a list of keys`);
  refuse("retry", problems);
  const { store, clock, random, run } = deps;
  return runJob(
    job,
    {
      kind: "manual",
      parked: keys,
      reason: `retry of parked items by ${act.by}: ${act.why}`,
      ...(act.dryRun ? { dryRun: true } : {}),
    },
    { ...run, store, ...(clock === undefined ? {} : { clock }), ...(random === undefined ? {} : { random }) },
  );
};

const endedBy = (cancelled: RunEntry | undefined): Ended => (cancelled === undefined ? {} : { cancelled });
