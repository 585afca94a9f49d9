/** What every measurement works on: a local engine with a control table, a table for results, and 10,000 carts. */
import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { BatchWriteItemCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { createControlTable, dynamoStore, type Logger, type RunDeps, systemClock, type Write } from "cronfence";
import { createTable, localClientConfig, startEngine } from "cronfence/testing";
import { pino } from "pino";
import { meteredClient } from "./metered-client.ts";

export interface Scene {
  readonly endpoint: string;
  /** As a user would make it. */
  readonly client: DynamoDBClient;
  readonly metered: DynamoDBClient;
  /** A name that no other measurement uses, known to the control table. */
  jobName(): Promise<string>;
  stop(): Promise<void>;
}

export const controlTable = "bench-control";
export const resultsTable = "bench-results";
export const cartsTable = "bench-carts";
export const cartsIndex = "byExpiry";
export const carts = 10_000;

/** @param filled without carts it is open at once */
export const openScene = async ({ filled = true } = {}): Promise<Scene> => {
  const engine = await startEngine();
  const client = plainClient(engine.endpoint);
  const metered = meteredClient(engine.endpoint);
  await createControlTable(client, controlTable);
  await createTable(client, { name: resultsTable, key: { hash: "id" } });
  await createTable(client, {
    name: cartsTable,
    key: { hash: "id" },
    indexes: { [cartsIndex]: { hash: "shop", range: "expiresAtId" } },
  });
  if (filled) await fillCarts(client);
  const store = dynamoStore({ client, table: controlTable });
  return {
    endpoint: engine.endpoint,
    client,
    metered,
    jobName: async () => {
      const name = `bench-${randomUUID()}`;
      const now = systemClock.now();
      await store.create(name, now, { clock: systemClock, random: Math.random, until: now + 10_000 });
      return name;
    },
    stop: async () => {
      client.destroy();
      metered.destroy();
      await engine.stop();
    },
  };
};

export const plainClient = (endpoint: string): DynamoDBClient =>
  new DynamoDBClient({ ...localClientConfig(endpoint), maxAttempts: 1 });

/** As if the server were elsewhere: each request takes `ms` longer. */
export const distantClient = (endpoint: string, ms: number): DynamoDBClient => {
  const client = plainClient(endpoint);
  client.middlewareStack.add(
    (next) => async (args) => {
      await wait(ms);
      return next(args);
    },
    { step: "finalizeRequest", priority: "low" },
  );
  return client;
};

/** Logs as in production, to where it costs no terminal. */
const log: Logger = pino({ level: "info" }, pino.destination({ dest: "/dev/null", sync: false }));

export const depsOn = (client: DynamoDBClient, options: { readonly requestTimeoutMs?: number } = {}): RunDeps => ({
  store: dynamoStore({ client, table: controlTable, ...options }),
  log,
});

export const scheduled = { kind: "schedule", tick: Date.parse("2026-01-01T00:00:00Z") } as const;

/** Ten writes of ten items, as a small job makes them. */
export const tenWrites = (): Write[] =>
  Array.from({ length: 10 }, (_, i) => ({
    Put: { TableName: resultsTable, Item: { id: `result-${i}`, total: i * 100, at: "2026-01-01T00:00:00.000Z" } },
  }));

const fillCarts = async (client: DynamoDBClient): Promise<void> => {
  const all = Array.from({ length: carts }, (_, i) => {
    const id = `cart-${String(i).padStart(5, "0")}`;
    const expiresAt = new Date(Date.parse("2025-12-01T00:00:00Z") + i * 1_000).toISOString();
    const lines = Array.from({ length: 3 }, (_, line) => ({
      sku: `sku-${i}-${line}`,
      quantity: line + 1,
      cents: 1_999,
    }));
    return {
      id,
      shop: "eu",
      expiresAtId: `${expiresAt}#${id}`,
      customer: `customer-${i % 997}`,
      status: "open",
      lines,
    };
  });
  for (let from = 0; from < carts; from += 25) {
    const batch = all.slice(from, from + 25).map((Item) => ({ PutRequest: { Item: marshall(Item) } }));
    await client.send(new BatchWriteItemCommand({ RequestItems: { [cartsTable]: batch } }));
  }
};
