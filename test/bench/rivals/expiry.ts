/**
 * The job that all contenders do: read the carts that are due, mark each as expired and count that in its audit row, in
 * transactions of as many carts as fit. The index holds open carts only, so whoever starts anew finds what is left. The writes
 * carry no condition of their own: work that could tell that it was done before needs no lock to be done once.
 */
import { type DynamoDBClient, QueryCommand, TransactWriteItemsCommand } from "@aws-sdk/client-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import type { Write } from "cronfence";
import { createTable, dumpTable } from "cronfence/testing";
import { putAll } from "../../../src/local/put-all.ts";

export interface Cart {
  readonly id: string;
  /** Which carts are due, while it is open: the index's partition. */
  readonly dueIn?: string;
  readonly expiresAtId: string;
  readonly status: "open" | "expired";
}

export const cartsTable = "carts";
const auditTable = "cart-audit";
export const dueIndex = "byDue";
/** For what contenders keep beside: locks, idempotency records. */
export const locksTable = "locks";
export const shop = "eu";

export const createExpiryTables = async (client: DynamoDBClient): Promise<void> => {
  await createTable(client, {
    name: cartsTable,
    key: { hash: "id" },
    indexes: { [dueIndex]: { hash: "dueIn", range: "expiresAtId" } },
  });
  await createTable(client, { name: auditTable, key: { hash: "id" } });
  await createTable(client, { name: locksTable, key: { hash: "id" } });
};

/** Due since an hour ago; those with higher numbers later. */
export const putCarts = (client: DynamoDBClient, from: number, count: number): Promise<void> =>
  putAll(
    client,
    cartsTable,
    Array.from({ length: count }, (_, index): Cart & Record<string, unknown> => {
      const id = `cart-${String(from + index).padStart(6, "0")}`;
      const at = new Date(firstExpiry + from + index).toISOString();
      return { id, dueIn: shop, expiresAtId: `${at}#${id}`, status: "open" };
    }),
  );

const firstExpiry = Date.now() - 3_600_000;

/** @param fence kept on the cart, and refused where the cart has a greater one */
export const writesFor = ({ id }: Pick<Cart, "id">, fence?: number): Write[] => [
  {
    Update: {
      TableName: cartsTable,
      Key: { id },
      UpdateExpression: `SET #status = :expired${fence === undefined ? "" : ", fence = :fence"} REMOVE dueIn`,
      ...(fence === undefined ? {} : { ConditionExpression: "attribute_not_exists(fence) OR fence <= :fence" }),
      ExpressionAttributeNames: { "#status": "status" },
      ExpressionAttributeValues: { ":expired": "expired", ...(fence === undefined ? {} : { ":fence": fence }) },
    },
  },
  {
    Update: {
      TableName: auditTable,
      Key: { id },
      UpdateExpression: "ADD times :one",
      ExpressionAttributeValues: { ":one": 1 },
    },
  },
];

/** All that are due, by hand. */
export const readDue = async (client: DynamoDBClient): Promise<Cart[]> => {
  const carts: Cart[] = [];
  let from: Record<string, never> | undefined;
  do {
    const page = await client.send(
      new QueryCommand({
        TableName: cartsTable,
        IndexName: dueIndex,
        KeyConditionExpression: "dueIn = :shop AND expiresAtId <= :now",
        ExpressionAttributeValues: marshall({ ":shop": shop, ":now": new Date().toISOString() }),
        ...(from === undefined ? {} : { ExclusiveStartKey: from }),
      }),
    );
    carts.push(...(page.Items ?? []).map((item) => unmarshall(item) as Cart));
    from = page.LastEvaluatedKey as typeof from;
  } while (from !== undefined);
  return carts;
};

/** Transactions as large as they may be, one after the other, by hand. */
export const expireAll = async (
  client: DynamoDBClient,
  carts: readonly Cart[],
  { fence, goesOn = () => true }: { readonly fence?: number; readonly goesOn?: () => boolean } = {},
): Promise<void> => {
  for (let from = 0; from < carts.length; from += cartsPerTransaction) {
    if (!goesOn()) throw new Error("the lock was lost");
    await expire(client, carts.slice(from, from + cartsPerTransaction), fence);
  }
};

const cartsPerTransaction = 50;

/** The SDK's client adds a request token, and keeps it over its own retries. */
export const expire = async (client: DynamoDBClient, carts: readonly Cart[], fence?: number): Promise<void> => {
  const TransactItems = carts
    .flatMap((cart) => writesFor(cart, fence))
    .map(({ Update }) => {
      const { Key, ExpressionAttributeValues, ...rest } = Update as NonNullable<Write["Update"]>;
      return {
        Update: { ...rest, Key: marshall(Key), ExpressionAttributeValues: marshall(ExpressionAttributeValues) },
      };
    });
  await client.send(new TransactWriteItemsCommand({ TransactItems } as never));
};

export interface Effects {
  /** Carts that are still open. */
  readonly left: number;
  /** How many times too often carts expired. */
  readonly doubled: number;
}

export const readEffects = async (client: DynamoDBClient): Promise<Effects> => {
  const [carts, audit] = await Promise.all([dumpTable(client, cartsTable), dumpTable(client, auditTable)]);
  return {
    left: carts.filter(({ status }) => status === "open").length,
    doubled: audit.reduce((sum, { times }) => sum + (times as number) - 1, 0),
  };
};
