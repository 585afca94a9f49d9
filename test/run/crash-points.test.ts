/**
 * A run dies, or loses a reply, at every request it makes: the points are taken from an undisturbed run, so that a new
 * request in the protocol is tried without anybody thinking of it. An await that isn't a request is the same as dying
 * before the next one.
 */

import { BatchWriteItemCommand, QueryCommand } from "@aws-sdk/client-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import { cron, defineJob, type Job, type JobOptions, type RunRecord, runJob, type Write } from "cronfence";
import { queryAfter } from "cronfence/sources";
import { createTable, type SettableClock, settableClock } from "cronfence/testing";
import { beforeAll, describe, expect, it } from "vitest";
import {
  brokenConnection,
  type Carry,
  failedAfter,
  lostReply,
  never,
  passed,
  tokenless,
  type WireRequest,
} from "../../src/testing/wire.ts";
import { budgetOn, freshName, useEngine } from "../fixture.ts";
import { machineOn } from "./machine.ts";

const engine = useEngine();
const minuteMs = 60_000;
const start = Date.parse("2026-03-01T12:00:00Z");
const ttlMs = 30_000;
const skewMs = 10_000;
const itemCount = 250;

beforeAll(async () => {
  await createTable(engine.client, { name: "effects", key: { hash: "job", range: "id" } });
  await createTable(engine.client, { name: "orders", key: { hash: "shop", range: "at" } });
  const orders = Array.from({ length: itemCount }, (_, i) => ({ shop: "eu", at: `order-${1000 + i}` }));
  for (let i = 0; i < orders.length; i += 25) {
    const puts = orders.slice(i, i + 25).map((order) => ({ PutRequest: { Item: marshall(order) } }));
    await engine.client.send(new BatchWriteItemCommand({ RequestItems: { orders: puts } }));
  }
});

/** One item's effect: counted, so that a second one shows. */
const effect = (job: string, id: string): Write => ({
  Update: {
    TableName: "effects",
    Key: { job, id },
    UpdateExpression: "ADD #times :one",
    ExpressionAttributeNames: { "#times": "times" },
    ExpressionAttributeValues: { ":one": 1 },
  },
});

/** A job of one shape that does the ticks 12:01, 12:02, 12:03 in its first run, and 12:04 in the next. */
interface Shape {
  readonly name: string;
  /** The tick whose run is disturbed. */
  readonly tick: number;
  /** Whether the job is known from 12:00 on, or the disturbed run is its first use. */
  readonly known: boolean;
  /** How many effects there must be after the disturbed tick and the next one. */
  readonly effects: number;
  readonly watermark: unknown;
  readonly define: (options: JobOptions) => Job;
}

const shapes: readonly Shape[] = [
  {
    name: "a run with three commits and a last batch",
    tick: start + minuteMs,
    known: false,
    effects: 3 * 2 + 2,
    watermark: { step: 3 },
    define: (options) =>
      defineJob<{ step: number }>({
        ...options,
        run: async (run) => {
          for (let step = (run.watermark?.step ?? 0) + 1; step <= 3; step += 1) {
            const writes = [effect(run.job, `step ${step}`), effect(run.job, `audit of step ${step}`)];
            await run.commit(writes, { watermark: { step }, items: 1 });
          }
          run.commitAtEnd([effect(run.job, `end of ${run.tick?.id}`)]);
        },
      }),
  },
  {
    name: "three ticks, one of 150 writes",
    tick: start + 3 * minuteMs,
    known: true,
    effects: 2 + 150 + 2 + 2,
    watermark: "2026-03-01T12:04:00.000Z",
    define: (options) =>
      defineJob({
        ...options,
        tick: (tick, run) => ({
          writes: Array.from({ length: tick.at.getUTCMinutes() === 2 ? 150 : 2 }, (_, i) =>
            effect(run.job, `${tick.id} ${i}`),
          ),
          watermark: tick.id,
        }),
      }),
  },
  {
    name: "a source of 250 items with one to three writes each",
    tick: start + minuteMs,
    known: false,
    // 250 items do 84 times 1, 83 times 2 and 83 times 3 writes.
    effects: 84 + 83 * 2 + 83 * 3,
    watermark: `order-${1000 + itemCount - 1}`,
    define: (options) =>
      defineJob({
        ...options,
        source: queryAfter<{ at: string }>({
          table: "orders",
          partition: { shop: "eu" },
          sort: "at",
          time: "none",
          pageSize: 100,
        }),
        process: ({ at }, run) =>
          Array.from({ length: 1 + ((Number(at.slice(-4)) - 1000) % 3) }, (_, i) => effect(run.job, `${at} ${i}`)),
      }),
  },
];

