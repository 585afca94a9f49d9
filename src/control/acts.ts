/**
 * What an operator does to a job. Each act is one transaction (act-transaction.ts).
 *
 * A pause, a resumption or an approval that meets a newer fence is tried on that, unless the operator said which one was
 * seen. All others meant the run, or the idle job, that was there at first. A run that commits meanwhile is still the same
 * run, so an act that ends it is tried again.
 */
import { ActRefusedError } from "../errors.ts";
import type { Json } from "../json.ts";
import { create } from "./acquire.ts";
import { onIdle, perform } from "./act-transaction.ts";
import type { Connection } from "./connection.ts";
import type { Approval, Budget, EndingAct, Paused, RunEntry, SeenAct, TickRange } from "./control-store.ts";
import { encodeWatermark } from "./items.ts";
import { readControlItem } from "./read.ts";

export const pauseJob = async (
  connection: Connection,
  job: string,
  { cancel, fence, ...paused }: Paused & EndingAct,
  budget: Budget,
): Promise<RunEntry | undefined> => {
  // Who has seen a fence means a job that is known.
  if (fence === undefined && (await readControlItem(connection, job, budget)) === undefined)
    await create(connection, job, paused.at, budget);
  const act = { kind: "pause", by: paused.by, why: paused.why, ...(fence === undefined ? {} : { fence }) } as const;
  return perform(connection, job, act, paused.at, budget, (state) => ({
    sets: ["#paused = :paused"],
    values: { ":paused": paused },
    details: { until: paused.until },
    ...(cancel ? { ends: state.run } : {}),
  }));
};

export const resumeJob = async (
  connection: Connection,
  job: string,
  act: SeenAct,
  at: number,
  budget: Budget,
): Promise<void> => {
  await perform(connection, job, { kind: "resume", ...act }, at, budget, () => ({
    sets: ["#activeSince = :at"],
    removes: ["#paused"],
    values: { ":at": at },
  }));
};

/**
 * An approval is for the plan that tripped the guard last, and for no other.
 * @throws ActRefusedError when no guard has tripped, or its plan is larger than `max`
 */
export const approvePlan = async (
  connection: Connection,
  job: string,
  { max, until, ...act }: SeenAct & { readonly max: number; readonly until: number },
  at: number,
  budget: Budget,
): Promise<Approval> => {
  let approval: Approval | undefined;
  await perform(connection, job, { kind: "approve", ...act }, at, budget, ({ tripped }) => {
    if (tripped === undefined)
      throw new ActRefusedError(job, "approve", "its guard hasn't tripped, so there is nothing to approve");
    if (tripped.count > max) {
      throw new ActRefusedError(
        job,
        "approve",
        `the plan that tripped the guard is of ${tripped.count} items, more than the ${max} to be approved`,
      );
    }
    approval = { max, until, hash: tripped.hash, by: act.by, why: act.why };
    return {
      sets: ["#approval = :approval"],
      values: { ":approval": approval },
      details: { max, until, hash: tripped.hash, planned: tripped.count },
    };
  });
  return approval as Approval;
};

export const cancelRun = (
  connection: Connection,
  job: string,
  act: SeenAct,
  at: number,
  budget: Budget,
): Promise<RunEntry | undefined> =>
  perform(connection, job, { kind: "cancel", ...act }, at, budget, ({ run }, { seen }) => {
    if (run === undefined && seen === undefined) return undefined;
    if (run === undefined || (seen !== undefined && seen.owner !== run.owner)) {
      throw new ActRefusedError(job, "cancel", `run ${seen?.id} ended or was replaced meanwhile`);
    }
    return { ends: run };
  });

export const rewindJob = (
  connection: Connection,
  job: string,
  watermark: Json | null,
  { cancel, ...act }: EndingAct,
  at: number,
  budget: Budget,
): Promise<RunEntry | undefined> =>
  perform(connection, job, { kind: "rewind", ...act }, at, budget, (state) => ({
    ...onIdle(state, "rewind", cancel),
    ...(watermark === null ? { removes: ["#watermark"] } : { sets: ["#watermark = :watermark"] }),
    values: { ":watermark": watermark === null ? undefined : encodeWatermark(watermark) },
    details: { from: encodeWatermark(state.watermark), to: encodeWatermark(watermark ?? undefined) },
  }));

export const skipTicks = (
  connection: Connection,
  job: string,
  ticks: TickRange,
  { cancel, ...act }: EndingAct,
  at: number,
  budget: Budget,
): Promise<RunEntry | undefined> =>
  perform(connection, job, { kind: "skip", ...act }, at, budget, (state) => {
    const { tick, pending, tickPart } = state;
    if (tick !== undefined && tick >= ticks.from) {
      throw new ActRefusedError(job, "skip", `ticks through ${new Date(tick).toISOString()} were settled meanwhile`);
    }
    // A tick that is queued meanwhile, behind a run that is about to be cancelled, must not be forgotten.
    const queued = pending !== undefined && pending <= ticks.through;
    const halfDone = tickPart !== undefined && tickPart.tick <= ticks.through;
    return {
      ...onIdle(state, "skip", cancel),
      sets: ["#tick = :through"],
      removes: [...(queued ? ["#pending"] : []), ...(halfDone ? ["#tickPart"] : [])],
      conditions: queued ? ["#pending = :pending"] : [],
      values: { ":through": ticks.through, ":pending": queued ? pending : undefined },
      details: { ticks },
    };
  });
