/** A year of a job that is due every minute: its run records, with an hour's outage a week, and its control item. */
import { BatchWriteItemCommand, type DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { cron, defineJob, type Job, type RunRecord } from "cronfence";
import { controlKey, type Item, valuesOf, writeRecord } from "../../src/control/items.ts";

export const minuteMs = 60_000;
export const yearMinutes = 365 * 1_440;
export const yearEnd = Date.parse("2026-03-10T12:00:00Z");
export const yearStart = yearEnd - (yearMinutes - 1) * minuteMs;

const name = "bench-minutely";
const clock = { now: () => yearEnd, after: () => () => {} };

export const minutelyJob: Job = defineJob(
  { name, schedule: cron("* * * * *"), timeout: "50s", exact: true, run: () => {} },
  { clock },
);

/** Minutes 0 to 59 of every week weren't delivered; the run of minute 60 made up for them. */
const weekMinutes = 7 * 1_440;
const outageMinutes = 60;

/** How many ticks of the year a later run covered. */
export const coveredTicks = Math.ceil(yearMinutes / weekMinutes) * outageMinutes;
export const recordedRuns = yearMinutes - coveredTicks;

export const fillHistory = async (client: DynamoDBClient, table: string): Promise<void> => {
  await client.send(
    new BatchWriteItemCommand({ RequestItems: { [table]: [{ PutRequest: { Item: controlItem() } }] } }),
  );
  const records = historyOf();
  const worker = async () => {
    for (;;) {
      const requests: { PutRequest: { Item: Item } }[] = [];
      while (requests.length < 25) {
        const { value, done } = records.next();
        if (done) break;
        requests.push({ PutRequest: { Item: writeRecord(value) } });
      }
      if (requests.length === 0) return;
      const { UnprocessedItems = {} } = await client.send(
        new BatchWriteItemCommand({ RequestItems: { [table]: requests } }),
      );
      if (Object.keys(UnprocessedItems).length > 0) throw new Error("the engine left items unprocessed");
    }
  };
  await Promise.all(Array.from({ length: 4 }, worker));
};

function* historyOf(): Generator<RunRecord> {
  let owed = 0;
  for (let minute = 0; minute < yearMinutes; minute += 1) {
    if (minute % weekMinutes < outageMinutes) {
      owed += 1;
      continue;
    }
    const tick = yearStart + minute * minuteMs;
    const id = `3b7c2f3e-1111-4222-8333-${String(minute).padStart(12, "0")}`;
    yield {
      job: name,
      id,
      owner: id.slice(0, 22),
      fence: 1_741_000_000 + minute,
      outcome: "succeeded",
      trigger: "schedule",
      requestId: id,
      startedAt: tick + 2_000,
      endedAt: tick + 9_000,
      ticks: { from: tick - owed * minuteMs, through: tick, count: owed + 1 },
      completed: tick,
      items: 120,
      commits: 2,
      watermarkBefore: new Date(tick - minuteMs).toISOString(),
      watermarkAfter: new Date(tick).toISOString(),
      nextTick: tick + minuteMs,
    };
    owed = 0;
  }
}

const controlItem = (): Item => ({
  ...controlKey(name),
  ...valuesOf({
    fence: 1_741_000_000 + yearMinutes,
    since: yearStart - 1,
    tick: yearEnd,
    unfinished: 0,
    failedTicks: 0,
    lastSuccessAt: yearEnd + 9_000,
    nextTick: yearEnd + minuteMs,
  }),
});
