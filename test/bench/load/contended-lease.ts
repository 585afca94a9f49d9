/**
 * One control item with many contenders for its lease: each tries again and again until the job has run so many times. Each
 * run commits, so contenders' tries meet the holder's transactions; DynamoDB then refuses one of the two with a conflict, which
 * the local engine never does, so the proxy does it.
 */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { defineJob, type Job, runJob } from "cronfence";
import { createTable, dumpTable, type FaultProxy, type ProxiedRequest, startFaultProxy } from "cronfence/testing";
import { controlTable, depsOn, plainClient, type Scene } from "../scene.ts";

export interface ContentionOptions {
  readonly contenders: number;
  readonly runs: number;
}

export interface Contention {
  readonly runs: number;
  readonly held: number;
  readonly conflicts: number;
  /** All requests of contenders and holders. */
  readonly requests: number;
  /** Of the contended runs, of that of the same runs with nobody else about. */
  readonly timeRatio: number;
  /** What the job counted, beside what it should have. */
  readonly counted: number;
  readonly due: number;
}

const commitsPerRun = 3;
const countersTable = "load-counters";

export const contend = async (scene: Scene, { contenders, runs }: ContentionOptions): Promise<Contention> => {
  await createTable(scene.client, { name: countersTable, key: { hash: "id" } });
  const proxy = await startFaultProxy(scene.endpoint);
  const alone = counterJob(await scene.jobName());
  const contended = counterJob(await scene.jobName());
  try {
    const aloneMs = (await runUntil(alone, runs, [plainClient(proxy.endpoint)])).ms;
    const before = proxy.requests.length;
    const conflicts = raiseConflicts(proxy);
    const clients = Array.from({ length: contenders }, () => plainClient(proxy.endpoint));
    const { ms, done, held } = await runUntil(contended, runs, clients);
    const counters = await dumpTable(scene.client, countersTable);
    return {
      runs: done,
      held,
      conflicts: conflicts(),
      requests: proxy.requests.length - before,
      timeRatio: ms / done / (aloneMs / runs),
      counted: counters.find(({ id }) => id === contended.name)?.times as number,
      due: done * commitsPerRun,
    };
  } finally {
    await proxy.stop();
  }
};

const counterJob = (name: string): Job =>
  defineJob({
    name,
    timeout: "1m",
    run: async (run) => {
      for (let commit = 1; commit < commitsPerRun; commit += 1) await run.commit([countIn(name)]);
      run.commitAtEnd([countIn(name)]);
    },
  });

const countIn = (id: string) => ({
  Update: {
    TableName: countersTable,
    Key: { id },
    UpdateExpression: "ADD times :one",
    ExpressionAttributeValues: { ":one": 1 },
  },
});

const runUntil = async (job: Job, runs: number, clients: readonly DynamoDBClient[]) => {
  let done = 0;
  let held = 0;
  const startedAt = performance.now();
  await Promise.all(
    clients.map(async (client) => {
      while (done < runs) {
        const { outcome } = await runJob(job, { kind: "manual" }, depsOn(client));
        if (outcome === "succeeded") done += 1;
        else if (outcome === "held") held += 1;
        else throw new Error(`a run ended as ${outcome}`);
      }
      client.destroy();
    }),
  );
  return { ms: performance.now() - startedAt, done, held };
};

/**
 * As DynamoDB does: whatever writes to a control item that a transaction is at work on is refused.
 * https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-conflict-handling
 */
const raiseConflicts = (proxy: FaultProxy): (() => number) => {
  let conflicts = 0;
  let under: ProxiedRequest | undefined;
  proxy.when(
    ({ body }) => isAboutControl(body),
    (request) => {
      if (under !== undefined) {
        conflicts += 1;
        return { conflict: true };
      }
      if (request.operation !== "TransactWriteItems") return [];
      under = request;
      void request.settled.then(() => {
        under = undefined;
      });
      return [];
    },
  );
  return () => conflicts;
};

const isAboutControl = (body: {
  TableName?: string;
  UpdateExpression?: string;
  TransactItems?: readonly object[];
}): boolean =>
  (body.TableName === controlTable && body.UpdateExpression !== undefined) || body.TransactItems !== undefined;
