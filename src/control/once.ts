/**
 * Effects outside DynamoDB: the intent is written under the fence before the effect, its result after. What happened in
 * between, if the run died there, nobody knows; the intent that is left says so.
 *
 * | write | on condition | without it |
 * | --- | --- | --- |
 * | intent | none, or the one that was read | two runs would both begin the effect |
 * | result | our own intent | a late result would overwrite a successor's |
 * | done, without an intent | none | what it goes out with would be done twice |
 */
import { randomUUID } from "node:crypto";
import { GetItemCommand, TransactWriteItemsCommand } from "@aws-sdk/client-dynamodb";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import { StoreUnavailableError } from "../errors.ts";
import type { Json } from "../json.ts";
import { type Connection, readUntilKnown, sendUntilKnown, unanswered } from "./connection.ts";
import type { Act, Budget, OnceState } from "./control-store.ts";
import { actKey, type Item, namesIn, onceKey, valuesOf } from "./items.ts";
import { isOnRecord } from "./read.ts";
import type { PreparedWrites } from "./writes.ts";

/** How long it is remembered that an effect was done: as long as run records are. */
const keptSeconds = 400 * 86_400;

export const intendWrites = (
  table: string,
  job: string,
  key: string,
  intent: { readonly fence: number; readonly run: string; readonly at: number; readonly seen: OnceState | undefined },
): PreparedWrites => {
  const { seen, ...rest } = intent;
  const condition = seen === undefined ? "attribute_not_exists(#pk)" : "#state = :intended AND #fence = :seen";
  return own(table, key, {
    Put: {
      TableName: table,
      Item: {
        ...valuesOf({ ...rest, key, state: "intended", idempotencyKey: seen?.idempotencyKey }),
        ...onceKey(job, key),
      },
      ConditionExpression: condition,
      ExpressionAttributeNames: namesIn(condition),
      ...(seen === undefined
        ? {}
        : { ExpressionAttributeValues: valuesOf({ ":intended": "intended", ":seen": seen.fence }) }),
    },
  });
};

export const fulfilWrites = (
  table: string,
  job: string,
  key: string,
  done: { readonly fence: number; readonly run: string; readonly at: number; readonly result: Json | undefined },
): PreparedWrites => {
  const condition = "#state = :intended AND #fence = :fence AND #run = :run";
  const update = `SET #state = :done, #doneAt = :at, #expiresAt = :expires${done.result === undefined ? "" : ", #result = :result"}`;
  return own(table, key, {
    Update: {
      TableName: table,
      Key: onceKey(job, key),
      UpdateExpression: update,
      ConditionExpression: condition,
      ExpressionAttributeNames: namesIn(update, condition),
      ExpressionAttributeValues: valuesOf({
        ":intended": "intended",
        ":done": "done",
        ":fence": done.fence,
        ":run": done.run,
        ":at": done.at,
        ":expires": Math.floor(done.at / 1000) + keptSeconds,
        ":result": done.result === undefined ? undefined : JSON.stringify(done.result),
      }),
    },
  });
};

/** On record as done with the writes that it goes out with, unless it is on record already: then they are refused. */
export const doneWrites = (
  table: string,
  job: string,
  key: string,
  done: { readonly fence: number; readonly run: string; readonly at: number },
): PreparedWrites => {
  const condition = "attribute_not_exists(#pk)";
  const kept = { ...done, key, state: "done", doneAt: done.at, expiresAt: Math.floor(done.at / 1000) + keptSeconds };
  return own(table, key, {
    Put: {
      TableName: table,
      Item: { ...valuesOf(kept), ...onceKey(job, key) },
      ConditionExpression: condition,
      ExpressionAttributeNames: namesIn(condition),
    },
  });
};

/** Takes our own intent back, for an effect that certainly wasn't done. */
export const withdrawWrites = (table: string, job: string, key: string, fence: number, run: string): PreparedWrites => {
  const condition = "#state = :intended AND #fence = :fence AND #run = :run";
  return own(table, key, {
    Delete: {
      TableName: table,
      Key: onceKey(job, key),
      ConditionExpression: condition,
      ExpressionAttributeNames: namesIn(condition),
      ExpressionAttributeValues: valuesOf({ ":intended": "intended", ":fence": fence, ":run": run }),
    },
  });
};

const own = (table: string, key: string, action: PreparedWrites["actions"][number]): PreparedWrites => ({
  actions: [action],
  bytes: 0,
  touched: [`${table} once ${key}`],
});

export const readOnce = async (
  connection: Connection,
  job: string,
  key: string,
  budget: Budget,
): Promise<OnceState | undefined> => {
  const command = new GetItemCommand({ TableName: connection.table, Key: onceKey(job, key), ConsistentRead: true });
  const answer = await readUntilKnown<{ Item?: Item }>(
    connection,
    command,
    budget,
    `job "${job}"`,
    "read of an effect",
  );
  if (answer.Item === undefined) return undefined;
  const { state, fence, run, at, idempotencyKey, result } = unmarshall(answer.Item);
  return {
    state,
    fence,
    run,
    at,
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(result === undefined ? {} : { result: JSON.parse(result) }),
  };
};

/** A person says what became of an effect that nobody else can know about. */
export const releaseOnce = async (
  connection: Connection,
  job: string,
  key: string,
  verdict: "done" | "not done",
  act: Act,
  at: number,
  budget: Budget,
): Promise<void> => {
  const id = randomUUID();
  const condition = "#state = :intended";
  const target = { TableName: connection.table, Key: onceKey(job, key), ConditionExpression: condition };
  const update = "SET #state = :done, #doneAt = :at, #expiresAt = :expires";
  const settled = await sendUntilKnown(
    connection,
    new TransactWriteItemsCommand({
      ClientRequestToken: id,
      TransactItems: [
        verdict === "done"
          ? {
              Update: {
                ...target,
                UpdateExpression: update,
                ExpressionAttributeNames: namesIn(condition, update),
                ExpressionAttributeValues: valuesOf({
                  ":intended": "intended",
                  ":done": "done",
                  ":at": at,
                  ":expires": Math.floor(at / 1000) + keptSeconds,
                }),
              },
            }
          : {
              Delete: {
                ...target,
                ExpressionAttributeNames: namesIn(condition),
                ExpressionAttributeValues: valuesOf({ ":intended": "intended" }),
              },
            },
        {
          Put: {
            TableName: connection.table,
            Item: { ...valuesOf({ kind: "release", ...act, key, verdict, id, at }), ...actKey(job, at, id) },
            // A late repetition mustn't release what has been begun anew.
            ConditionExpression: "attribute_not_exists(pk)",
          },
        },
      ],
    }),
    budget,
  );
  if (settled.kind === "done") return;
  if (settled.kind === "cancelled") {
    if (settled.doubt && (await isOnRecord(connection, actKey(job, at, id), budget))) return;
    if (settled.reasons[0]?.code === "ConditionalCheckFailed")
      throw new StoreUnavailableError(`job "${job}": no effect ${JSON.stringify(key)} is open`, "release");
  }
  throw unanswered(connection, job, "release", settled as { doubt: boolean; error: unknown });
};
