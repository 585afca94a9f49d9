/**
 * What an operator does to a job. Each act is one transaction on the fence that was seen, with a record of who did it
 * and why; a pause or resume that meets a newer fence is tried on that, a cancel isn't: it meant the run that was seen.
 *
 * An act is applied once: its record is written on condition that there is none, so that a repeated request changes
 * nothing, however late it comes; and where a request is refused, the record tells whether an earlier one was applied.
 */
import { randomUUID } from "node:crypto";
import { TransactWriteItemsCommand } from "@aws-sdk/client-dynamodb";
import { StoreUnavailableError } from "../errors.ts";
import type { Json } from "../json.ts";
import { create } from "./acquire.ts";
import { type Connection, sendUntilKnown, unanswered } from "./connection.ts";
import type { Act, Approval, Budget, ControlState, Paused, RunEntry } from "./control-store.ts";
import { actKey, controlKey, encodeWatermark, namesIn, readState, valuesOf, writeRecord } from "./items.ts";
import { isOnRecord, readControl } from "./read.ts";
import { commitsOf, rememberOwners } from "./tally.ts";

export const pauseJob = async (connection: Connection, job: string, paused: Paused, budget: Budget): Promise<void> => {
  if ((await readControl(connection, job, budget)) === undefined) await create(connection, job, paused.at, budget);
  const act = { kind: "pause", by: paused.by, why: paused.why, until: paused.until };
  await onAnyFence(connection, job, "SET #paused = :paused", { ":paused": paused }, act, paused.at, budget);
};

export const resumeJob = (connection: Connection, job: string, act: Act, at: number, budget: Budget): Promise<void> =>
  onAnyFence(
    connection,
    job,
    "SET #activeSince = :at REMOVE #paused",
    { ":at": at },
    { kind: "resume", ...act },
    at,
    budget,
  );

/**
 * An approval is for the plan that tripped the guard last, and for no other.
 * @throws StoreUnavailableError when no guard has tripped, or its plan is larger than `max`
 */
export const approvePlan = async (
  connection: Connection,
  job: string,
  { by, why, max, until }: Act & { readonly max: number; readonly until: number },
  at: number,
  budget: Budget,
): Promise<Approval> => {
  const { tripped } = (await readControl(connection, job, budget)) ?? {};
  if (tripped === undefined) {
    throw new StoreUnavailableError(
      `job "${job}": its guard hasn't tripped, so there is nothing to approve`,
      "approve",
    );
  }
  if (tripped.count > max) {
    throw new StoreUnavailableError(
      `job "${job}": the plan that tripped the guard is of ${tripped.count} items, more than the ${max} to be approved`,
      "approve",
    );
  }
  const approval: Approval = { max, until, hash: tripped.hash, by, why };
  const act = { kind: "approve", by, why, max, until, hash: tripped.hash, planned: tripped.count };
  await onAnyFence(connection, job, "SET #approval = :approval", { ":approval": approval }, act, at, budget);
  return approval;
};

/**
 * | condition | without it |
 * | --- | --- |
 * | fence and owner are those seen | the run that followed would be cancelled instead |
 * | seq is the one seen | the record would leave out what was committed meanwhile |
 * | no record of the run | another record would be overwritten |
 *
 * A run that commits meanwhile is still the run that was meant, so that is tried again.
 */
export const cancelRun = async (
  connection: Connection,
  job: string,
  act: Act,
  at: number,
  budget: Budget,
): Promise<RunEntry | undefined> => {
  const actId = randomUUID();
  let state = await readControl(connection, job, budget);
  for (;;) {
    const { run } = state ?? {};
    if (state?.owner === undefined || run === undefined) return undefined;
    const settled = await sendUntilKnown(connection, cancelCommand(connection, state, run, act, at, actId), budget);
    if (settled.kind === "done") return run;
    if (settled.kind !== "cancelled")
      throw unanswered(connection, job, "cancel", settled as { doubt: boolean; error: unknown });
    if (await isOnRecord(connection, actKey(job, at, actId), budget)) return run;
    const item = settled.reasons[0]?.item;
    const now = item && readState(job, item);
    const committed = now?.owner === state.owner && now.fence === state.fence && now.run?.seq !== run.seq;
    if (!committed)
      throw new StoreUnavailableError(`job "${job}": run ${run.id} ended or was replaced meanwhile`, "cancel");
    if (budget.clock.now() >= budget.until)
      throw new StoreUnavailableError(`job "${job}": run ${run.id} committed too fast to be caught between`, "cancel");
    state = now;
  }
};

