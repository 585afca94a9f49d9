import { randomUUID } from "node:crypto";
import { BatchWriteItemCommand, DynamoDBClient, QueryCommand } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { createTable, dumpTable, type Engine, type Item, localClientConfig, startEngine } from "cronfence/testing";
import { afterAll, beforeAll, expect, it } from "vitest";

let engine: Engine;
let client: DynamoDBClient;
beforeAll(async () => {
  engine = await startEngine();
  client = new DynamoDBClient(localClientConfig(engine.endpoint));
});
afterAll(async () => {
  client.destroy();
  await engine.stop();
});

const put = async (table: string, items: Item[]) => {
  for (let i = 0; i < items.length; i += 25) {
    const writes = items.slice(i, i + 25).map((item) => ({ PutRequest: { Item: marshall(item) } }));
    await client.send(new BatchWriteItemCommand({ RequestItems: { [table]: writes } }));
  }
};

it("creates a table with indexes, its keys being strings unless said otherwise", async () => {
  const name = `carts-${randomUUID()}`;
  await createTable(client, {
    name,
    key: { hash: "id", range: "version", types: { version: "N" } },
    indexes: {
      byExpiry: { hash: "shop", range: "expiresAt", types: { expiresAt: "N" } },
      byVersion: { hash: "version" },
    },
  });
  await put(name, [
    { id: "a", version: 10, shop: "eu", expiresAt: 2, note: "whole items" },
    { id: "a", version: 9, shop: "eu", expiresAt: 1 },
  ]);
  const { Items } = await client.send(
    new QueryCommand({
      TableName: name,
      IndexName: "byExpiry",
      KeyConditionExpression: "shop = :eu AND expiresAt > :t",
      ExpressionAttributeValues: marshall({ ":eu": "eu", ":t": 1 }),
    }),
  );
  expect(Items?.map(({ note }) => note)).toEqual([{ S: "whole items" }]);
});

it("dumps items as native values, sorted by hash and then by range, numbers as numbers", async () => {
  const name = `sorted-${randomUUID()}`;
  await createTable(engine.endpoint, { name, key: { hash: "id", range: "n", types: { n: "N" } } });
  await put(name, [
    { id: "b", n: 1 },
    { id: "a", n: 10, tags: ["x"], deep: { yes: true } },
    { id: "a", n: 9 },
  ]);
  expect(await dumpTable(engine.endpoint, name)).toEqual([
    { id: "a", n: 9 },
    { id: "a", n: 10, tags: ["x"], deep: { yes: true } },
    { id: "b", n: 1 },
  ]);
});

it("dumps more than one page", async () => {
  const name = `pages-${randomUUID()}`;
  await createTable(client, { name, key: { hash: "id" } });
  const items = Array.from({ length: 30 }, (_, i) => ({
    id: `item-${String(i).padStart(2, "0")}`,
    fill: "x".repeat(90_000),
  }));
  await put(name, items);
  expect(await dumpTable(client, name)).toEqual(items);
});
