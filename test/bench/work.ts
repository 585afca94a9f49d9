/**
 * Source jobs: items per second against a loop by hand that makes the same transactions, for items of several writes, and
 * the memory that a million items take. The loop is as in expiry.ts: it reads ahead, and has no lease, no watermark, no
 * limits and no record.
 */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import {
  type AttributeValue,
  BatchWriteItemCommand,
  type DynamoDBClient,
  QueryCommand,
  type TransactWriteItem,
  TransactWriteItemsCommand,
} from "@aws-sdk/client-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import { createControlTable, defineJob, type RunDeps, runJob, type Write } from "cronfence";
import { queryAfter } from "cronfence/sources";
import { createTable, startEngine } from "cronfence/testing";
import { compare } from "./compare.ts";
import type { MemoryUse } from "./million-items.ts";
import { controlTable, depsOn, plainClient } from "./scene.ts";

interface Measurement {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** Reached where the value is at most this. */
  readonly goal?: number;
}

interface Order {
  readonly id: string;
}

const orders = 9_900;
const pageSize = 1_000;
const most = 99;

export const benchWork = async (): Promise<Measurement[]> => {
  const engine = await startEngine();
  const setup = plainClient(engine.endpoint);
  try {
    await createControlTable(setup, controlTable);
    await createTable(setup, { name: "lines", key: { hash: "id" } });
    const measurements: Measurement[] = [];
    for (const writes of [1, 3, 10]) measurements.push(...(await measure(engine.endpoint, setup, writes)));
    return [...measurements, ...(await measureMemory())];
  } finally {
    setup.destroy();
    await engine.stop();
  }
};

/** As many items as make about the same number of writes. */
const measure = async (endpoint: string, setup: DynamoDBClient, writes: number): Promise<Measurement[]> => {
  const items = Math.floor(orders / writes);
  const table = `orders-of-${writes}`;
  await createTable(setup, { name: table, key: { hash: "shop", range: "id" } });
  await fill(setup, table, items);
  // A client each, so that neither warms the other's connections.
  const ours = plainClient(endpoint);
  const theirs = plainClient(endpoint);
  const { ratio, oursMs, theirsMs } = await compare(
    () => byJob(depsOn(ours), table, items, writes),
    () => byHand(theirs, table, items, writes),
    { rounds: 10, warmUps: 2 },
  );
  ours.destroy();
  theirs.destroy();
  const each = `queryAfter, ${writes} ${writes === 1 ? "write" : "writes"} an item`;
  return [
    { name: `${each}: of the time of a loop by hand`, value: ratio, unit: "ratio", goal: 1.05 },
    { name: each, value: (items * 1_000) / oursMs, unit: "items per second" },
    { name: `a loop by hand, ${each.split(", ")[1]}`, value: (items * 1_000) / theirsMs, unit: "items per second" },
  ];
};

const linesOf = ({ id }: Order, writes: number): Write[] =>
  Array.from({ length: writes }, (_, line) => ({
    Update: {
      TableName: "lines",
      Key: { id: `${id}#${line}` },
      UpdateExpression: "SET #status = :sent, sentAt = :at",
      ExpressionAttributeNames: { "#status": "status" },
      ExpressionAttributeValues: { ":sent": "sent", ":at": "2026-01-01T00:00:00.000Z" },
    },
  }));

const byJob = async (deps: RunDeps, table: string, items: number, writes: number): Promise<void> => {
  const job = defineJob({
    // A job of its own each time, since a watermark would have passed everything.
    name: `bench-${randomUUID()}`,
    timeout: "5m",
    source: queryAfter<Order>({ table, partition: { shop: "eu" }, sort: "id", time: "none", pageSize }),
    process: (order) => linesOf(order, writes),
  });
  const report = await runJob(job, { kind: "manual" }, deps);
  if (report.outcome !== "succeeded" || report.items !== items) throw new Error(`the job: ${JSON.stringify(report)}`);
};

const byHand = async (client: DynamoDBClient, table: string, items: number, writes: number): Promise<void> => {
  let done = 0;
  let open: Promise<unknown> = Promise.resolve();
  let actions: TransactWriteItem[] = [];
  const send = async () => {
    await open;
    open = client.send(new TransactWriteItemsCommand({ ClientRequestToken: randomUUID(), TransactItems: actions }));
    actions = [];
  };
  const readPage = async (after: string | undefined) => {
    const { Items = [], LastEvaluatedKey } = await client.send(
      new QueryCommand({
        TableName: table,
        ConsistentRead: true,
        KeyConditionExpression: after === undefined ? "#shop = :shop" : "#shop = :shop AND #id > :after",
        ExpressionAttributeNames: { "#shop": "shop", ...(after === undefined ? {} : { "#id": "id" }) },
        ExpressionAttributeValues: marshall({ ":shop": "eu", ":after": after }, { removeUndefinedValues: true }),
        Limit: pageSize,
      }),
    );
    return { items: Items.map((item) => unmarshall(item) as Order), done: LastEvaluatedKey === undefined };
  };
  let page = await readPage(undefined);
  for (;;) {
    const next = page.done || page.items.length === 0 ? undefined : readPage(page.items.at(-1)?.id);
    for (const order of page.items) {
      const lines = linesOf(order, writes);
      if (actions.length + lines.length > most) await send();
      for (const line of lines) actions.push(marshalled(line));
      done += 1;
    }
    if (next === undefined) break;
    page = await next;
  }
  if (actions.length > 0) await send();
  await open;
  if (done !== items) throw new Error(`the loop did ${done} of ${items} items`);
};

const marshalled = ({ Update }: Write): TransactWriteItem => {
  const { Key, ExpressionAttributeValues, ...rest } = Update as NonNullable<Write["Update"]>;
  return {
    Update: {
      ...rest,
      Key: marshall(Key) as Record<string, AttributeValue>,
      ExpressionAttributeValues: marshall(ExpressionAttributeValues) as Record<string, AttributeValue>,
    },
  } as TransactWriteItem;
};

const fill = async (client: DynamoDBClient, table: string, items: number): Promise<void> => {
  for (let from = 0; from < items; from += 25) {
    const batch = Array.from({ length: Math.min(25, items - from) }, (_, at) => ({
      PutRequest: {
        Item: marshall({
          shop: "eu",
          id: `order-${String(from + at).padStart(6, "0")}`,
          customer: `customer-${at}`,
          cents: 1_999,
          status: "open",
        }),
      },
    }));
    await client.send(new BatchWriteItemCommand({ RequestItems: { [table]: batch } }));
  }
};

/** In a process of its own, whose memory is nobody else's. */
const measureMemory = async (): Promise<Measurement[]> => {
  const program = fileURLToPath(new URL("./million-items.ts", import.meta.url));
  // With the little that a small function has: otherwise the collector puts its work off, and memory grows by that.
  const limits = ["--max-old-space-size=64", "--max-semi-space-size=4"];
  const { stdout } = await promisify(execFile)(process.execPath, [...limits, "--import", "tsx", program]);
  const { items, firstBytes, lastBytes, ms } = JSON.parse(stdout) as MemoryUse;
  const amount = items.toLocaleString("en");
  return [
    {
      name: `memory over ${amount} items: most in the last tenth of most in the first`,
      value: lastBytes / firstBytes,
      unit: "ratio",
      goal: 1.1,
    },
    { name: `memory over ${amount} items: most`, value: lastBytes / 1_048_576, unit: "MiB" },
    { name: "source jobs without a database", value: (items * 1_000) / ms, unit: "items per second" },
  ];
};