const cancelCommand = (
  connection: Connection,
  state: ControlState,
  run: RunEntry,
  act: Act,
  at: number,
  actId: string,
): TransactWriteItemsCommand => {
  const { job } = state;
  const update =
    "SET #recentOwners = :owners, #unfinished = #unfinished - :one, #fence = #fence + :one REMOVE #owner, #leaseUntil, #run";
  const condition = "#fence = :seen AND #owner = :owner AND #run[0].#seq = :seq";
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
            ":one": 1,
            ":seen": state.fence,
            ":owner": state.owner,
            ":seq": run.seq,
            ":owners": rememberOwners(state, [run.owner]),
          }),
          ReturnValuesOnConditionCheckFailure: "ALL_OLD",
        },
      },
      {
        Put: {
          TableName: connection.table,
          Item: writeRecord({
            ...withoutSeq(run),
            job,
            fence: state.fence,
            outcome: "cancelled",
            endedAt: at,
            items: run.items ?? 0,
            commits: commitsOf(run),
            reason: `${act.by}: ${act.why}`,
          }),
          ConditionExpression: "attribute_not_exists(pk)",
        },
      },
      putAct(connection, job, { kind: "cancel", ...act, run: run.id }, at, actId),
    ],
  });
};

const withoutSeq = ({ seq, seals, tick, token, ...run }: RunEntry) => ({
  ...run,
  ...(tick === undefined ? {} : { ticks: { from: tick, through: tick, count: 1 } }),
});

/**
 * | condition | without it |
 * | --- | --- |
 * | the fence is the one seen | a run that has started since would find its watermark moved under it |
 * | no owner | the same |
 *
 * @throws StoreUnavailableError while a run holds the lease: cancel it first
 */
export const rewindJob = async (
  connection: Connection,
  job: string,
  watermark: Json | null,
  act: Act,
  at: number,
  budget: Budget,
): Promise<void> => {
  const state = await readControl(connection, job, budget);
  const held = (run: string) =>
    new StoreUnavailableError(`job "${job}": run ${run} holds the lease; cancel it, or wait for its end`, "rewind");
  if (state === undefined)
    throw new StoreUnavailableError(`job "${job}" isn't known to table "${connection.table}"`, "rewind");
  if (state.owner !== undefined) throw held(state.run?.id ?? "(unknown)");
  const actId = randomUUID();
  const update =
    watermark === null ? "ADD #fence :one REMOVE #watermark" : "SET #watermark = :watermark ADD #fence :one";
  const condition = "#fence = :seen AND attribute_not_exists(#owner)";
  const values = {
    ":one": 1,
    ":seen": state.fence,
    ":watermark": watermark === null ? undefined : encodeWatermark(watermark),
  };
  const was = encodeWatermark(state.watermark);
  const settled = await sendUntilKnown(
    connection,
    new TransactWriteItemsCommand({
      ClientRequestToken: actId,
      TransactItems: [
        {
          Update: {
            TableName: connection.table,
            Key: controlKey(job),
            UpdateExpression: update,
            ConditionExpression: condition,
            ExpressionAttributeNames: namesIn(update, condition),
            ExpressionAttributeValues: valuesOf(values),
          },
        },
        putAct(
          connection,
          job,
          { kind: "rewind", ...act, from: was, to: encodeWatermark(watermark ?? undefined) },
          at,
          actId,
        ),
      ],
    }),
    budget,
  );
  if (settled.kind === "done") return;
  if (settled.kind === "cancelled") {
    if (settled.doubt && (await isOnRecord(connection, actKey(job, at, actId), budget))) return;
    throw held("that started meanwhile");
  }
  throw unanswered(connection, job, "rewind", settled as { doubt: boolean; error: unknown });
};

/** An act that is right under whatever fence. */
const onAnyFence = async (
  connection: Connection,
  job: string,
  update: string,
  values: Record<string, unknown>,
  act: Record<string, unknown>,
  at: number,
  budget: Budget,
): Promise<void> => {
  const actId = randomUUID();
  for (;;) {
    const state = await readControl(connection, job, budget);
    if (state === undefined)
      throw new StoreUnavailableError(`job "${job}" isn't known to table "${connection.table}"`, String(act.kind));
    const condition = "#fence = :seen";
    const settled = await sendUntilKnown(
      connection,
      new TransactWriteItemsCommand({
        TransactItems: [
          {
            Update: {
              TableName: connection.table,
              Key: controlKey(job),
              UpdateExpression: update,
              ConditionExpression: condition,
              ExpressionAttributeNames: namesIn(update, condition),
              ExpressionAttributeValues: valuesOf({ ...values, ":seen": state.fence }),
            },
          },
          putAct(connection, job, act, at, actId),
        ],
      }),
      budget,
    );
    if (settled.kind === "done") return;
    if (settled.kind === "cancelled" && (await isOnRecord(connection, actKey(job, at, actId), budget))) return;
    const moved = settled.kind === "cancelled" && settled.reasons[0]?.code === "ConditionalCheckFailed";
    if (!moved) throw unanswered(connection, job, String(act.kind), settled as { doubt: boolean; error: unknown });
  }
};

const putAct = (connection: Connection, job: string, act: Record<string, unknown>, at: number, id: string) => ({
  Put: {
    TableName: connection.table,
    Item: { ...valuesOf({ ...act, id, at }), ...actKey(job, at, id) },
    ConditionExpression: "attribute_not_exists(pk)",
  },
});
