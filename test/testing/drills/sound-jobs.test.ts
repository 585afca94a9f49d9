/** Jobs that do nothing wrong stand all their drills, whatever their options: a drill that cries wolf is switched off. */
import { DynamoDBClient, GetItemCommand } from "@aws-sdk/client-dynamodb";
import { cron, defineJob, type Job, type JobOptions, rate, type Write } from "cronfence";
import { dueItems, fromAsyncIterable, queryAfter } from "cronfence/sources";
import { type DrillOptions, drills } from "cronfence/testing";
import { describe, expect, it } from "vitest";

const tables = [{ name: "results", key: { hash: "id" } }] as const;
const base = { name: "sound", schedule: cron("*/10 * * * *"), timeout: "5m" } as const;
const add = (id: string): Write => ({
  Update: {
    TableName: "results",
    Key: { id },
    UpdateExpression: "ADD times :one",
    ExpressionAttributeValues: { ":one": 1 },
  },
});
const numbers = (count: number) =>
  fromAsyncIterable<number, number>({
    name: "numbers",
    items: (after) => Array.from({ length: count }, (_, at) => at + 1).filter((number) => number > (after ?? 0)),
    cursor: (number) => number,
    pageSize: 3,
  });

const ticking = (more: Partial<JobOptions> & { catchUp?: "all" | "latest" | "none"; maxTicks?: number }): Job =>
  defineJob({ ...base, ...more, tick: (tick) => [add(tick.id)] });

const clockChanges = ["spring clock change", "autumn clock change"] as const;

/** A client of the job's own. */
const client = new DynamoDBClient({});

const jobs: Record<string, { readonly job: Job } & DrillOptions> = {
  "a tick that is taken over": { job: ticking({ overlap: "takeover" }) },
  "ticks that are skipped while another runs": { job: ticking({ overlap: "skip" }), ticks: 3 },
  "only the newest tick": { job: ticking({ catchUp: "latest" }), ticks: 3 },
  "only ticks that are delivered": { job: ticking({ catchUp: "none" }), ticks: 3 },
  "ticks that must start in time": { job: ticking({ startWithin: "90s" }) },
  "one tick a run": { job: ticking({ maxTicks: 1 }), ticks: 3 },
  "a lease that outlasts the platform's retries": { job: ticking({ ttl: "6m", timeout: "9m" }) },
  "a tick of more than one transaction": {
    job: defineJob({
      ...base,
      tick: (tick) => ({ writes: Array.from({ length: 130 }, (_, at) => add(`${tick.id} ${at}`)), watermark: tick.id }),
    }),
  },
  "a source that reads and asks by itself": {
    job: defineJob({
      ...base,
      source: numbers(8),
      concurrency: 4,
      process: async (number) => {
        await client.send(new GetItemCommand({ TableName: "results", Key: { id: { S: "settings" } } }));
        return [add(String(number))];
      },
    }),
  },
  "a source that goes on at once": {
    job: defineJob({
      ...base,
      source: numbers(5),
      limit: { items: 2 },
      onBacklog: "continue",
      process: (n) => [add(`${n}`)],
    }),
  },
  "due items, guarded": {
    job: defineJob({
      ...base,
      schedule: rate("10 minutes"),
      destructive: { max: 10, share: { of: () => 20, atMost: 0.5 } },
      source: dueItems<{ id: string }>({
        table: "results",
        index: "byDue",
        partition: { queue: "a" },
        sort: "due",
        time: "none",
      }),
      process: ({ id }) => [{ Delete: { TableName: "results", Key: { id } } }, add(`done ${id}`)],
    }),
    tables: [{ name: "results", key: { hash: "id" }, indexes: { byDue: { hash: "queue", range: "due" } } }],
    seed: () => ({ results: ["a", "b", "c"].map((id) => ({ id, queue: "a", due: id })) }),
  },
  "a source of what is due by now, to the millisecond": {
    job: defineJob({
      ...base,
      timeout: "9m",
      source: queryAfter<{ id: string }>({
        table: "results",
        index: "byDue",
        partition: { queue: "a" },
        sort: "due",
      }),
      process: ({ id }) => [add(id)],
    }),
    tables: [{ name: "results", key: { hash: "id" }, indexes: { byDue: { hash: "queue", range: "due" } } }],
    seed: (now) => ({
      results: [-2, -1, 600_000, 600_001, 600_002].map((ms) => ({
        id: `item ${ms}`,
        queue: "a",
        due: new Date(now + ms).toISOString(),
      })),
    }),
    only: ["timeout", "paused holder"],
  },
  "a tick in the hour that the clocks skip or repeat": {
    job: ticking({ schedule: cron("30 2 * * *", { zone: "Europe/Berlin" }) }),
    only: clockChanges,
  },
  "a tick that isn't made up for when the clocks skip it": {
    job: ticking({ schedule: cron("30 2 * * *", { zone: "Europe/Berlin" }), catchUp: "none" }),
    only: clockChanges,
  },
  "a source in the hour that the clocks skip or repeat": {
    job: defineJob({
      ...base,
      schedule: cron("*/30 1-3 * * *", { zone: "America/New_York" }),
      source: numbers(4),
      limit: { items: 1 },
      process: (number, run) => [
        { Put: { TableName: "results", Item: { id: String(number), tick: run.tick?.id ?? null } } },
      ],
    }),
    only: clockChanges,
  },
  "a row for each run, named by its id": {
    job: defineJob({
      ...base,
      run: (run) =>
        run.commitAtEnd([{ Put: { TableName: "results", Item: { id: `run ${run.id}`, text: `by ${run.id}` } } }]),
    }),
    only: ["double trigger", "crash at every request, not applied", "crash at every request, applied"],
  },
  "a run with everything in its finish": {
    job: defineJob<number>({
      ...base,
      run: (run) => {
        if (run.watermark === undefined) run.commitAtEnd([add("all")], { watermark: 1 });
      },
    }),
  },
  "a job that runs by hand": {
    job: defineJob({ name: "sound", timeout: "5m", source: numbers(4), process: (n) => [add(`${n}`)] }),
  },
};

describe.each(Object.entries(jobs))("%s", (_, { job, ...options }) => {
  it("stands its drills", async () => {
    const failed: unknown[] = [];
    for (const { run } of drills(job, { tables, ticks: 2, points: 3, ...options }))
      await run().catch((error) => failed.push(error.message));
    expect(failed).toEqual([]);
  });
});
