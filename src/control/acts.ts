/**
 * What an operator does to a job. Each act is one transaction on the fence that was seen, with a record of who did it and why.
 *
 * | condition | without it |
 * | --- | --- |
 * | the fence is the one seen | what was granted since would be meant instead |
 * | no owner, for an act that needs the job idle | a run would find its watermark or its ticks moved under it |
 * | the owner is the one seen, for an act that ends its run | the run that followed would be cancelled instead |
 * | its seq is the one seen | the record would leave out what was committed meanwhile |
 * | no record of that run | another record would be overwritten |
 * | no record of the act | a late repetition would do it again, over what was done since |
 *
 * A pause, a resumption or an approval that meets a newer fence is tried on that, unless the operator said which one was
 * seen. All others meant the run, or the idle job, that was there at first. A run that commits meanwhile is still the same
 * run, so an act that ends it is tried again.
 */
import { randomUUID } from "node:crypto";
import { type TransactWriteItem, TransactWriteItemsCommand } from "@aws-sdk/client-dynamodb";
import { ActRefusedError } from "../errors.ts";
import type { Json } from "../json.ts";
import { create } from "./acquire.ts";
import { type Connection, sendUntilKnown, unanswered } from "./connection.ts";
import type {
  ActKind,
  Approval,
  Budget,
  ControlState,
  EndingAct,
  Paused,
  RunEntry,
  SeenAct,
  TickRange,
} from "./control-store.ts";
import { actKey, controlKey, encodeWatermark, type Item, namesIn, readState, valuesOf, writeRecord } from "./items.ts";
import { isOnRecord, readControlItem } from "./read.ts";
import { commitsOf, rememberOwners } from "./tally.ts";

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

/** What an act does to the control item, and what goes with it in the same transaction. */
export interface Change {
  readonly sets?: readonly string[];
  readonly removes?: readonly string[];
  readonly conditions?: readonly string[];
  readonly values?: Record<string, unknown>;
  /** The act's record, beside who, why and when. */
  readonly details?: Record<string, unknown>;
  /** The job must be idle, or the run be ended: the fence is raised, so that whoever still goes on is fenced out. */
  readonly idle?: true;
  /** This run is fenced out and recorded as cancelled. */
  readonly ends?: RunEntry | undefined;
  readonly besides?: readonly TransactWriteItem[];
}

/** For an act that can't be done under a run. @throws ActRefusedError */
export const onIdle = (state: ControlState, kind: ActKind, cancel = false): Pick<Change, "idle" | "ends"> => {
  if (state.owner === undefined) return { idle: true };
  if (cancel) return { idle: true, ends: state.run };
  throw new ActRefusedError(
    state.job,
    kind,
    `run ${state.run?.id ?? "(unknown)"} holds the lease; cancel it, or wait for its end`,
  );
};

/**
 * Does an act: reads the job, asks `change` what there is to do, and does it on what was read.
 * @param change `undefined`: nothing is to be done. Asked again when the job has changed meanwhile; `seen` is the run, if there
 * was one, that it was asked about first.
 * @returns the run that was cancelled
 */
export const perform = async (
  connection: Connection,
  job: string,
  { fence, ...act }: SeenAct & { readonly kind: ActKind },
  at: number,
  budget: Budget,
  change: (
    state: ControlState,
    met: { readonly item: Item; readonly id: string; readonly seen: RunEntry | undefined },
  ) => Change | undefined,
): Promise<RunEntry | undefined> => {
  const id = randomUUID();
  const refuse = (why: string) => new ActRefusedError(job, act.kind, why);
  let first: ControlState | undefined;
  for (;;) {
    const item = await readControlItem(connection, job, budget);
    if (item === undefined) throw refuse(`it isn't known to table "${connection.table}"`);
    const state = readState(job, item);
    refuseMoved(state, act.kind);
    if (fence !== undefined && state.fence !== fence) {
      throw refuse(`its fence is ${state.fence}, and no longer the ${fence} that was seen: look again`);
    }
    const changed = change(state, { item, id, seen: first?.run });
    if (changed === undefined) return undefined;
    const meant = changed.idle || changed.ends !== undefined;
    if (meant && first !== undefined && first.fence !== state.fence)
      throw refuse(`a run that started meanwhile holds the lease, or has ended since: look again`);
    first ??= state;
    const request = commandOf(connection, state, changed, act, at, id);
    const settled = await sendUntilKnown(connection, request, budget);
    if (settled.kind === "done") return changed.ends;
    if (settled.kind === "cancelled") {
      if (await isOnRecord(connection, actKey(job, at, id), budget)) return changed.ends;
      const [control, record] = settled.reasons;
      if (control?.code === "ConditionalCheckFailed") {
        if (budget.clock.now() < budget.until) continue;
        throw refuse("the job changed faster than it could be caught between: its run commits without a pause");
      }
      if (changed.ends !== undefined && record?.code === "ConditionalCheckFailed")
        throw refuse(`run ${changed.ends.id} is on record already`);
      if (settled.reasons.some(({ code }) => code === "ConditionalCheckFailed"))
        throw refuse("what it goes with has changed meanwhile: look again");
    }
    throw unanswered(connection, job, act.kind, settled as { doubt: boolean; error: unknown });
  }
};

