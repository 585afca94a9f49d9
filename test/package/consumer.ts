/**
 * What a user's code looks like to the compiler. Copied into an empty project with the packed tarball and compiled there
 * (see check-package.ts); each `@ts-expect-error` fails the compilation if the type has become `any`.
 */
import middy from "@middy/core";
import { cron, defineJob, type RunReport, rate, runJob } from "cronfence";
import { deploymentProblems, type Resources, serviceResources } from "cronfence/infra";
import { fencedLease, lambdaHandler } from "cronfence/lambda";
import { queryAfter } from "cronfence/sources";
import { type Engine, settableClock, startEngine } from "cronfence/testing";

interface Cart {
  readonly id: string;
}

export const job = defineJob({
  name: "expire-carts",
  schedule: cron("*/5 * * * *"),
  timeout: "4m",
  limit: { items: 10_000 },
  source: queryAfter<Cart>({ table: "carts", index: "byExpiry", partition: { shop: "eu" }, sort: "expiresAtId" }),
  process: (cart) => [{ Delete: { TableName: "carts", Key: { id: cart.id } } }],
});

// @ts-expect-error an unknown option
defineJob({ name: "a", timeout: "1m", run: () => {}, retry: 1 });

export const counting = defineJob<{ readonly done: number }>({
  name: "counting",
  schedule: rate("5 minutes"),
  timeout: "1m",
  run: async (run) => {
    await run.commit([], { watermark: { done: (run.watermark?.done ?? 0) + 1 } });
    // @ts-expect-error not the watermark's type
    await run.commit([], { watermark: { done: "all" } });
  },
});

export const handler = lambdaHandler(job);

export const wrapped = middy()
  .use(fencedLease({ job: "nightly", table: "jobs" }))
  .handler(async (_event, context) => {
    const fence: number = context.run.fence;
    // @ts-expect-error a number
    const text: string = context.run.fence;
    await context.run.commit([{ Put: { TableName: "a", Item: { id: "1", fence, text } } }]);
  });

export const resources = (functionName: string): Resources => {
  const service = {
    jobs: [{ job, functionName, functionLogicalId: "ExpireCarts" }],
    settings: {
      service: "shop-jobs",
      stage: "prod",
      controlTable: { create: false, name: "jobs" },
      alarmTopic: { create: true },
      logRetentionDays: 30,
      version: "1",
    },
  } as const;
  const problems: readonly string[] = deploymentProblems(service);
  if (problems.length > 0) throw new Error(problems.join("\n"));
  return serviceResources(service);
};

export const once = async (): Promise<RunReport> => {
  const engine: Engine = await startEngine();
  try {
    return await runJob(job, { kind: "manual" }, { clock: settableClock() });
  } finally {
    await engine.stop();
  }
};
