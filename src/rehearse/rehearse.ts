/**
 * A rehearsal: the job's own code over a stretch of simulated time, on a local DynamoDB, with each tick delivered as
 * EventBridge Scheduler would deliver it to a Lambda function: late by the jitter, sometimes twice, not at all in an outage or
 * at a time that the clocks skip, and again when a run fails.
 *
 * Guarantees: the job runs by the same code as in production, on tables of the rehearsal's own; what became of each tick is
 * read from the run records that it leaves, not from what was hoped for.
 *
 * What it doesn't simulate: anything but DynamoDB (what else the job calls is really called), `Date.now()` in the job's
 * code, runs that take so long that they overlap.
 */
import { randomUUID } from "node:crypto";
import { DeleteTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { systemClock } from "../clock.ts";
import type { RunRecord } from "../control/control-store.ts";
import { type DynamoStore, dynamoStore } from "../control/dynamo-store.ts";
import { InvalidOptionsError } from "../errors.ts";
import type { Job } from "../job.ts";
import { localClientConfig, startEngine } from "../local/engine.ts";
import type { LocalSetup } from "../local/job-modules.ts";
import { putAll } from "../local/put-all.ts";
import type { Logger } from "../observe/log.ts";
import type { RunOutcome } from "../outcome.ts";
import type { Schedule, ScheduleWithCalendar } from "../schedule/index.ts";
import { createTable } from "../testing/tables.ts";
import { type Account, accountOf } from "./account.ts";
import { planDeliveries, type Span } from "./deliveries.ts";
import { ledgerOf } from "./ledger.ts";
import { type Played, play } from "./play.ts";
import { seededRandom } from "./random.ts";
import { simulatedClock } from "./simulated-clock.ts";

export interface RehearseOptions {
  readonly job: Job;
  /** The first instant that is simulated, in milliseconds since the epoch. */
  readonly from: number;
  /** The first instant that isn't any more. */
  readonly to: number;
  /** When nothing is delivered. @default never */
  readonly outages?: readonly Span[];
  /** The share of ticks that are delivered twice, from 0 to 1. @default 0.05 */
  readonly duplicates?: number;
  /** Decides which ticks are delivered twice and how late, the same for the same seed. @default 1 */
  readonly seed?: number;
  /** Tables to create before, and what is in them at the start, as the export `local` of a job's module has it. */
  readonly local?: LocalSetup;
  /** A local DynamoDB that runs already; it is left as it was. @default one is started, and stopped at the end */
  readonly endpoint?: string;
  /** Where the runs log. @default nowhere */
  readonly log?: Logger;
  /** Called before each delivery. */
  readonly onProgress?: (done: number, all: number) => void;
}

/** How a rehearsal went. Counts, and instants in milliseconds since the epoch. */
export interface Rehearsal extends Account {
  readonly job: string;
  readonly from: number;
  readonly to: number;
  readonly seed: number;
  /** No tick was doubled, and none is without a state. */
  readonly ok: boolean;
  readonly deliveries: {
    readonly all: number;
    /** Second deliveries of a tick. */
    readonly duplicates: number;
    /** Second and third tries after a failure. */
    readonly retries: number;
  };
  /** Runs by outcome, from their records. */
  readonly runs: Readonly<Partial<Record<RunOutcome, number>>>;
  readonly attempts: Played["attempts"];
  readonly errors: Played["errors"];
  /** How long it took, in milliseconds. */
  readonly wallMs: number;
}

/**
 * Runs `job` through all that is due from `from` to `to`.
 *
 * @throws InvalidOptionsError for a job without a schedule or configured as a dry run, an empty stretch of time, or a table of
 * `local` that exists already.
 * @throws EngineUnavailableError when there is no local DynamoDB.
 * @throws StoreUnavailableError when the local DynamoDB fails.
 */
export const rehearse = async (options: RehearseOptions): Promise<Rehearsal> => {
  const startedAt = systemClock.now();
  const { job, from, to, duplicates = 0.05, seed = 1, outages = [] } = options;
  const schedule = checked(options);
  const random = seededRandom(seed);
  const span = { from, to };
  const deliveries = planDeliveries({ schedule, span, outages, duplicates, jitterMs: job.jitterMs, random });
  return onEngine(options, async (client, controlTable) => {
    const store = dynamoStore({ client, table: controlTable });
    const clock = simulatedClock(from);
    const since = Math.min(job.catchUp.startAt ?? from, from) - 1;
    const budget = () => ({ clock, random, until: clock.now() + 60_000 });
    // A deployment makes the job known, before anything is delivered.
    await store.create(job.name, since, budget());
    const played = await play(deliveries, { job, store, clock, random }, options);
    const records = await allRecords(store, job.name, budget);
    const account = accountOf(
      ledgerOf({ due: [...schedule.between(since, to - 1)], removed: removedFrom(schedule, since, to), records }),
      { notDelivered: deliveries.notDelivered, isOwnRun: played.isOwnRun },
    );
    return {
      job: job.name,
      from,
      to,
      seed,
      ok: account.ticks.doubled === 0 && account.ticks.unaccounted === 0,
      ...account,
      deliveries: { all: played.all, duplicates: deliveries.duplicates, retries: played.retries },
      runs: count(records.map(({ outcome }) => outcome)),
      attempts: played.attempts,
      errors: played.errors,
      wallMs: systemClock.now() - startedAt,
    };
  });
};

const checked = ({ job, from, to, duplicates = 0, outages = [] }: RehearseOptions): Schedule => {
  const problems: string[] = [];
  if (job.schedule === undefined) problems.push("it has no schedule, so nothing is ever due");
  if (job.dryRun) {
    problems.push(
      "it is configured as a dry run (dryRun, or the environment's CRONFENCE_DRY_RUN), which completes no tick",
    );
  }
  if (!(from < to)) problems.push("from must be earlier than to");
  if (outages.some((outage) => !(outage.from < outage.to))) problems.push("an outage must begin before it ends");
  if (!(duplicates >= 0 && duplicates <= 1))
    problems.push(`duplicates is ${duplicates}, and must be a share from 0 to 1`);
  if (problems.length > 0) throw new InvalidOptionsError(`rehearsal of job "${job.name}"`, problems);
  return job.schedule as Schedule;
};

/** Runs `rehearsal` with a control table and the job's own tables, which are gone afterwards. */
const onEngine = async <T>(
  { job, local, endpoint, from }: RehearseOptions,
  rehearsal: (client: DynamoDBClient, controlTable: string) => Promise<T>,
): Promise<T> => {
  const engine = endpoint === undefined ? await startEngine() : undefined;
  const client = new DynamoDBClient({ ...localClientConfig(engine?.endpoint ?? (endpoint as string)), maxAttempts: 1 });
  const created: string[] = [];
  try {
    const controlTable = `rehearsal-${randomUUID()}`;
    const tables = [{ name: controlTable, key: { hash: "pk", range: "sk" } }, ...(local?.tables ?? [])];
    for (const table of tables) {
      await createTable(client, table).catch((error) => refuseTable(job.name, table.name, error));
      created.push(table.name);
    }
    for (const [table, items] of Object.entries(local?.seed?.(from) ?? {})) await putAll(client, table, items);
    return await rehearsal(client, controlTable);
  } finally {
    // An engine that isn't ours goes on.
    if (engine === undefined || engine.kind === "external") {
      for (const TableName of created) await client.send(new DeleteTableCommand({ TableName }));
    }
    client.destroy();
    await engine?.stop();
  }
};

const refuseTable = (job: string, table: string, error: Error): never => {
  if (error.name !== "ResourceInUseException") throw error;
  throw new InvalidOptionsError(
    `rehearsal of job "${job}"`,
    [`table "${table}" exists already; a rehearsal makes its own, on a local DynamoDB that has none of its name`],
    { cause: error },
  );
};

const removedFrom = (schedule: Schedule, since: number, to: number) => [
  ...((schedule as Partial<ScheduleWithCalendar>).removed?.(since, to - 1) ?? []),
];

const allRecords = async (
  store: DynamoStore,
  job: string,
  budget: () => Parameters<DynamoStore["runs"]>[2],
): Promise<RunRecord[]> => {
  const records: RunRecord[] = [];
  let before: string | undefined;
  do {
    const page = await store.runs(job, { limit: 1_000, ...(before === undefined ? {} : { before }) }, budget());
    records.push(...page.runs);
    before = page.next;
  } while (before !== undefined);
  return records;
};

const count = <Name extends string>(names: readonly Name[]): Partial<Record<Name, number>> => {
  const counts: Partial<Record<Name, number>> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
};