/** @throws ActRefusedError where the job is known under another name, or not yet under this one. */
const refuseMoved = ({ job, moving }: ControlState, kind: ActKind): void => {
  if (moving === undefined) return;
  throw new ActRefusedError(
    job,
    kind,
    "to" in moving
      ? `it was moved to "${moving.to}"; do it there`
      : `it is being moved here from "${moving.from}", and not all is here yet; move it again, which goes on`,
  );
};

const commandOf = (
  connection: Connection,
  state: ControlState,
  change: Change,
  act: { readonly kind: ActKind; readonly by: string; readonly why: string },
  at: number,
  id: string,
): TransactWriteItemsCommand => {
  const { job } = state;
  const { ends } = change;
  const raises = change.idle || ends !== undefined;
  const sets = [
    ...(change.sets ?? []),
    ...(raises ? ["#fence = #fence + :one"] : []),
    ...(ends === undefined ? [] : ["#recentOwners = :owners", "#unfinished = #unfinished - :one"]),
  ];
  const removes = [...(change.removes ?? []), ...(ends === undefined ? [] : ["#owner", "#leaseUntil", "#run"])];
  const condition = [
    "#fence = :seen",
    ...(ends === undefined ? (change.idle ? ["attribute_not_exists(#owner)"] : []) : endsIt),
    ...(change.conditions ?? []),
  ].join(" AND ");
  const update = [
    ...(sets.length > 0 ? [`SET ${sets.join(", ")}`] : []),
    ...(removes.length > 0 ? [`REMOVE ${removes.join(", ")}`] : []),
  ].join(" ");
  return new TransactWriteItemsCommand({
    ClientRequestToken: randomUUID(),
    TransactItems: [
      {
        Update: {
          TableName: connection.table,
          Key: controlKey(job),
          UpdateExpression: update,
          ConditionExpression: condition,
          ExpressionAttributeNames: namesIn(update, condition),
          ExpressionAttributeValues: valuesOf({
            ...change.values,
            ":seen": state.fence,
            ...(raises ? { ":one": 1 } : {}),
            ...(ends === undefined
              ? {}
              : { ":owner": state.owner, ":seq": ends.seq, ":owners": rememberOwners(state, [ends.owner]) }),
          }),
        },
      },
      ...(ends === undefined
        ? []
        : [putNew(connection, writeRecord(cancelledRecord(state, ends, at, `${act.by}: ${act.why}`)))]),
      putAct(
        connection,
        job,
        {
          ...act,
          ...change.details,
          ...(raises ? { fence: state.fence + 1 } : {}),
          ...(ends === undefined ? {} : { run: ends.id }),
        },
        at,
        id,
      ),
      ...(change.besides ?? []),
    ],
  });
};

const endsIt = ["#owner = :owner", "#run[0].#seq = :seq"];

const cancelledRecord = ({ job, fence }: ControlState, run: RunEntry, at: number, reason: string) => {
  const { seq, seals, tick, token, ...rest } = run;
  return {
    ...rest,
    ...(tick === undefined ? {} : { ticks: { from: tick, through: tick, count: 1 } }),
    job,
    fence,
    outcome: "cancelled" as const,
    endedAt: at,
    items: run.items ?? 0,
    commits: commitsOf(run),
    reason,
  };
};

/** The write that keeps an act. */
export const putAct = (
  connection: Connection,
  job: string,
  act: Record<string, unknown>,
  at: number,
  id: string,
): TransactWriteItem => putNew(connection, { ...valuesOf({ ...act, id, at }), ...actKey(job, at, id) });

const putNew = (connection: Connection, item: Item): TransactWriteItem => ({
  Put: { TableName: connection.table, Item: item, ConditionExpression: "attribute_not_exists(pk)" },
});
