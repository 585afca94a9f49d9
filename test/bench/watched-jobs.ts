/** Many jobs for a watchdog to look at: schedules of all kinds in several zones, and control items as runs leave them. */
import { BatchWriteItemCommand, type DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { cron, defineJob, type Job } from "cronfence";

const expressions = ["*/5 * * * *", "7 * * * *", "30 2 * * *", "15 2 * * 1-5", "45 3 * * 0", "10 4 1 * *"];
const zones = ["UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata"];

/** The instant of the look. */
export const lookAt = Date.parse("2026-03-10T12:02:30Z");
const clock = { now: () => lookAt, after: () => () => {} };

export const watchedJob = (index: number): Job =>
  defineJob(
    {
      name: `bench-watched-${index}`,
      schedule: cron(expressions[index % expressions.length] as string, {
        zone: zones[index % zones.length] as string,
      }),
      timeout: "4m",
      jitter: "30s",
      exact: true,
      run: () => {},
    },
    { clock },
  );

/** Writes the control items of the first `count` jobs: all is well with them, but every hundredth is overdue. */
export const fillControlItems = async (client: DynamoDBClient, table: string, count: number): Promise<void> => {
  for (let from = 0; from < count; from += 25) {
    const requests = Array.from({ length: Math.min(25, count - from) }, (_, offset) => ({
      PutRequest: { Item: controlItem(from + offset) },
    }));
    const { UnprocessedItems = {} } = await client.send(
      new BatchWriteItemCommand({ RequestItems: { [table]: requests } }),
    );
    if (Object.keys(UnprocessedItems).length > 0) throw new Error("the engine left items unprocessed");
  }
};

const dayMs = 86_400_000;

const controlItem = (index: number) => {
  const { name, schedule } = watchedJob(index);
  const tick = schedule?.previous(index % 100 === 99 ? lookAt - 40 * dayMs : lookAt) ?? 0;
  return marshall({
    pk: `job#${name}`,
    sk: "control",
    fence: 1_767_225_600 + index,
    since: lookAt - 90 * dayMs,
    tick,
    unfinished: 0,
    failedTicks: 0,
    lastSuccessAt: tick + 30_000,
    nextTick: schedule?.next(tick + 30_000) ?? 0,
    watermark: JSON.stringify(`${new Date(tick).toISOString()}#item-${index}`),
    recentOwners: Array.from({ length: 8 }, (_, owner) => `2f1c2f3e-1111-4222-8333-00000000000${owner}`),
    recent: Array.from({ length: 20 }, (_, run) => [1_000 + run, 250]),
  });
};
