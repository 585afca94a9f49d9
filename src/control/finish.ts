/**
 * Ending a run: the lease is given back, the tick completed, the run recorded and the last writes made, all at once.
 *
 * | condition | without it |
 * | --- | --- |
 * | fence and owner are ours | a late finish would release the successor's lease, or overwrite what it counted |
 * | seq is the number of commits we know of | a commit in doubt could arrive later, or be missing from the record |
 * | for a success: nothing later is pending | a tick that was queued behind us would be skipped |
 * | no run record, or our own | another run's record would be overwritten |
 */
import { randomUUID } from "node:crypto";
import { TransactWriteItemsCommand } from "@aws-sdk/client-dynamodb";
import { LeaseLostError } from "../errors.ts";
import { explainFailure, fateOf, holds, rejection } from "./commit.ts";
import { type Connection, sendUntilKnown, unanswered } from "./connection.ts";
import type { Budget, ControlState, Finish, FinishResult, Lease } from "./control-store.ts";
import { controlKey, encodeWatermark, namesIn, packRecent, readState, valuesOf, writeRecord } from "./items.ts";
import { readRun } from "./read.ts";

/**
 * @throws WriteRejectedError when DynamoDB rejected a write of the last batch: nothing was written, the lease is still held.
 * @throws LeaseLostError when the run was replaced and isn't on record as finished.
 * @throws OutcomeUnknownError when the budget ended before the outcome was known: never report a success then.
 */
export const finish = async (
  connection: Connection,
  lease: Lease,
  finish: Finish,
  budget: Budget,
): Promise<FinishResult> => {
  const finished = { kind: "finished", outcome: finish.record.outcome } as const;
  const settled = await sendUntilKnown(connection, finishCommand(connection, lease, finish), budget);
  if (settled.kind === "done") return finished;
  if (settled.kind === "cancelled") {
    const [control, record, ...writes] = settled.reasons;
    if (control?.code === "ConditionalCheckFailed") {
      const state = control.item && readState(lease.job, control.item);
      if (state === undefined || !holds(state, lease)) {
        return whatIsOnRecord(connection, lease, finish, state, budget);
      }
      if ((state.run?.seq ?? 0) > finish.seq) return { kind: "late_commit", state };
      if (finish.success !== undefined && state.pending !== undefined) return { kind: "pending", tick: state.pending };
    } else if (record?.code !== "ConditionalCheckFailed") {
      const rejected = rejection(connection, lease.job, finish.writes, writes, settled.error);
      if (rejected !== undefined) throw rejected;
    }
  }
  if (settled.kind === "failed" && !settled.doubt)
    throw await explainFailure(connection, lease, finish.writes, settled.error);
  throw unanswered(connection, lease.job, "finish", settled as { doubt: boolean; error: unknown });
};

const finishCommand = (connection: Connection, lease: Lease, finish: Finish): TransactWriteItemsCommand => {
  const sets = [
    "#unfinished = :unfinished",
    "#failedTicks = :failedTicks",
    "#recentOwners = :owners",
    "#recent = :recent",
  ];
  const removes = ["#owner", "#leaseUntil", "#run"];
  if (finish.watermark !== undefined) sets.push("#watermark = :watermark");
  if (finish.tick !== undefined) sets.push("#tick = :tick");
  if (finish.lastSuccessAt !== undefined) sets.push("#lastSuccessAt = :lastSuccessAt");
  const nextTick = finish.lastSuccessAt === undefined ? undefined : finish.record.nextTick;
  if (nextTick !== undefined) sets.push("#nextTick = :nextTick");
  if (finish.lastFailedTick === undefined) removes.push("#lastFailedTick");
  else sets.push("#lastFailedTick = :lastFailedTick");
  if (finish.tripped !== undefined) sets.push("#tripped = :tripped");
  if (finish.usesApproval) removes.push("#approval", "#tripped");
  if (finish.tickPart) sets.push("#tickPart = :tickPart");
  if (finish.tickPart === null) removes.push("#tickPart");
  if (finish.prev.length > 0) sets.push("#prev = :prev");
  else removes.push("#prev");
  if (finish.success !== undefined) removes.push("#pending");
  const update = `SET ${sets.join(", ")} REMOVE ${removes.join(", ")}`;
  const covered = finish.success?.covered;
  const nothingLater =
    covered === undefined
      ? "attribute_not_exists(#pending)"
      : "(attribute_not_exists(#pending) OR #pending <= :covered)";
  const condition = `#fence = :fence AND #owner = :me AND #run[0].#seq = :seq${finish.success === undefined ? "" : ` AND ${nothingLater}`}`;
  const recordCondition = "attribute_not_exists(#pk) OR #owner = :me";
  return new TransactWriteItemsCommand({
    ClientRequestToken: randomUUID(),
    TransactItems: [
      {
        Update: {
          TableName: connection.table,
          Key: controlKey(lease.job),
          UpdateExpression: update,
          ConditionExpression: condition,
          ExpressionAttributeNames: namesIn(update, condition),
          ExpressionAttributeValues: valuesOf({
            ":fence": lease.fence,
            ":me": lease.owner,
            ":seq": finish.seq,
            ":covered": finish.success === undefined ? undefined : covered,
            ":unfinished": finish.unfinished,
            ":failedTicks": finish.failedTicks,
            ":owners": finish.recentOwners,
            ":recent": packRecent(finish.recent),
            ":watermark": encodeWatermark(finish.watermark),
            ":tick": finish.tick,
            ":tripped": finish.tripped,
            ":lastSuccessAt": finish.lastSuccessAt,
            ":nextTick": nextTick,
            ":lastFailedTick": finish.lastFailedTick,
            ":tickPart": finish.tickPart ?? undefined,
            ":prev": finish.prev.length > 0 ? finish.prev : undefined,
          }),
          ReturnValuesOnConditionCheckFailure: "ALL_OLD",
        },
      },
      {
        Put: {
          TableName: connection.table,
          Item: writeRecord(finish.record),
          ConditionExpression: recordCondition,
          ExpressionAttributeNames: namesIn(recordCondition),
          ExpressionAttributeValues: valuesOf({ ":me": lease.owner }),
        },
      },
      ...finish.writes.actions,
    ],
  });
};

/** The lease is no longer ours: our own record tells whether that is because we finished (or were cancelled). */
const whatIsOnRecord = async (
  connection: Connection,
  lease: Lease,
  finish: Finish,
  state: ControlState | undefined,
  budget: Budget,
): Promise<FinishResult> => {
  const record = await readRun(connection, lease.job, lease.run, budget);
  if (record?.owner === lease.owner && record.outcome !== "crashed" && record.outcome !== "lease_lost") {
    const { outcome, commits } = record;
    return {
      kind: "finished",
      outcome,
      ...(outcome === finish.record.outcome && commits === finish.record.commits ? {} : { record }),
    };
  }
  // A commit that was in doubt may have been applied before the lease was lost.
  const beyond = (await fateOf(connection, lease, finish, state, true, budget)) === "applied";
  throw new LeaseLostError(lease, beyond ? "applied" : "none");
};
