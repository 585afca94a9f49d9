/**
 * A shop's job with a history, for the commands that show it and act on it: due hourly, and by now one tick is done, one failed
 * and was covered by the next run, and those since then are missed.
 */
import { cron, defineJob, type Job, runJob, type Tick } from "cronfence";
import { settableClock } from "cronfence/testing";
import { budgetOn, controlTable, type Fixture, freshName, silentLog } from "../fixture.ts";

export const hourMs = 3_600_000;

/** The source of the job's module. */
export const hourlySource = (name: string): string => `
import { cron, defineJob } from "cronfence";
export const job = defineJob({
  name: "${name}",
  schedule: cron("0 * * * *"),
  exact: true,
  timeout: "1m",
  alert: { missedAfter: "5m" },
  tick: (tick) => [{ Put: { TableName: "results", Item: { id: "${name}/" + tick.id } } }],
});
`;

/** The environment of a command on the fixture's control table. */
export const environment = (endpoint: string): Record<string, string> => ({
  AWS_ENDPOINT_URL_DYNAMODB: endpoint,
  CRONFENCE_TABLE: controlTable,
  AWS_REGION: "local",
  AWS_ACCESS_KEY_ID: "local",
  AWS_SECRET_ACCESS_KEY: "local",
});

export interface Operated {
  readonly name: string;
  /** The first tick that was due; the others are `hourMs` apart. */
  readonly first: number;
  /** The runs' ids, oldest first: done, failed, covering. */
  readonly runs: readonly string[];
}

/** @param engine with the table "results" */
export const operated = async ({ store }: Fixture, name = freshName()): Promise<Operated> => {
  const first = Math.floor(Date.now() / hourMs) * hourMs - 5 * hourMs;
  const clock = settableClock(first - hourMs / 2);
  let closed = false;
  const job = defineJob({
    name,
    schedule: cron("0 * * * *"),
    exact: true,
    timeout: "1m",
    tick: (tick: Tick) => {
      if (closed) throw new Error("the supplier is closed");
      return [{ Put: { TableName: "results", Item: { id: `${name}/${tick.id}` } } }];
    },
  }) as Job;
  await store.create(name, clock.now(), budgetOn(clock));
  const deliver = (tick: number) => {
    clock.set(tick + 2_000);
    return runJob(job, { kind: "schedule", tick }, { store, clock, log: silentLog, version: "v1" });
  };
  const reports = [await deliver(first)];
  closed = true;
  reports.push(await deliver(first + hourMs));
  closed = false;
  reports.push(await deliver(first + 2 * hourMs));
  return { name, first, runs: reports.map(({ run }) => run as string) };
};

/** As the commands print it. */
export const isoAt = (instant: number): string => new Date(instant).toISOString();
