/** One local engine per test file, with a control table and whatever else a test needs; each test takes its own job name. */
import { randomUUID } from "node:crypto";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { type Budget, type Clock, type DynamoStore, dynamoStore, type Logger, type StoreOptions } from "cronfence";
import { createTable, type FaultProxy, localClientConfig, startEngine, startFaultProxy } from "cronfence/testing";
import { afterAll, beforeAll } from "vitest";

export interface Fixture {
  readonly endpoint: string;
  readonly client: DynamoDBClient;
  /** Straight to the engine. */
  readonly store: DynamoStore;
  /** Faults in front of the engine; reset it after use. */
  readonly proxy: FaultProxy;
  /** A store behind the proxy. */
  faulty(options?: Partial<StoreOptions>): DynamoStore;
}

export const controlTable = "control-table";

/** @param tables users' tables to create, each with the hash key "id" */
export const useEngine = (...tables: readonly string[]): Fixture => {
  const fixture = {} as { -readonly [Key in keyof Fixture]: Fixture[Key] };
  let stop = async () => {};
  beforeAll(async () => {
    const engine = await startEngine();
    const proxy = await startFaultProxy(engine.endpoint);
    const client = clientFor(engine.endpoint);
    await createTable(client, { name: controlTable, key: { hash: "pk", range: "sk" } });
    for (const name of tables) await createTable(client, { name, key: { hash: "id" } });
    Object.assign(fixture, {
      endpoint: engine.endpoint,
      client,
      proxy,
      store: dynamoStore({ client, table: controlTable }),
      faulty: (options: Partial<StoreOptions> = {}) =>
        dynamoStore({ client: clientFor(proxy.endpoint), table: controlTable, ...options }),
    });
    stop = async () => {
      client.destroy();
      await proxy.stop();
      await engine.stop();
    };
  });
  afterAll(() => stop());
  return fixture;
};

export const clientFor = (endpoint: string): DynamoDBClient =>
  new DynamoDBClient({ ...localClientConfig(endpoint), maxAttempts: 1 });

/** A job name of its own for each test. */
export const freshName = (): string => `job-${randomUUID().slice(0, 8)}`;

export const silentLog: Logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => silentLog,
};

/** Time enough on `clock`, without jitter. */
export const budgetOn = (clock: Clock, ms = 60_000): Budget => ({ clock, until: clock.now() + ms, random: () => 0 });
