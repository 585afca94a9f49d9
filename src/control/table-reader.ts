/** Reading users' tables in the order of a sort key, for sources. */
import { QueryCommand } from "@aws-sdk/client-dynamodb";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import { type Connection, readUntilKnown } from "./connection.ts";
import type { Budget } from "./control-store.ts";
import { type Item, valuesOf } from "./items.ts";

export type KeyValue = string | number;
export type Key = Readonly<Record<string, KeyValue>>;

/** One page of a partition, ascending by the sort key. */
export interface PageRequest {
  readonly table: string;
  readonly index?: string;
  readonly partition: { readonly name: string; readonly value: KeyValue };
  readonly sort: string;
  /** Only items whose sort key isn't less. */
  readonly from?: KeyValue;
  /** Only items whose sort key isn't greater. */
  readonly through?: KeyValue;
  /** Start behind this whole key (index and table keys): the only way to go on between equal sort keys. */
  readonly afterKey?: Key;
  readonly limit: number;
}

export interface Page {
  readonly items: readonly Record<string, unknown>[];
  /** Nothing further matched when this was read. */
  readonly done: boolean;
}

export interface TableReader {
  query(request: PageRequest, budget: Budget): Promise<Page>;
}

export const queryPage = async (connection: Connection, request: PageRequest, budget: Budget): Promise<Page> => {
  const { table, index, partition, sort, from, through, afterKey, limit } = request;
  const bounds =
    from !== undefined && through !== undefined
      ? " AND #sort BETWEEN :from AND :through"
      : from !== undefined
        ? " AND #sort >= :from"
        : through !== undefined
          ? " AND #sort <= :through"
          : "";
  // BETWEEN wants its bounds in order.
  if (from !== undefined && through !== undefined && from > through) return { items: [], done: true };
  const answer = await readUntilKnown<{ Items?: Item[]; LastEvaluatedKey?: Item }>(
    connection,
    new QueryCommand({
      TableName: table,
      ...(index === undefined ? { ConsistentRead: true } : { IndexName: index }),
      KeyConditionExpression: `#partition = :partition${bounds}`,
      ExpressionAttributeNames: { "#partition": partition.name, ...(bounds === "" ? {} : { "#sort": sort }) },
      ExpressionAttributeValues: valuesOf({ ":partition": partition.value, ":from": from, ":through": through }),
      ...(afterKey === undefined ? {} : { ExclusiveStartKey: valuesOf(afterKey) }),
      Limit: limit,
    }),
    budget,
    `table "${table}"`,
    "query",
  );
  return { items: (answer.Items ?? []).map((item) => unmarshall(item)), done: answer.LastEvaluatedKey === undefined };
};
