/** Reading users' tables in the order of a sort key, for sources. */
import { QueryCommand, ScanCommand } from "@aws-sdk/client-dynamodb";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import { StoreUnavailableError } from "../errors.ts";
import { type Connection, learnKeys, readUntilKnown } from "./connection.ts";
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

/** One page of a table's segment, in DynamoDB's own order. */
export interface ScanRequest {
  readonly table: string;
  readonly segment: number;
  readonly segments: number;
  readonly afterKey?: Key;
  readonly limit: number;
}

export interface ScanPage extends Page {
  /** The table's key attributes. */
  readonly key: readonly string[];
}

export interface TableReader {
  query(request: PageRequest, budget: Budget): Promise<Page>;
  scan(request: ScanRequest, budget: Budget): Promise<ScanPage>;
  /** How many items a query would give, looking at no more than one page of DynamoDB's (1 MB). */
  count(
    request: Omit<PageRequest, "limit">,
    budget: Budget,
  ): Promise<{ readonly count: number; readonly more: boolean }>;
}

export const tableReader = (connection: Connection): TableReader => ({
  query: async (request, budget) => {
    if (isEmpty(request)) return { items: [], done: true };
    const { Items, LastEvaluatedKey } = await query(connection, request, { Limit: request.limit }, budget);
    return { items: (Items ?? []).map((item) => unmarshall(item)), done: LastEvaluatedKey === undefined };
  },
  count: async (request, budget) => {
    if (isEmpty(request)) return { count: 0, more: false };
    const { Count, LastEvaluatedKey } = await query(connection, request, { Select: "COUNT" }, budget);
    return { count: Count ?? 0, more: LastEvaluatedKey !== undefined };
  },
  scan: async ({ table, segment, segments, afterKey, limit }, budget) => {
    await learnKeys(connection, [table]);
    const key = connection.knownKeys.get(table);
    if (key === undefined) {
      throw new StoreUnavailableError(`table "${table}": its key can't be read (dynamodb:DescribeTable)`, "scan");
    }
    const answer = await readUntilKnown<Answer>(
      connection,
      new ScanCommand({
        TableName: table,
        ...(segments === 1 ? {} : { Segment: segment, TotalSegments: segments }),
        ...(afterKey === undefined ? {} : { ExclusiveStartKey: valuesOf(afterKey) }),
        ConsistentRead: true,
        Limit: limit,
      }),
      budget,
      `table "${table}"`,
      "scan",
    );
    return {
      items: (answer.Items ?? []).map((item) => unmarshall(item)),
      done: answer.LastEvaluatedKey === undefined,
      key,
    };
  },
});

interface Answer {
  readonly Items?: Item[];
  readonly Count?: number;
  readonly LastEvaluatedKey?: Item;
}

/** BETWEEN wants its bounds in order. */
const isEmpty = ({ from, through }: Omit<PageRequest, "limit">): boolean =>
  from !== undefined && through !== undefined && from > through;

const query = (
  connection: Connection,
  request: Omit<PageRequest, "limit">,
  more: { readonly Limit: number } | { readonly Select: "COUNT" },
  budget: Budget,
): Promise<Answer> => {
  const { table, index, partition, sort, from, through, afterKey } = request;
  const bounds =
    from !== undefined && through !== undefined
      ? " AND #sort BETWEEN :from AND :through"
      : from !== undefined
        ? " AND #sort >= :from"
        : through !== undefined
          ? " AND #sort <= :through"
          : "";
  return readUntilKnown<Answer>(
    connection,
    new QueryCommand({
      TableName: table,
      ...(index === undefined ? { ConsistentRead: true } : { IndexName: index }),
      KeyConditionExpression: `#partition = :partition${bounds}`,
      ExpressionAttributeNames: { "#partition": partition.name, ...(bounds === "" ? {} : { "#sort": sort }) },
      ExpressionAttributeValues: valuesOf({ ":partition": partition.value, ":from": from, ":through": through }),
      ...(afterKey === undefined ? {} : { ExclusiveStartKey: valuesOf(afterKey) }),
      ...more,
    }),
    budget,
    `table "${table}"`,
    "query",
  );
};
