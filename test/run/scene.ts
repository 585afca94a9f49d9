/** A job on one row, with points at which a test holds somebody's code or requests. */
import { type DynamoDBClient, GetItemCommand } from "@aws-sdk/client-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import { cron, defineJob, type Job, type JobOptions, type Run, type RunReport, runJob, type Write } from "cronfence";
import { type SettableClock, settableClock } from "cronfence/testing";
import type { WireRequest } from "../../src/testing/wire.ts";
import { budgetOn, type Fixture } from "../fixture.ts";
import type { Machine } from "./machine.ts";

export const minuteMs = 60_000;
export const tick = Date.parse("2026-03-01T12:01:00Z");
export const ttlMs = 30_000;
export const skewMs = 10_000;

/** Waits between tries pass by themselves; deadlines and heartbeats don't. */
export const clockAt = (time: number): SettableClock => settableClock(time, { autoAdvance: { atMostMs: 2_000 } });

export const jobNamed = (name: string, run: (run: Run<number>) => unknown, more: Partial<JobOptions> = {}): Job =>
  defineJob<number>({ name, schedule: cron("* * * * *"), timeout: "50s", ttl: ttlMs, skew: skewMs, ...more, run });

export const start = (machine: Machine, job: Job, at = tick): Promise<RunReport> =>
  runJob(job, { kind: "schedule", tick: at }, machine.deps);

/** Who wrote the row last, and how often it was written. */
export const put = (id: string, by: string): Write => ({
  Update: {
    TableName: "rows",
    Key: { id },
    UpdateExpression: "SET #by = :by ADD #times :one",
    ExpressionAttributeNames: { "#by": "by", "#times": "times" },
    ExpressionAttributeValues: { ":by": by, ":one": 1 },
  },
});
/** A write that DynamoDB rejects. */
export const impossible = (id: string): Write => ({
  ConditionCheck: { TableName: "rows", Key: { id }, ConditionExpression: "attribute_exists(nothing)" },
});
const rowOf = async (client: DynamoDBClient, id: string): Promise<Record<string, unknown> | undefined> => {
  const { Item } = await client.send(
    new GetItemCommand({ TableName: "rows", Key: marshall({ id }), ConsistentRead: true }),
  );
  return Item && unmarshall(Item);
};

/** What the tables of an engine show, read past all wires. */
export const tablesOf = (engine: Fixture) => ({
  row: (id: string) => rowOf(engine.client, id),
  stateOf: (name: string) => engine.store.read(name, budgetOn(clockAt(tick))),
  /** Oldest first. */
  recordsOf: async (name: string) =>
    (await engine.store.runs(name, { limit: 10 }, budgetOn(clockAt(tick)))).runs.toReversed(),
});

export const isFinish = ({ operation, body }: WireRequest): boolean =>
  operation === "TransactWriteItems" && body.includes('"run#');
export const isCommit = (request: WireRequest): boolean =>
  request.operation === "TransactWriteItems" && !isFinish(request);

/** A point in somebody's code that a test can wait for, and hold. */
export const point = () => {
  let arrive = () => {};
  let release = () => {};
  const arrived = new Promise<void>((resolve) => (arrive = resolve));
  const released = new Promise<void>((resolve) => (release = resolve));
  return {
    arrived,
    release,
    /** Called by the code that is held. */
    hold: () => {
      arrive();
      return released;
    },
  };
};
