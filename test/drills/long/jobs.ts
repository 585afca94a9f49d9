/**
 * The jobs of a long drill, one of each shape, due every minute, and what they leave behind. Each adds 1 to a row that only
 * its item's work writes, so a row tells how often that was done.
 *
 * - `expire-carts`: the main job, while carts are being put in. An overlapping tick is queued.
 * - `tick-lines`: each tick writes more than one transaction holds. An overlapping tick is left to the next run.
 * - `steps`: counts on from its watermark in commits of its own. An overlapping tick fences the holder out.
 */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { cron, defineJob, type Job, type Write } from "cronfence";
import { createTable } from "cronfence/testing";
import { job as mainJob } from "../../../handlers/expire-carts.ts";
import { createCartTables } from "../carts.ts";

/** In real time, as a network takes it. */
export const requestTimeoutMs = 400;
export const lease = { ttlMs: 60_000, skewMs: 10_000 };
const timeoutMs = 4 * 60_000;
const everyMinute = cron("* * * * *");

/** Due more often than a run may take, which a definition is warned of: here overlaps are wanted. */
const oftenDue = (job: Job): Job => ({ ...job, ...lease, timeoutMs, schedule: everyMinute });

export const cartsJob = oftenDue(mainJob);

export const linesPerTick = 120;
const linesTable = "tick-lines";
const once = (TableName: string, id: string): Write => ({
  Update: { TableName, Key: { id }, UpdateExpression: "ADD times :one", ExpressionAttributeValues: { ":one": 1 } },
});

export const linesJob = oftenDue(
  defineJob({
    name: "tick-lines",
    schedule: everyMinute,
    timeout: "50s",
    overlap: "skip",
    tick: ({ id }) => Array.from({ length: linesPerTick }, (_, line) => once(linesTable, lineId(id, line))),
  }),
);

export const lineId = (tick: string, line: number): string => `${tick}#${String(line).padStart(3, "0")}`;

const stepsTable = "steps";
const stepsPerCommit = 5;
const commitsPerRun = 6;

export const stepsJob = oftenDue(
  defineJob({
    name: "steps",
    schedule: everyMinute,
    timeout: "50s",
    overlap: "takeover",
    run: async (run) => {
      for (let commit = 0; commit < commitsPerRun; commit += 1) {
        const from = Number(run.watermark ?? 0);
        await run.commit(stepsAfter(from), { watermark: from + stepsPerCommit });
      }
      const from = Number(run.watermark ?? 0);
      run.commitAtEnd(stepsAfter(from), { watermark: from + stepsPerCommit });
    },
  }),
);

const stepsAfter = (from: number): Write[] =>
  Array.from({ length: stepsPerCommit }, (_, index) => once(stepsTable, stepId(from + index + 1)));

export const stepId = (step: number): string => `step-${String(step).padStart(7, "0")}`;

export const drilledJobs = [cartsJob, linesJob, stepsJob] as const;
export const auditTables = { [cartsJob.name]: "cart-audit", [linesJob.name]: linesTable, [stepsJob.name]: stepsTable };

export const createDrilledTables = async (client: DynamoDBClient): Promise<void> => {
  await createCartTables(client);
  for (const name of [linesTable, stepsTable]) await createTable(client, { name, key: { hash: "id" } });
};
