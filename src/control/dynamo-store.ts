/** The control store on DynamoDB: one table, described in `table.ts` and in infra/control-table.yml. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { InvalidOptionsError } from "../errors.ts";
import { acquire, create, queue } from "./acquire.ts";
import { approvePlan, cancelRun, pauseJob, resumeJob, rewindJob, skipTicks } from "./acts.ts";
import { commit, renew } from "./commit.ts";
import type { Connection } from "./connection.ts";
import type { ControlStore } from "./control-store.ts";
import { finish } from "./finish.ts";
import { moveJob } from "./move.ts";
import { doneWrites, fulfilWrites, intendWrites, readOnce, releaseOnce, withdrawWrites } from "./once.ts";
import { dropParked, parkWrites, readOneParked, readParked, unparkWrites } from "./parked.ts";
import { readActs, readControl, readCoverage, readRuns, readRunsNamed, readRunsSince } from "./read.ts";
import { recordCrashed, recordLost } from "./records.ts";
import { markRestored } from "./restored.ts";
import { type TableReader, tableReader } from "./table-reader.ts";
import { noteHealed, noteSchedule, readMany } from "./watch.ts";
import { prepareWrites } from "./writes.ts";

export interface StoreOptions {
  /**
   * The control table's name.
   * @default the environment's CRONFENCE_TABLE, or else "cronfence"
   */
  readonly table?: string;
  /**
   * A client of your own. Its own retries should be off (`maxAttempts: 1`): cronfence retries by itself, knowing what may
   * be repeated and how long.
   * @default a client for the environment's region, credentials and AWS_ENDPOINT_URL_DYNAMODB
   */
  readonly client?: DynamoDBClient;
  /**
   * How long one request may take, in milliseconds, before its outcome counts as unknown and it is sent again.
   * @default 1000
   */
  readonly requestTimeoutMs?: number;
}

/** A control store, and the reading of users' tables over the same client. */
export interface DynamoStore extends ControlStore {
  readonly tables: TableReader;
}

/**
 * The control store in DynamoDB.
 * @throws InvalidOptionsError for a table name or request timeout that can't be.
 */
export const dynamoStore = (options: StoreOptions = {}): DynamoStore => {
  const table = options.table ?? controlTableName();
  const requestTimeoutMs = options.requestTimeoutMs ?? 1_000;
  if (typeof table !== "string" || !(/^[A-Za-z0-9_.-]{3,255}$/.test(table) || table.startsWith("arn:"))) {
    throw new InvalidOptionsError("control store", [
      `table is ${JSON.stringify(table)}, and must be a DynamoDB table name (3 to 255 of A-Z a-z 0-9 _ . -) or ARN`,
    ]);
  }
  if (!Number.isInteger(requestTimeoutMs) || requestTimeoutMs < 1) {
    throw new InvalidOptionsError("control store", [
      `requestTimeoutMs is ${requestTimeoutMs}, and must be a whole number of milliseconds, at least 1`,
    ]);
  }
  const client = options.client ?? new DynamoDBClient({ maxAttempts: 1 });
  const connection: Connection = { client, table, requestTimeoutMs, knownKeys: new Map() };
  return {
    table,
    requestTimeoutMs,
    tables: tableReader(connection),
    prepare: (writes, watermark) => prepareWrites(writes, watermark, table, connection.knownKeys),
    park: (job, item) => parkWrites(table, job, item),
    unpark: (job, key) => unparkWrites(table, job, key),
    parked: (job, page, budget) => readParked(connection, job, page, budget),
    readParked: (job, key, budget) => readOneParked(connection, job, key, budget),
    dropParked: (job, key, act, at, budget) => dropParked(connection, job, key, act, at, budget),
    readOnce: (job, key, budget) => readOnce(connection, job, key, budget),
    intend: (job, key, intent) => intendWrites(table, job, key, intent),
    fulfil: (job, key, done) => fulfilWrites(table, job, key, done),
    withdraw: (job, key, fence, run) => withdrawWrites(table, job, key, fence, run),
    doneOnce: (job, key, done) => doneWrites(table, job, key, done),
    releaseOnce: (job, key, verdict, act, at, budget) => releaseOnce(connection, job, key, verdict, act, at, budget),
    create: (job, since, budget) => create(connection, job, since, budget),
    read: (job, budget) => readControl(connection, job, budget),
    readMany: (jobs, budget) => readMany(connection, jobs, budget),
    acquire: (request, budget) => acquire(connection, request, budget),
    queue: (job, tick, holder, budget) => queue(connection, job, tick, holder, budget),
    commit: (lease, request, budget) => commit(connection, lease, request, budget),
    renew: (lease, leaseUntil, budget) => renew(connection, lease, leaseUntil, budget),
    finish: (lease, request, budget) => finish(connection, lease, request, budget),
    recordCrashed: (job, entries, at, budget) => recordCrashed(connection, job, entries, at, budget),
    recordLost: (record, budget) => recordLost(connection, record, budget),
    runs: (job, page, budget) => readRuns(connection, job, page, budget),
    runsSince: (job, page, budget) => readRunsSince(connection, job, page, budget),
    coverage: (job, page, budget) => readCoverage(connection, job, page, budget),
    runsNamed: (job, beginning, most, budget) => readRunsNamed(connection, job, beginning, most, budget),
    acts: (job, page, budget) => readActs(connection, job, page, budget),
    noteHealed: (job, healed, budget) => noteHealed(connection, job, healed, budget),
    noteSchedule: (job, change, budget) => noteSchedule(connection, job, change, budget),
    pause: (job, paused, budget) => pauseJob(connection, job, paused, budget),
    resume: (job, act, at, budget) => resumeJob(connection, job, act, at, budget),
    approve: (job, approval, at, budget) => approvePlan(connection, job, approval, at, budget),
    rewind: (job, watermark, act, at, budget) => rewindJob(connection, job, watermark, act, at, budget),
    skip: (job, ticks, act, at, budget) => skipTicks(connection, job, ticks, act, at, budget),
    move: (job, to, act, at, budget) => moveJob(connection, job, to, act, at, budget),
    restored: (act, at, budget) => markRestored(connection, act, at, budget),
    cancel: (job, act, at, budget) => cancelRun(connection, job, act, at, budget),
  };
};

/** The control table's name where none is given. */
export const controlTableName = (): string => process.env.CRONFENCE_TABLE || "cronfence";