const trial = async (shape: Shape) => {
  const job = shape.define({
    name: freshName(),
    schedule: cron("* * * * *"),
    timeout: "50s",
    ttl: ttlMs,
    skew: skewMs,
  });
  // Waits between tries pass by themselves; deadlines and heartbeats don't.
  const clock = settableClock(shape.tick, { autoAdvance: { atMostMs: 2_000 } });
  if (shape.known) await engine.store.create(job.name, start, budgetOn(clock));
  return { job, clock };
};

const effectsOf = async (job: string): Promise<Record<string, number>> => {
  const { Items = [] } = await engine.client.send(
    new QueryCommand({
      TableName: "effects",
      KeyConditionExpression: "#job = :job",
      ExpressionAttributeNames: { "#job": "job" },
      ExpressionAttributeValues: marshall({ ":job": job }),
      ConsistentRead: true,
    }),
  );
  return Object.fromEntries(Items.map((item) => unmarshall(item)).map(({ id, times }) => [id, times]));
};

const deliver = (job: Job, tick: number, clock: SettableClock) =>
  runJob(job, { kind: "schedule", tick }, machineOn(engine.endpoint, clock).deps);

const recordsOf = async (job: Job, clock: SettableClock): Promise<readonly RunRecord[]> =>
  (await engine.store.runs(job.name, { limit: 100 }, budgetOn(clock))).runs.toReversed();

/** After the disturbed run the same tick is delivered again, and then the next one. */
const goOn = async (shape: Shape, job: Job, clock: SettableClock) => {
  const again = await deliver(job, shape.tick, clock);
  clock.set(Math.max(clock.now(), shape.tick + minuteMs));
  const next = await deliver(job, shape.tick + minuteMs, clock);
  return { again, next };
};

const expectAllDone = async (shape: Shape, job: Job, clock: SettableClock, undisturbed: Record<string, number>) => {
  expect(await effectsOf(job.name)).toEqual(undisturbed);
  const state = await engine.store.read(job.name, budgetOn(clock));
  expect(state).toMatchObject({
    tick: shape.tick + minuteMs,
    watermark: shape.watermark,
    prev: [],
    unfinished: 0,
    failedTicks: 0,
  });
  for (const gone of ["owner", "leaseUntil", "run", "tickPart", "pending"]) expect(state).not.toHaveProperty(gone);
};

/** The k-th request of a run, its repetitions included. */
const onRequest = (k: number, fault: Carry, times = 1): Carry => {
  let chosen: WireRequest | undefined;
  let left = times;
  return (request) => {
    if (request.at === k) chosen = request;
    const hit = request.body === chosen?.body && left > 0;
    if (hit) left -= 1;
    return hit ? fault(request) : passed(request);
  };
};

const isTransaction = ({ operation }: WireRequest) => operation === "TransactWriteItems";
const sum = (records: readonly RunRecord[], of: "items" | "commits") =>
  records.reduce((total, record) => total + record[of], 0);

