/**
 * Giving a job another name. Its control item stays under the old one as a tombstone that grants nothing, with all that it held;
 * the new one begins with the same watermark, tick and history, and a greater fence than both have ever granted.
 *
 *   old:  … ─▶ moving to NEW, for good
 *   new:       moving from OLD ─▶ parked items and effects brought over ─▶ as any other
 *              (no run is granted)
 *
 * The first step is one transaction over both items; what follows can be gone on with however it broke off, since an item is
 * put under the new name and taken from the old one in the same transaction. Run records and acts stay under the old name,
 * which `movedFrom` names.
 *
 * | condition | without it |
 * | --- | --- |
 * | those of every act that needs the job idle | see act-transaction.ts |
 * | the new name has granted nothing: its fence is the one seen | a job of that name would lose what it has done |
 * | its pause is the one seen | a pause made meanwhile would be lost |
 * | for each item brought over: it is still under the old name | a late repetition would bring back what a run has done since |
 * | for each effect: its state is the one read | what a person said of it meanwhile would be lost |
 */
import { randomUUID } from "node:crypto";
import { QueryCommand, TransactWriteItemsCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { ActRefusedError } from "../errors.ts";
import { onIdle, perform, putAct } from "./act-transaction.ts";
import { type Connection, forEachRequest, readUntilKnown, sendUntilKnown, unanswered } from "./connection.ts";
import type { Budget, ControlState, EndingAct, RunEntry } from "./control-store.ts";
import { carriedPrefixes, controlKey, type Item, idempotencyKeyOf, namesIn, partition, valuesOf } from "./items.ts";
import { readControl } from "./read.ts";
import { clearPredecessors } from "./records.ts";
import { rememberOwners } from "./tally.ts";

/** @throws ActRefusedError unless the job is known and idle (or its run cancelled), and nothing ever ran under the new name. */
export const moveJob = async (
  connection: Connection,
  job: string,
  to: string,
  act: EndingAct,
  at: number,
  budget: Budget,
): Promise<RunEntry | undefined> => {
  const cancelled = await rename(connection, job, to, act, at, budget);
  await bringOver(connection, job, to, budget);
  await arrive(connection, job, to, budget);
  return cancelled;
};

/** The first step; nothing where it was done before, and broke off after it. */
const rename = async (
  connection: Connection,
  job: string,
  to: string,
  { cancel, ...act }: EndingAct,
  at: number,
  budget: Budget,
): Promise<RunEntry | undefined> => {
  const target = await readControl(connection, to, budget);
  const state = await readControl(connection, job, budget);
  if (state?.moving !== undefined && "to" in state.moving && state.moving.to === to) {
    if (target?.moving !== undefined) return undefined;
    throw new ActRefusedError(job, "move", `it was moved to "${to}" already, and all of it is there`);
  }
  if (target !== undefined) refuseHistory(job, target);
  // They are recorded under the name that they ran under.
  if (state !== undefined && state.prev.length > 0) await clearPredecessors(connection, state, budget);
  return perform(connection, job, { kind: "move", ...act }, at, budget, (old, { item, id }) => {
    if (old.prev.length > 0)
      throw new ActRefusedError(job, "move", "runs that never finished couldn't all be recorded; try again");
    const idle = onIdle(old, "move", cancel);
    const { owner, leaseUntil, run, healed, ...kept } = item;
    const fence = Math.max(old.fence + 1, target?.fence ?? 0) + 1;
    const { by, why } = act;
    const { ends } = idle;
    const cancelling =
      ends === undefined ? {} : { unfinished: old.unfinished - 1, recentOwners: rememberOwners(old, [ends.owner]) };
    const condition = targetCondition(target);
    return {
      ...idle,
      sets: ["#moving = :moving"],
      values: { ":moving": { to, by, why, at } },
      details: { from: job, to },
      besides: [
        {
          Put: {
            TableName: connection.table,
            Item: {
              ...kept,
              ...valuesOf({
                ...cancelling,
                fence,
                moving: { from: job, by, why, at },
                movedFrom: { job, at },
                // Until it is deployed under its new name nobody starts it: late only after the next delivery.
                activeSince: at,
                paused: target?.paused ?? old.paused,
              }),
              ...controlKey(to),
            },
            ConditionExpression: condition.text,
            ExpressionAttributeNames: namesIn(condition.text),
            ...(Object.keys(condition.values).length === 0
              ? {}
              : { ExpressionAttributeValues: valuesOf(condition.values) }),
          },
        },
        putAct(connection, to, { kind: "move", by, why, from: job, to, fence }, at, id),
      ],
    };
  });
};

/** A job that the deployment or the watchdog has made known, and that never ran, has nothing to lose. */
const refuseHistory = (job: string, target: ControlState): void => {
  const { owner, tick, watermark, recentOwners, unfinished, prev, moving } = target;
  const ran = owner !== undefined || recentOwners.length > 0 || unfinished > 0 || prev.length > 0;
  if (!ran && tick === undefined && watermark === undefined && moving === undefined) return;
  throw new ActRefusedError(
    job,
    "move",
    `"${target.job}" has a history of its own, which would be lost; move "${job}" to a name that has none`,
  );
};

const targetCondition = (target: ControlState | undefined): { text: string; values: Record<string, unknown> } => {
  if (target === undefined) return { text: "attribute_not_exists(#pk)", values: {} };
  const { fence, paused } = target;
  return paused === undefined
    ? { text: "#fence = :fence AND attribute_not_exists(#paused)", values: { ":fence": fence } }
    : { text: "#fence = :fence AND #paused = :paused", values: { ":fence": fence, ":paused": paused } };
};

/** Parked items and effects: each is under one name or the other, never both. */
const bringOver = async (connection: Connection, job: string, to: string, budget: Budget): Promise<void> => {
  const each = forEachRequest(budget);
  for (const prefix of carriedPrefixes) {
    for (;;) {
      const items = await firstItems(connection, job, prefix, each());
      if (items.length === 0) break;
      const request = new TransactWriteItemsCommand({
        ClientRequestToken: randomUUID(),
        TransactItems: items.flatMap((item) => [
          { Put: { TableName: connection.table, Item: { ...underway(item, job), pk: { S: partition(to) } } } },
          { Delete: { TableName: connection.table, ...asRead(item) } },
        ]),
      });
      const settled = await sendUntilKnown(connection, request, each());
      // Refused: an earlier try was applied, somebody else goes on with this move, or an effect was released. What is left is
      // read again.
      const gone =
        settled.kind === "cancelled" && settled.reasons.some(({ code }) => code === "ConditionalCheckFailed");
      if (settled.kind === "done" || gone) continue;
      throw unanswered(connection, job, "move", settled as { doubt: boolean; error: unknown });
    }
  }
};

/** An effect whose end nobody knows is still known to the other side by the key that it was begun with. */
const underway = (item: Item, job: string): Item =>
  item.state?.S === "intended" && item.key?.S !== undefined
    ? { idempotencyKey: { S: idempotencyKeyOf(job, item.key.S) }, ...item }
    : item;

const asRead = ({ pk, sk, state }: Item) => {
  const condition = state === undefined ? "attribute_exists(#pk)" : "#state = :state";
  return {
    Key: { pk, sk } as Item,
    ConditionExpression: condition,
    ExpressionAttributeNames: namesIn(condition),
    ...(state === undefined ? {} : { ExpressionAttributeValues: { ":state": state } }),
  };
};

/** As many as go into one transaction, two actions each: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html */
const mostAtOnce = 50;

const firstItems = async (connection: Connection, job: string, prefix: string, budget: Budget): Promise<Item[]> => {
  const condition = "#pk = :pk AND begins_with(#sk, :prefix)";
  const command = new QueryCommand({
    TableName: connection.table,
    KeyConditionExpression: condition,
    ExpressionAttributeNames: namesIn(condition),
    ExpressionAttributeValues: valuesOf({ ":pk": partition(job), ":prefix": prefix }),
    ConsistentRead: true,
    Limit: mostAtOnce,
  });
  const answer = await readUntilKnown<{ Items?: Item[] }>(connection, command, budget, `job "${job}"`, "move");
  return answer.Items ?? [];
};

/** From here on runs are granted under the new name. */
const arrive = async (connection: Connection, job: string, to: string, budget: Budget): Promise<void> => {
  const update = "REMOVE #moving";
  const condition = "#moving.#from = :job";
  const settled = await sendUntilKnown(
    connection,
    new UpdateItemCommand({
      TableName: connection.table,
      Key: controlKey(to),
      UpdateExpression: update,
      ConditionExpression: condition,
      ExpressionAttributeNames: namesIn(update, condition),
      ExpressionAttributeValues: valuesOf({ ":job": job }),
    }),
    budget,
  );
  // Refused: it is there already, by an earlier try or by somebody else who went on with it.
  if (settled.kind === "done" || settled.kind === "refused") return;
  throw unanswered(connection, job, "move", settled as { doubt: boolean; error: unknown });
};
