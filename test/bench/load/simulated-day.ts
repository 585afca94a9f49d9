/**
 * A day of many jobs, simulated: some due every five minutes, some every hour, most every six hours, and workers that take
 * their deliveries, each with a client of its own. Time goes on to the next minute with ticks when all that is due has been
 * done; one delivery in ten comes twice. Every tick leaves a row that says how often it was done.
 */
import { cron, defineJob, type Job, type RunDeps, runJob } from "cronfence";
import { createTable, dumpTable } from "cronfence/testing";
import { meteredClient, readsIn, usageOf, writesIn } from "../metered-client.ts";
import { depsOn, type Scene } from "../scene.ts";

export interface DayOptions {
  readonly jobs: number;
  readonly workers: number;
  readonly hours: number;
}

export interface Day {
  readonly ticks: number;
  /** Ticks that weren't done exactly once. */
  readonly wrong: number;
  readonly runs: number;
  /** Second deliveries that were told so. */
  readonly refused: number;
  readonly requests: number;
  readonly ms: number;
}

interface Delivery {
  readonly job: Job;
  readonly tick: number;
}

const start = Date.parse("2026-03-02T00:00:00Z");
const hourMs = 3_600_000;
const ticksTable = "load-ticks";

export const simulateDay = async (scene: Scene, { jobs, workers, hours }: DayOptions): Promise<Day> => {
  await createTable(scene.client, { name: ticksTable, key: { hash: "id" } });
  const deliveries = deliveriesOf(
    Array.from({ length: jobs }, (_, index) => jobOf(index)),
    start + hours * hourMs,
  );
  const clients = Array.from({ length: workers }, () => meteredClient(scene.endpoint));
  const outcomes = new Map<string, number>();
  const startedAt = performance.now();
  const usage = await usageOf(async () => {
    for (const [tick, due] of deliveries) {
      const queue = due.flatMap((delivery, index) => (index % 10 === 0 ? [delivery, delivery] : [delivery]));
      await Promise.all(
        clients.map(async (client) => {
          for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
            const { outcome } = await runJob(next.job, { kind: "schedule", tick }, depsAt(client, tick));
            outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
          }
        }),
      );
    }
  });
  const ms = performance.now() - startedAt;
  for (const client of clients) client.destroy();
  const rows = new Map((await dumpTable(scene.client, ticksTable)).map(({ id, times }) => [id, times]));
  const ids = [...deliveries].flatMap(([tick, due]) => due.map(({ job }) => rowId(job.name, tick)));
  const runs = outcomes.get("succeeded") ?? 0;
  return {
    ticks: ids.length,
    wrong: ids.filter((id) => rows.get(id) !== 1).length + Math.max(0, rows.size - ids.length),
    runs,
    refused: ["duplicate", "held", "queued"].reduce((sum, outcome) => sum + (outcomes.get(outcome) ?? 0), 0),
    requests: readsIn(usage) + writesIn(usage),
    ms,
  };
};

const jobOf = (index: number): Job => {
  const name = `load-${String(index).padStart(4, "0")}`;
  return defineJob({
    name,
    schedule: cron(expressionOf(index), { zone: "UTC" }),
    timeout: "1m",
    exact: true,
    tick: ({ at }) => [
      {
        Update: {
          TableName: ticksTable,
          Key: { id: rowId(name, at.getTime()) },
          UpdateExpression: "ADD times :one",
          ExpressionAttributeValues: { ":one": 1 },
        },
      },
    ],
  });
};

/** One job in a hundred is due every five minutes, nineteen every hour, the others every six hours. */
const expressionOf = (index: number): string => {
  if (index % 100 === 0) return "*/5 * * * *";
  return index % 100 < 20 ? `${index % 60} * * * *` : `${index % 60} */6 * * *`;
};

const rowId = (job: string, tick: number): string => `${job}#${new Date(tick).toISOString()}`;

/** By the instant, in the order of time. */
const deliveriesOf = (jobs: readonly Job[], end: number): ReadonlyMap<number, Delivery[]> => {
  const byTick = new Map<number, Delivery[]>();
  for (const job of jobs) {
    for (const tick of job.schedule?.between(start - 1, end - 1) ?? []) {
      byTick.set(tick, [...(byTick.get(tick) ?? []), { job, tick }]);
    }
  }
  return new Map([...byTick].sort(([one], [other]) => one - other));
};

/** Time stands still while a minute's ticks are done; a try again waits in real time. */
const depsAt = (client: Parameters<typeof depsOn>[0], tick: number): RunDeps => ({
  ...depsOn(client, { requestTimeoutMs }),
  clock: {
    now: () => tick + 1_000,
    after: (delayMs, wake) => {
      const timer = setTimeout(wake, delayMs);
      return () => clearTimeout(timer);
    },
  },
});

/** All workers share a processor. */
const requestTimeoutMs = 10_000;
