/** One look of a watchdog at many jobs, in a process of its own, so that its peak memory is its own. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { dynamoStore, type Logger, runJob } from "cronfence";
import { localClientConfig } from "cronfence/testing";
import { type WatchReport, watchdog } from "cronfence/watchdog";
import { lookAt, watchedJob } from "./watched-jobs.ts";

export interface LookResult {
  readonly wallMs: number;
  readonly requests: number;
  readonly peakRssBytes: number;
  readonly report: Omit<WatchReport, "findings">;
}

const [endpoint = "", table = "", count = "0"] = process.argv.slice(2);

const log: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => log };
const clock = { now: () => lookAt, after: () => () => {} };
const client = new DynamoDBClient({ ...localClientConfig(endpoint), maxAttempts: 1 });
let requests = 0;
client.middlewareStack.add(
  (next) => (args) => {
    requests += 1;
    return next(args);
  },
  { step: "finalizeRequest" },
);
const store = dynamoStore({ client, table, requestTimeoutMs: 5_000 });

let seen: WatchReport | undefined;
const job = watchdog({
  name: `bench-watchdog-${count}-${process.pid}`,
  // Loaded one by one, as from modules.
  jobs: function* () {
    for (let index = 0; index < Number(count); index += 1) yield () => watchedJob(index);
  },
  clock,
  store,
  metrics: "emf",
  onReport: (report) => {
    seen = report;
  },
});

const startedAt = performance.now();
const run = await runJob({ ...job, ttlMs: 60_000 }, { kind: "manual" }, { store, clock, log });
const wallMs = performance.now() - startedAt;
if (run.outcome !== "succeeded" || seen === undefined) throw new Error(`the look failed: ${JSON.stringify(run)}`);
const { findings, ...report } = seen;
const result: LookResult = { wallMs, requests, peakRssBytes: process.resourceUsage().maxRSS * 1_024, report };
process.send?.(result);
client.destroy();
