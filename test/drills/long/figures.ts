/** What a long drill left in the tables, read when all is quiet. Nothing here judges; differences.ts does. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { type Budget, type ControlState, dynamoStore, type Job, type RunRecord, systemClock } from "cronfence";
import { type LedgerEntry, readLedger } from "cronfence/operate";
import { dumpTable } from "cronfence/testing";
import type { Inserted } from "./inserts.ts";
import { auditTables, drilledJobs } from "./jobs.ts";
import type { WorldTime } from "./world-time.ts";

/** How often each row's work was done, by the row's id. */
export type Times = Readonly<Record<string, number>>;

export interface JobFigures {
  readonly name: string;
  readonly state: ControlState | undefined;
  /** Oldest first. */
  readonly records: readonly RunRecord[];
  /** Every tick that was due since the drill began, through the last that was delivered. */
  readonly due: readonly number[];
  readonly ledger: readonly LedgerEntry[];
  readonly times: Times;
}

export interface LongFigures {
  readonly seed: number;
  readonly seconds: number;
  /** What went wrong on purpose, by kind. */
  readonly faults: Readonly<Record<string, number>>;
  readonly inserted: Inserted;
  /** Of all carts, whether each has expired. */
  readonly carts: readonly { readonly id: string; readonly expired: boolean }[];
  /** Audit rows of carts by the run that wrote them. */
  readonly cartsByRun: Readonly<Record<string, number>>;
  readonly cartsJob: JobFigures;
  readonly linesJob: JobFigures;
  readonly stepsJob: JobFigures;
}

export const readFigures = async (
  client: DynamoDBClient,
  known: Pick<LongFigures, "seed" | "seconds" | "faults" | "inserted">,
  {
    table,
    time,
    since,
    last,
  }: {
    readonly table: string;
    readonly time: WorldTime;
    readonly since: number;
    readonly last: ReadonlyMap<string, number>;
  },
): Promise<LongFigures> => {
  const store = dynamoStore({ client, table });
  const clock = { now: time.now, after: systemClock.after };
  const budget = (): Budget => ({ clock, random: Math.random, until: time.now() + patienceMs * time.speed });

  const recordsOf = async (job: string): Promise<RunRecord[]> => {
    const records: RunRecord[] = [];
    let after: string | undefined;
    do {
      const page = await store.runsSince(
        job,
        { limit: 500, from: 0, ...(after === undefined ? {} : { after }) },
        budget(),
      );
      records.push(...page.runs);
      after = page.next;
    } while (after !== undefined);
    return records;
  };

  const figuresOf = async (job: Job): Promise<JobFigures> => {
    const to = last.get(job.name) as number;
    const ledger: LedgerEntry[] = [];
    for await (const entry of readLedger(job, { from: since + 1, to }, { store, clock })) ledger.push(entry);
    const rows = await dumpTable(client, auditTables[job.name] as string);
    return {
      name: job.name,
      state: await store.read(job.name, budget()),
      records: await recordsOf(job.name),
      due: [...(job.schedule?.between(since, to) ?? [])],
      ledger,
      times: Object.fromEntries(rows.map(({ id, times }) => [id as string, times as number])),
    };
  };

  const [carts, audit] = await Promise.all([dumpTable(client, "carts"), dumpTable(client, "cart-audit")]);
  const cartsByRun: Record<string, number> = {};
  for (const { runId } of audit as { runId: string }[]) cartsByRun[runId] = (cartsByRun[runId] ?? 0) + 1;
  const [ofCarts, ofLines, ofSteps] = await Promise.all(drilledJobs.map(figuresOf));
  return {
    ...known,
    carts: carts.map(({ id, status }) => ({ id: id as string, expired: status === "expired" })),
    cartsByRun,
    cartsJob: ofCarts as JobFigures,
    linesJob: ofLines as JobFigures,
    stepsJob: ofSteps as JobFigures,
  };
};

const patienceMs = 10_000;
export const jobsOf = (figures: LongFigures): readonly JobFigures[] => [
  figures.cartsJob,
  figures.linesJob,
  figures.stepsJob,
];
