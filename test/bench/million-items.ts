/**
 * A source job over a million items that are made as they are read, on a store that accepts everything: what is left is
 * what cronfence itself takes. Prints the most memory of its first tenth and of its last, as JSON.
 */
import { setImmediate } from "node:timers/promises";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import {
  type ControlState,
  type DynamoStore,
  defineJob,
  dynamoStore,
  type Logger,
  runJob,
  systemClock,
} from "cronfence";
import type { Source } from "cronfence/sources";

export interface MemoryUse {
  readonly items: number;
  readonly firstBytes: number;
  readonly lastBytes: number;
  readonly ms: number;
}

const items = 1_000_000;
let firstBytes = 0;
let lastBytes = 0;

const counted: Source<{ id: number; text: string }> = {
  name: "numbers",
  pageSize: 1_000,
  read: async ({ after, limit }) => {
    // As a request would: what is due in between gets its turn.
    await setImmediate();
    const from = (after as number | undefined) ?? 0;
    const bytes = process.memoryUsage.rss();
    if (from <= items / 10) firstBytes = Math.max(firstBytes, bytes);
    if (from >= (items * 9) / 10) lastBytes = Math.max(lastBytes, bytes);
    const page = Array.from({ length: Math.min(limit, items - from) }, (_, at) => ({
      item: { id: from + at, text: `what is known of item ${from + at}` },
      cursor: from + at + 1,
    }));
    return { items: page, done: from + page.length >= items };
  },
};

/** Never asked for anything: nothing is sent. */
const client = new DynamoDBClient({ region: "local", credentials: { accessKeyId: "none", secretAccessKey: "none" } });
const accepting: DynamoStore = {
  ...dynamoStore({ client, table: "control" }),
  acquire: async ({ job, owner, run, now, ttlMs }) => {
    const state: ControlState = {
      job,
      fence: 1,
      owner,
      leaseUntil: now + ttlMs,
      run: { ...run, owner, seq: 0 },
      prev: [],
      recentOwners: [],
      since: now,
      unfinished: 1,
      failedTicks: 0,
      recent: [],
    };
    return { kind: "acquired", state, lease: { job, owner, fence: 1, ttlMs, run: { ...run, owner, seq: 0 } } };
  },
  commit: async (_lease, { seq }) => {
    await setImmediate();
    return { seq: seq + 1 };
  },
  renew: async () => {},
  finish: async (_lease, { record }) => ({ kind: "finished", outcome: record.outcome }),
};

const nothing = () => {};
const silent: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing, child: () => silent };

const job = defineJob({
  name: "million-items",
  timeout: "1h",
  source: counted,
  process: ({ id, text }) => [{ Put: { TableName: "results", Item: { id, text, at: "2026-01-01T00:00:00.000Z" } } }],
});
const startedAt = systemClock.now();
const report = await runJob(job, { kind: "manual" }, { store: accepting, log: silent });
if (report.outcome !== "succeeded" || report.items !== items) throw new Error(JSON.stringify(report));
const use: MemoryUse = { items, firstBytes, lastBytes, ms: systemClock.now() - startedAt };
process.stdout.write(JSON.stringify(use));
