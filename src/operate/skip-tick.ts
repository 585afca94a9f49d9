/**
 * Skipping: an operator settles owed ticks without their being done. A job's ticks are settled in order, so a tick can only be
 * skipped together with all that are owed before it: they are named, and skipped only when that was said.
 */
import type { ControlState, EndingAct, RunEntry, TickRange } from "../control/control-store.ts";
import { ActRefusedError, InvalidOptionsError } from "../errors.ts";
import type { Job } from "../job.ts";
import { isoOf } from "../report.ts";
import { problemsOf, refuse, show, timeProblems } from "./act-check.ts";
import { budgetOf, clockOf, type OperateDeps } from "./operator.ts";

export interface SkipAct extends EndingAct {
  /** Skips all older ticks that are owed, too. @default false: refused where there are any */
  readonly through?: boolean;
}

export interface Skipped {
  /** All that were skipped. */
  readonly ticks: TickRange;
  /** The run that was cancelled for it. */
  readonly cancelled?: RunEntry;
}

/**
 * Settles `tick` as skipped by an operator: no run will do it. The watermark isn't touched, so that a job that works by its
 * watermark does the work with the next tick all the same.
 * @param tick in milliseconds since the epoch: one that the job's schedule has, or that was queued behind a run
 * @throws InvalidOptionsError for an instant that is no tick of the job's, or hasn't come yet
 * @throws ActRefusedError for a tick that isn't owed, and where older ones are owed without `through`
 */
export const skipTick = async (job: Job, tick: number, act: SkipAct, deps: OperateDeps): Promise<Skipped> => {
  const { through = false, ...rest } = act ?? {};
  const problems = [...problemsOf(job.name, rest), ...timeProblems("tick", tick)];
  if (typeof through !== "boolean") problems.push(`through is ${show(through)}, and must be true or false`);
  refuse("skip", problems);
  const at = clockOf(deps).now();
  const state = await deps.store.read(job.name, budgetOf(deps));
  if (state === undefined) {
    throw new ActRefusedError(
      job.name,
      "skip",
      "it has never run, and nobody knows it in this table, so it owes nothing",
    );
  }
  const ticks = rangeToSkip(job, state, tick, at);
  if (ticks.count > 1 && !through) {
    throw new ActRefusedError(
      job.name,
      "skip",
      `${ticks.count - 1} older ${ticks.count === 2 ? "tick is" : "ticks are"} owed too, the first of them ${isoOf(ticks.from)}, and would be ` +
        "settled with it; skip them as well by saying through, or let a run do them first",
    );
  }
  // What was worked out is right for the fence under which it was.
  const cancelled = await deps.store.skip(job.name, ticks, { fence: state.fence, ...rest }, at, budgetOf(deps));
  return { ticks, ...(cancelled === undefined ? {} : { cancelled }) };
};

/** The owed ticks through `tick`. */
const rangeToSkip = (job: Job, state: ControlState, tick: number, now: number): TickRange => {
  const after = Math.max(state.since, state.tick ?? state.since, (job.catchUp.startAt ?? 0) - 1);
  if (tick <= after) {
    const why = state.tick !== undefined && tick <= state.tick ? "is settled already" : "is from before the job began";
    throw new ActRefusedError(job.name, "skip", `tick ${isoOf(tick)} ${why}, so it isn't owed`);
  }
  let count = 0;
  let from: number | undefined;
  let last: number | undefined;
  for (const due of job.schedule?.between(after, tick) ?? []) {
    from ??= due;
    last = due;
    count += 1;
  }
  if (last !== tick && state.pending === tick) {
    count += 1;
    last = tick;
  }
  if (last !== tick || tick > now) {
    const near = job.schedule?.previous(Math.min(tick, now) + 1);
    throw new InvalidOptionsError(`skip of a tick of job "${job.name}"`, [
      `tick is ${isoOf(tick)}, and must be one that the job's schedule has and that has come` +
        (near === undefined ? "" : `, such as ${isoOf(near)}`),
    ]);
  }
  return { from: from ?? tick, through: tick, count };
};
