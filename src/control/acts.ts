/**
 * What an operator does to a job. Each act is one transaction on the fence that was seen, with a record of who did it
 * and why; a pause or resume that meets a newer fence is tried on that, a cancel isn't: it meant the run that was seen.
 */
import { randomUUID } from "node:crypto";
import { TransactWriteItemsCommand } from "@aws-sdk/client-dynamodb";
import { StoreUnavailableError } from "../errors.ts";
import { create } from "./acquire.ts";
import { type Connection, sendUntilKnown, unanswered } from "./connection.ts";
import type { Act, Budget, Paused, RunEntry } from "./control-store.ts";
import { actKey, controlKey, namesIn, valuesOf, writeRecord } from "./items.ts";
import { readControl, readRun } from "./read.ts";
import { rememberOwners } from "./tally.ts";

export const pauseJob = async (connection: Connection, job: string, paused: Paused, budget: Budget): Promise<void> => {
  if ((await readControl(connection, job, budget)) === undefined) await create(connection, job, paused.at, budget);
  const act = { kind: "pause", by: paused.by, why: paused.why, until: paused.until };
  await onAnyFence(connection, job, "SET #paused = :paused", { ":paused": paused }, act, paused.at, budget);
};

export const resumeJob = (connection: Connection, job: string, act: Act, at: number, budget: Budget): Promise<void> =>
  onAnyFence(connection, job, "REMOVE #paused", {}, { kind: "resume", ...act }, at, budget);

/**
 * | condition | without it |
 * | --- | --- |
 * | fence and owner are those seen | the run that followed would be cancelled instead |
 * | no record of the run, or `crashed` | a finished run's record would be overwritten |
 */
export const cancelRun = async (
  connection: Connection,
  job: string,
  act: Act,
  at: number,
  budget: Budget,
): Promise<RunEntry | undefined> => {
  const state = await readControl(connection, job, budget);
  const { run } = state ?? {};
  if (state?.owner === undefined || run === undefined) return undefined;
  const actId = randomUUID();
  const update =
    "SET #recentOwners = :owners, #unfinished = #unfinished - :one, #fence = #fence + :one REMOVE #owner, #leaseUntil, #run";
  const condition = "#fence = :seen AND #owner = :owner";
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
            ExpressionAttributeValues: valuesOf({
              ":one": 1,
              ":seen": state.fence,
              ":owner": state.owner,
              ":owners": rememberOwners(state, [state.owner]),
            }),
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
              commits: run.seq,
              reason: `${act.by}: ${act.why}`,
            }),
            ConditionExpression: "attribute_not_exists(pk)",
          },
        },
        putAct(connection, job, { kind: "cancel", ...act, run: run.id }, at, actId),
      ],
    }),
    budget,
  );
  if (settled.kind === "done") return run;
  if (settled.kind === "cancelled") {
    const record = settled.doubt ? await readRun(connection, job, run, budget) : undefined;
    if (record?.outcome === "cancelled") return run;
    throw new StoreUnavailableError(`job "${job}": run ${run.id} ended or was replaced meanwhile`, "cancel");
  }
  throw unanswered(connection, job, "cancel", settled as { doubt: boolean; error: unknown });
};

const withoutSeq = ({ seq, tick, token, ...run }: RunEntry) => ({
  ...run,
  ...(tick === undefined ? {} : { ticks: { from: tick, through: tick, count: 1 } }),
});

/** An act that is right under whatever fence: repeating it changes nothing, so an unknown outcome is simply tried again. */
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
    const moved = settled.kind === "cancelled" && settled.reasons[0]?.code === "ConditionalCheckFailed";
    if (!moved) throw unanswered(connection, job, String(act.kind), settled as { doubt: boolean; error: unknown });
  }
};

const putAct = (connection: Connection, job: string, act: Record<string, unknown>, at: number, id: string) => ({
  Put: { TableName: connection.table, Item: { ...valuesOf({ ...act, id, at }), ...actKey(job, at, id) } },
});
