/** A source job on the engine, with all that a test looks at: its report, its control item, its log, the rows it wrote. */
import {
  type ControlState,
  type DynamoStore,
  defineJob,
  type Job,
  type ParkedItem,
  type RunDeps,
  type RunInfo,
  type RunReport,
  runJob,
  type Trigger,
  type Write,
} from "cronfence";
import type { Source } from "cronfence/sources";
import { dumpTable, type SettableClock, settableClock } from "cronfence/testing";
import { budgetOn, type Fixture, freshName } from "../fixture.ts";
import { recordedLog } from "../recorded-log.ts";

export const now = Date.UTC(2026, 2, 1, 11, 25);

export interface SceneOptions extends Record<string, unknown> {
  readonly name?: string;
  readonly clock?: SettableClock;
  readonly store?: DynamoStore;
  readonly deps?: Partial<RunDeps>;
}

/** Users' table in which `row` counts. */
export const results = "results";

export const sourceScene = <Item>(
  engine: Fixture,
  source: Source<Item>,
  process: (item: Item, run: RunInfo) => unknown,
  { name = freshName(), clock = settableClock(now), store, deps: more, ...options }: SceneOptions = {},
) => {
  const job = defineJob({ timeout: "5m", ...options, name, source, process } as unknown as Parameters<
    typeof defineJob
  >[0]) as Job;
  const recorded = recordedLog();
  const deps: RunDeps = {
    store: store ?? engine.faulty({ requestTimeoutMs: 10_000 }),
    clock,
    log: recorded.log,
    random: () => 0,
    ...more,
  };
  let tick = clock.now();
  const budget = () => budgetOn(clock);
  return {
    name,
    clock,
    job,
    log: recorded,
    go: (trigger?: Partial<Trigger>): Promise<RunReport> =>
      runJob(job, trigger === undefined ? { kind: "schedule", tick: tick++ } : { kind: "manual", ...trigger }, deps),
    state: async () => (await engine.store.read(name, budget())) as ControlState,
    watermark: async () => (await engine.store.read(name, budget()))?.watermark,
    records: async () => (await engine.store.runs(name, { limit: 50 }, budget())).runs,
    parked: async (): Promise<ParkedItem[]> => {
      const all: ParkedItem[] = [];
      let page = await engine.store.parked(name, { limit: 100 }, budget());
      for (;;) {
        all.push(...page.items);
        if (page.next === undefined) return all;
        page = await engine.store.parked(name, { limit: 100, after: page.next }, budget());
      }
    },
    /** How often each of the job's rows was written, by what follows the job's name. */
    rows: async (): Promise<Record<string, number>> =>
      Object.fromEntries(
        (await dumpTable(engine.client, results))
          .filter(({ id }) => String(id).startsWith(`${name}/`))
          .map(({ id, times }) => [String(id).slice(name.length + 1), Number(times)]),
      ),
  };
};

/** A write that counts how often it was applied. */
export const row = (
  run: { readonly job: string },
  what: string | number,
  condition: Partial<Write["Update"]> = {},
): Write => ({
  Update: {
    TableName: results,
    Key: { id: `${run.job}/${what}` },
    UpdateExpression: "ADD times :one",
    ExpressionAttributeValues: { ":one": 1 },
    ...condition,
  },
});

/** The same, refused where the row was written before. */
export const newRow = (run: { readonly job: string }, what: string | number): Write =>
  row(run, what, { ConditionExpression: "attribute_not_exists(id)" });
