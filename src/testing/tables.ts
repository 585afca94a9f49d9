/**
 * Users' tables on a local engine: create one in a line, and read a whole one for comparisons. Not for real tables:
 * everything is on demand, every index has all attributes, and a dump reads everything.
 */
import {
  CreateTableCommand,
  DescribeTableCommand,
  DynamoDBClient,
  ScanCommand,
  type ScanCommandInput,
  waitUntilTableExists,
} from "@aws-sdk/client-dynamodb";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import { localClientConfig } from "../local/engine.ts";

/** The key of a table or index, by attribute names. */
export interface TableKey {
  hash: string;
  range?: string;
  /** The types of key attributes that aren't strings. */
  types?: Record<string, "S" | "N" | "B">;
}

/** A table to create. */
export interface TableDefinition {
  name: string;
  key: TableKey;
  /** Global secondary indexes by name. */
  indexes?: Record<string, TableKey>;
}

/** An item as native JavaScript values. */
export type Item = Record<string, unknown>;

/** Creates a table on demand and resolves when it can be used. Takes a client, or the endpoint of a local engine. */
export const createTable = (
  where: DynamoDBClient | string,
  { name, key, indexes = {} }: TableDefinition,
): Promise<void> =>
  withClient(where, async (client) => {
    const keys = [key, ...Object.values(indexes)];
    const types = Object.assign({}, ...keys.map((each) => each.types)) as NonNullable<TableKey["types"]>;
    const names = new Set(keys.flatMap(attributes));
    const global = Object.entries(indexes).map(([IndexName, indexKey]) => ({
      IndexName,
      KeySchema: schema(indexKey),
      Projection: { ProjectionType: "ALL" as const },
    }));
    const { TableDescription } = await client.send(
      new CreateTableCommand({
        TableName: name,
        BillingMode: "PAY_PER_REQUEST",
        KeySchema: schema(key),
        AttributeDefinitions: [...names].map((AttributeName) => ({
          AttributeName,
          AttributeType: types[AttributeName] ?? "S",
        })),
        ...(global.length > 0 && { GlobalSecondaryIndexes: global }),
      }),
    );
    if (TableDescription?.TableStatus === "ACTIVE") return;
    await waitUntilTableExists({ client, maxWaitTime: 60, minDelay: 1, maxDelay: 2 }, { TableName: name });
  });

/** All items of a table, read consistently, sorted by their key so that two dumps can be compared. */
export const dumpTable = (where: DynamoDBClient | string, name: string): Promise<Item[]> =>
  withClient(where, async (client) => {
    const { Table } = await client.send(new DescribeTableCommand({ TableName: name }));
    const keys = (Table?.KeySchema ?? []).map(({ AttributeName }) => AttributeName!);
    const items: Item[] = [];
    let from: ScanCommandInput["ExclusiveStartKey"];
    do {
      const page = await client.send(
        new ScanCommand({ TableName: name, ConsistentRead: true, ...(from && { ExclusiveStartKey: from }) }),
      );
      for (const item of page.Items ?? []) items.push(unmarshall(item));
      from = page.LastEvaluatedKey;
    } while (from);
    return items.sort((a, b) => keys.reduce((order, key) => order || compare(a[key], b[key]), 0));
  });

const withClient = async <T>(
  where: DynamoDBClient | string,
  use: (client: DynamoDBClient) => Promise<T>,
): Promise<T> => {
  if (typeof where !== "string") return use(where);
  const client = new DynamoDBClient(localClientConfig(where));
  try {
    return await use(client);
  } finally {
    client.destroy();
  }
};

const attributes = ({ hash, range }: TableKey) => (range === undefined ? [hash] : [hash, range]);

const schema = (key: TableKey) =>
  attributes(key).map((AttributeName, i) => ({
    AttributeName,
    KeyType: i === 0 ? ("HASH" as const) : ("RANGE" as const),
  }));

/** Strings and numbers by value, as DynamoDB would order them for the characters used in tests; binary as hex. */
const compare = (a: unknown, b: unknown): number => {
  const [x, y] = [a, b].map((value) => (value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value)) as [
    string,
    string,
  ];
  return x < y ? -1 : x > y ? 1 : 0;
};
