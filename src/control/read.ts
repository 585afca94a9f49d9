/** Reading the control table. Reads that decide something are consistent ones. */
import { GetItemCommand, QueryCommand } from "@aws-sdk/client-dynamodb";
import { type Connection, readUntilKnown } from "./connection.ts";
import type { Budget, ControlState, RunPage, RunRecord } from "./control-store.ts";
import { controlKey, type Item, namesIn, readRecord, readState, runKey, runKeysOf, valuesOf } from "./items.ts";

export const readControl = async (
  connection: Connection,
  job: string,
  budget: Budget,
): Promise<ControlState | undefined> => {
  const item = await getItem(connection, controlKey(job), budget, `job "${job}"`);
  return item === undefined ? undefined : readState(job, item);
};

export const readRun = async (
  connection: Connection,
  job: string,
  run: { startedAt: number; id: string },
  budget: Budget,
): Promise<RunRecord | undefined> => {
  const item = await getItem(connection, runKey(job, run), budget, `job "${job}"`);
  return item === undefined ? undefined : readRecord(item);
};

/** Whether there is an item with this key. */
export const isOnRecord = async (connection: Connection, key: Item, budget: Budget): Promise<boolean> =>
  (await getItem(connection, key, budget, `table "${connection.table}"`)) !== undefined;

const getItem = async (
  connection: Connection,
  key: Item,
  budget: Budget,
  subject: string,
): Promise<Item | undefined> => {
  const command = new GetItemCommand({ TableName: connection.table, Key: key, ConsistentRead: true });
  return (await readUntilKnown<{ Item?: Item }>(connection, command, budget, subject, "read")).Item;
};

/** A page of a job's run records, newest first. */
export const readRuns = async (
  connection: Connection,
  job: string,
  page: { readonly limit: number; readonly before?: string },
  budget: Budget,
): Promise<RunPage> => {
  const keys = runKeysOf(job);
  const condition = "#pk = :pk AND #sk BETWEEN :from AND :through";
  const answer = await readUntilKnown<{ Items?: Item[]; LastEvaluatedKey?: Item }>(
    connection,
    new QueryCommand({
      TableName: connection.table,
      KeyConditionExpression: condition,
      ExpressionAttributeNames: namesIn(condition),
      ExpressionAttributeValues: valuesOf({ ":pk": keys.pk, ":from": keys.from, ":through": keys.through }),
      ...(page.before === undefined ? {} : { ExclusiveStartKey: { pk: { S: keys.pk }, sk: { S: page.before } } }),
      ScanIndexForward: false,
      ConsistentRead: true,
      Limit: page.limit,
    }),
    budget,
    `job "${job}"`,
    "read of runs",
  );
  const next = answer.LastEvaluatedKey?.sk?.S;
  return { runs: (answer.Items ?? []).map(readRecord), ...(next === undefined ? {} : { next }) };
};
