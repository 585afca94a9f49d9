/** What is sent to DynamoDB, counted: round trips, and write units as the engine reports them. */
import { defineJob, type Job, runJob } from "cronfence";
import { expireByJob, itemsPerTransaction } from "./expiry.ts";
import { readsIn, usageOf, writesIn } from "./metered-client.ts";
import { type Row, row } from "./row.ts";
import { carts, depsOn, type Scene, scheduled, tenWrites } from "./scene.ts";
import { smallJob } from "./small-run.ts";

export const measureCounts = async (scene: Scene): Promise<Row[]> => [
  ...(await runOnce(scene, "an empty run", 2, (name) => defineJob({ name, timeout: "1m", run: () => {} }))),
  ...(await runOnce(scene, "a run with 10 writes at its end", 2, smallJob)),
  ...(await runOnce(scene, "a run that commits 10 writes", 3, (name) =>
    defineJob({ name, timeout: "1m", run: (run) => run.commit(tenWrites()) }),
  )),
  ...(await runOnce(scene, "a tick with 10 writes", 2, (name) => defineJob({ name, timeout: "1m", tick: tenWrites }))),
  ...(await manyItems(scene)),
];

/** A run of a job that has run before: first use costs more, once. */
const runOnce = async (
  scene: Scene,
  what: string,
  roundTrips: number,
  define: (name: string) => Job,
): Promise<Row[]> => {
  const job = define(await scene.jobName());
  const deps = depsOn(scene.metered);
  const trigger = (n: number) => ({ ...scheduled, tick: scheduled.tick + n * 60_000 });
  await runJob(job, trigger(0), deps);
  const usage = await usageOf(async () => {
    const { outcome } = await runJob(job, trigger(1), deps);
    if (outcome !== "succeeded") throw new Error(`${what} ended as ${outcome}`);
  });
  return [
    row(`${what}: round trips`, readsIn(usage) + writesIn(usage), "requests", { exactly: roundTrips }),
    row(`${what}: write units`, usage.writeUnits, "units"),
  ];
};

const manyItems = async (scene: Scene): Promise<Row[]> => {
  const name = await scene.jobName();
  const usage = await usageOf(() => expireByJob(scene.metered, name));
  const what = `a run over ${carts.toLocaleString("en")} items`;
  return [
    row(`${what}: writing requests`, writesIn(usage), "requests", {
      exactly: Math.ceil(carts / itemsPerTransaction) + 1,
    }),
    row(`${what}: reading requests`, readsIn(usage), "requests"),
    row(`${what}: write units`, usage.writeUnits, "units"),
  ];
};
