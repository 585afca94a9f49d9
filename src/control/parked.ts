/**
 * Items that were set aside after repeated failure: written in the transaction that moves the watermark past them, so
 * that none is lost in between, and taken away in the one that does their work after all.
 */
import { createHash, randomUUID } from "node:crypto";
import { GetItemCommand, QueryCommand, TransactWriteItemsCommand } from "@aws-sdk/client-dynamodb";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import { CommitRefusedError, StoreUnavailableError } from "../errors.ts";
import { type Json, notJson } from "../json.ts";
import { type Connection, readUntilKnown, sendUntilKnown, unanswered } from "./connection.ts";
import type { Act, Budget, ParkedItem, ParkedPage } from "./control-store.ts";
import { actKey, type Item, namesIn, parkedKey, parkedKeysOf, valuesOf } from "./items.ts";
import { isOnRecord } from "./read.ts";
import type { PreparedWrites } from "./writes.ts";

/** A parked item's key: its cursor, or a digest of a long one (a sort key has at most 1,024 bytes). */
const keyOf = (cursor: Json): string => {
  const text = typeof cursor === "string" ? cursor : JSON.stringify(cursor);
  return Buffer.byteLength(text) <= longestKeyBytes ? text : createHash("sha256").update(text).digest("hex");
};
const longestKeyBytes = 900;

/** An item that a source can't read again is kept itself; it mustn't crowd out what it is parked with. */
const largestItemBytes = 64 * 1024;

/** The write that parks an item. */
export const parkWrites = (
  table: string,
  job: string,
  parked: Omit<ParkedItem, "key" | "item"> & { readonly item?: unknown },
): PreparedWrites => {
  const key = keyOf(parked.cursor);
  const { item, cursor, ...rest } = parked;
  // What isn't JSON may be nothing that can be written as JSON at all, such as a bigint.
  const kept = item === undefined || notJson(item) !== undefined ? undefined : JSON.stringify(item);
  if (item !== undefined && (kept === undefined || Buffer.byteLength(kept) > largestItemBytes)) {
    throw new CommitRefusedError(
      `the item at cursor ${key} can't be parked: its source can't read it again, and it isn't JSON of at most ${largestItemBytes} bytes`,
    );
  }
  const put = valuesOf({ ...rest, key, cursor: JSON.stringify(cursor), item: kept });
  // As JSON, since an item of this table is never far from that; what is kept is nearly all of it.
  const bytes = Buffer.byteLength(JSON.stringify(put));
  return own(table, { Put: { TableName: table, Item: { ...put, ...parkedKey(job, key) } } }, `parked ${key}`, bytes);
};

/** The write that takes a parked item away; refused if it is gone already. */
export const unparkWrites = (table: string, job: string, key: string): PreparedWrites => {
  const condition = "attribute_exists(#pk)";
  return own(
    table,
    {
      Delete: {
        TableName: table,
        Key: parkedKey(job, key),
        ConditionExpression: condition,
        ExpressionAttributeNames: namesIn(condition),
      },
    },
    `parked ${key}`,
  );
};

const own = (table: string, action: PreparedWrites["actions"][number], touched: string, bytes = 0): PreparedWrites => ({
  actions: [action],
  bytes,
  touched: [`${table} ${touched}`],
});

const readParkedItem = (item: Item): ParkedItem => {
  const { pk, sk, cursor, item: kept, ...rest } = unmarshall(item);
  return {
    ...(rest as Omit<ParkedItem, "cursor" | "item">),
    cursor: JSON.parse(cursor),
    ...(kept === undefined ? {} : { item: JSON.parse(kept) }),
  };
};

/** A page of a job's parked items, in the order of their keys. */
export const readParked = async (
  connection: Connection,
  job: string,
  page: { readonly limit: number; readonly after?: string },
  budget: Budget,
): Promise<ParkedPage> => {
  const keys = parkedKeysOf(job);
  const condition = "#pk = :pk AND begins_with(#sk, :prefix)";
  const answer = await readUntilKnown<{ Items?: Item[]; LastEvaluatedKey?: Item }>(
    connection,
    new QueryCommand({
      TableName: connection.table,
      KeyConditionExpression: condition,
      ExpressionAttributeNames: namesIn(condition),
      ExpressionAttributeValues: valuesOf({ ":pk": keys.pk, ":prefix": keys.prefix }),
      ...(page.after === undefined ? {} : { ExclusiveStartKey: parkedKey(job, page.after) }),
      ConsistentRead: true,
      Limit: page.limit,
    }),
    budget,
    `job "${job}"`,
    "read of parked items",
  );
  const items = (answer.Items ?? []).map(readParkedItem);
  const next = answer.LastEvaluatedKey === undefined ? undefined : items.at(-1)?.key;
  return { items, ...(next === undefined ? {} : { next }) };
};

export const readOneParked = async (
  connection: Connection,
  job: string,
  key: string,
  budget: Budget,
): Promise<ParkedItem | undefined> => {
  const command = new GetItemCommand({ TableName: connection.table, Key: parkedKey(job, key), ConsistentRead: true });
  const { Item: item } = await readUntilKnown<{ Item?: Item }>(
    connection,
    command,
    budget,
    `job "${job}"`,
    "read of a parked item",
  );
  return item && readParkedItem(item);
};

/** Gives a parked item up for good, with a record of who did it and why. */
export const dropParked = async (
  connection: Connection,
  job: string,
  key: string,
  act: Act,
  at: number,
  budget: Budget,
): Promise<void> => {
  const id = randomUUID();
  const settled = await sendUntilKnown(
    connection,
    new TransactWriteItemsCommand({
      ClientRequestToken: id,
      TransactItems: [
        ...unparkWrites(connection.table, job, key).actions,
        {
          Put: {
            TableName: connection.table,
            Item: { ...valuesOf({ kind: "drop", ...act, key, id, at }), ...actKey(job, at, id) },
            // A late repetition mustn't drop an item that has been parked again.
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
      throw new StoreUnavailableError(`job "${job}": no item is parked under ${JSON.stringify(key)}`, "drop");
  }
  throw unanswered(connection, job, "drop", settled as { doubt: boolean; error: unknown });
};