describe.each(shapes)("$name", (shape) => {
  let requests: readonly WireRequest[];
  let undisturbed: Record<string, number>;
  let record: RunRecord;

  beforeAll(async () => {
    const { job, clock } = await trial(shape);
    const machine = machineOn(engine.endpoint, clock);
    const report = await runJob(job, { kind: "schedule", tick: shape.tick }, machine.deps);
    expect(report.error).toBeUndefined();
    expect(report.outcome).toBe("succeeded");
    requests = machine.requests;
    expect(await goOn(shape, job, clock)).toMatchObject({
      again: { outcome: "duplicate" },
      next: { outcome: "succeeded" },
    });
    undisturbed = await effectsOf(job.name);
    record = (await recordsOf(job, clock))[0] as RunRecord;
    await expectAllDone(shape, job, clock, undisturbed);
  });

  it("does each item once when nothing goes wrong", () => {
    expect(Object.keys(undisturbed)).toHaveLength(shape.effects);
    expect(new Set(Object.values(undisturbed))).toEqual(new Set([1]));
    // Acquire and finish, at least one commit, and for a first use or a source some more.
    expect(requests.length).toBeGreaterThanOrEqual(5);
  });

  it.each(["not applied", "applied"] as const)(
    "loses nothing and repeats nothing when the process dies at any request, which was %s",
    async (fate) => {
      for (const { at: k, operation } of requests) {
        const { job, clock } = await trial(shape);
        let died = () => {};
        const death = new Promise<void>((resolve) => (died = resolve));
        const machine = machineOn(engine.endpoint, clock, async (request) => {
          if (request.at !== k) return request.apply();
          machine.kill();
          if (fate === "applied") await request.apply();
          died();
          return never();
        });
        void runJob(job, { kind: "schedule", tick: shape.tick }, machine.deps);
        await death;
        await machine.quiet();
        const applied = machine.requests.filter((request) => isTransaction(request) && request.accepted > 0).length;

        clock.advance(ttlMs + skewMs + 1);
        const { again, next } = await goOn(shape, job, clock);
        const at = `died at request ${k} (${operation}), ${fate}`;
        const [first, ...rest] = await recordsOf(job, clock);
        const finished = fate === "applied" && k === requests.length - 1;
        const acquired = machine.requests.some((r) => r.operation === "UpdateItem" && r.accepted > 0);
        expect(next, at).toMatchObject({ outcome: "succeeded" });
        expect(again, at).toMatchObject({ outcome: finished ? "duplicate" : "succeeded" });
        if (finished) {
          expect(first, at).toMatchObject({ outcome: "succeeded", commits: record.commits, items: record.items });
          expect(
            rest.map(({ outcome }) => outcome),
            at,
          ).toEqual(["succeeded"]);
        } else if (acquired) {
          expect(first, at).toMatchObject({ outcome: "crashed", commits: applied });
          expect(
            rest.map(({ outcome }) => outcome),
            at,
          ).toEqual(["succeeded", "succeeded"]);
        } else {
          expect(
            [first, ...rest].map((each) => each?.outcome),
            at,
          ).toEqual(["succeeded", "succeeded"]);
        }
        const nextRun = rest.at(-1) ?? first;
        expect(sum([first as RunRecord, ...rest], "items") - (nextRun?.items ?? 0), at).toBe(record.items);
        await expectAllDone(shape, job, clock, undisturbed).catch((error) => {
          throw new Error(at, { cause: error });
        });
      }
    },
  );

  it.each<[string, Carry, number, ((carry: Carry) => Carry)?]>([
    ["loses the reply to any request", lostReply, 1],
    ["loses the replies to any request and to the next tries of it", lostReply, 4],
    ["hears a 500 about any request that was applied", failedAfter, 1],
    ["hears a 500 about any request that was applied, and about the next tries of it", failedAfter, 4],
    ["loses any request and the next tries of it", () => Promise.reject(brokenConnection()), 4],
    [
      "loses the replies to any request and to the next tries of it, of a server that ignores tokens",
      lostReply,
      3,
      tokenless,
    ],
  ])("finds out what happened, and succeeds, when it %s", async (_, fault, times, server = (carry) => carry) => {
    for (const { at: k, operation } of requests) {
      const { job, clock } = await trial(shape);
      const machine = machineOn(engine.endpoint, clock, server(onRequest(k, fault, times)));
      const at = `request ${k} (${operation})`;
      const report = await runJob(job, { kind: "schedule", tick: shape.tick }, machine.deps);
      expect(machine.requests.length, at).toBeGreaterThanOrEqual(requests.length + times);
      const { commits, items } = record;
      expect(report, at).toMatchObject({ outcome: "succeeded", commits, items });
      expect(await goOn(shape, job, clock), at).toMatchObject({
        again: { outcome: "duplicate" },
        next: { outcome: "succeeded" },
      });
      const records = await recordsOf(job, clock);
      expect(
        records.map(({ outcome }) => outcome),
        at,
      ).toEqual(["succeeded", "succeeded"]);
      expect(records[0], at).toMatchObject({ id: report.run, commits, items });
      await expectAllDone(shape, job, clock, undisturbed).catch((error) => {
        throw new Error(at, { cause: error });
      });
    }
  });
});
