/** Many deliveries of one tick at once: one of them runs, and each of the others finds out with one request. */
import { defineJob, type RunReport, runJob } from "cronfence";
import { readsIn, type Usage, usageOf, writesIn } from "./metered-client.ts";
import { type Row, row } from "./row.ts";
import { depsOn, type Scene, scheduled } from "./scene.ts";

/** All of them wait for the same few connections and the same processor, as functions wouldn't. */
const requestTimeoutMs = 60_000;

export const measureContention = async (scene: Scene, deliveries = 100): Promise<Row[]> => {
  const ended: { readonly report: RunReport; readonly usage: Usage }[] = [];
  let othersEnded = () => {};
  // The run goes on until everybody else has been refused, so that each of them meets a live lease.
  const refused = new Promise<void>((resolve) => {
    othersEnded = resolve;
  });
  const job = defineJob({ name: await scene.jobName(), timeout: "10m", ttl: "5m", run: () => refused });
  const deliver = async () => {
    let report: RunReport | undefined;
    const usage = await usageOf(async () => {
      report = await runJob(job, scheduled, depsOn(scene.metered, { requestTimeoutMs }));
    });
    ended.push({ report: report as RunReport, usage });
    if (ended.length === deliveries - 1) othersEnded();
  };
  await Promise.all(Array.from({ length: deliveries }, deliver));

  const of = (outcome: string) => ended.filter(({ report }) => report.outcome === outcome);
  const requests = ended
    .filter(({ report }) => report.outcome !== "succeeded")
    .map(({ usage }) => readsIn(usage) + writesIn(usage));
  const what = `${deliveries} deliveries of one tick`;
  return [
    row(`${what}: runs`, of("succeeded").length, "runs", { exactly: 1 }),
    row(`${what}: held`, of("held").length, "deliveries", { exactly: deliveries - 1 }),
    row(`${what}: requests of all that were held`, sum(requests), "requests", { exactly: deliveries - 1 }),
  ];
};

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
