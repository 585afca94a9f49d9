/** Jobs whose every piece of work is counted in a row of its own: done twice or not at all shows. */
import { cron, defineJob, type Job, type Run, type Write } from "cronfence";
import { type ExplorationFailedError, type ExploreOptions, explore } from "cronfence/testing";

export const tables = [{ name: "counts", key: { hash: "id" } }];

export const every5 = { schedule: cron("*/5 * * * *"), timeout: "4m" } as const;

/** Adds one to a row. */
export const counted = (id: string) => ({
  TableName: "counts",
  Key: { id },
  UpdateExpression: "ADD times :one",
  ExpressionAttributeValues: { ":one": 1 },
});
export const count = (id: string): Write => ({ Update: counted(id) });

const firstTick = Date.parse("2026-01-12T12:00:00Z");
/** Two pieces of work for each tick from the first one on, numbered from 1. */
export const workThrough = (run: Run<number>): number => 2 * ((Number(run.tick?.at) - firstTick) / 300_000 + 1);

export const tickJob: Job = defineJob({ ...every5, name: "tick-job", tick: (tick) => [count(tick.id)] });

export const runJob: Job = defineJob<number>({
  ...every5,
  name: "run-job",
  run: async (run) => {
    for (let piece = (run.watermark ?? 0) + 1; piece <= workThrough(run); piece += 1) {
      await run.commit([count(`piece ${piece}`)], { watermark: piece });
    }
  },
});

/** More schedules for longer hunts than a build should take. */
export const budgetOf = (usual: number): number => Number(process.env.EXPLORE_BUDGET ?? usual);

/** What an exploration has found; it must find something. */
export const found = async (job: Job, options: ExploreOptions): Promise<ExplorationFailedError> => {
  const error = await explore(job, options).then(
    () => undefined,
    (thrown) => thrown,
  );
  if (error?.code !== "EXPLORATION_FAILED") throw error ?? new Error("nothing was found");
  return error;
};
