/** Reads a job's ledger, and lists its runs, in a process of its own, so that its peak memory is its own. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { dynamoStore } from "cronfence";
import { type LedgerCounts, listRuns, readLedger } from "cronfence/operate";
import { localClientConfig } from "cronfence/testing";
import { minutelyJob, yearEnd } from "./minutely-history.ts";

export interface HistoryResult {
  readonly ledgerMs: number;
  readonly runsMs: number;
  readonly peakRssBytes: number;
  readonly counts: LedgerCounts;
  readonly runs: number;
}

const [endpoint = "", table = "", from = "0"] = process.argv.slice(2);

const client = new DynamoDBClient({ ...localClientConfig(endpoint), maxAttempts: 1 });
const clock = { now: () => yearEnd + 30_000, after: () => () => {} };
const deps = { store: dynamoStore({ client, table, requestTimeoutMs: 5_000 }), clock };

const startedAt = performance.now();
const ledger = readLedger(minutelyJob, { from: Number(from), to: yearEnd }, deps);
for await (const _ of ledger);
const readAt = performance.now();
let runs = 0;
for await (const { startedAt: began } of listRuns(minutelyJob.name, {}, deps)) {
  if (began < Number(from)) break;
  runs += 1;
}
const result: HistoryResult = {
  ledgerMs: readAt - startedAt,
  runsMs: performance.now() - readAt,
  peakRssBytes: process.resourceUsage().maxRSS * 1_024,
  counts: ledger.counts,
  runs,
};
process.send?.(result);
client.destroy();
