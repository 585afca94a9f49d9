/**
 * The control item is written by every acquisition, commit and finish: under 1 KB each costs one write unit (two in a
 * transaction). https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
 */
import { randomUUID } from "node:crypto";
import { cron, defineJob, runJob } from "cronfence";
import { settableClock } from "cronfence/testing";
import { expect, it } from "vitest";
import { silentLog } from "../fixture.ts";
import { expiryMs, minute, openScene } from "./conformance.ts";
import { increment, useDynamo } from "./dynamo.ts";

const dynamo = useDynamo();

/** As DynamoDB counts it, which is what a write of the item is checked by. */
const sizeOf = async (job: string): Promise<number> => {
  const Item = (await dynamo.controlItem(job)) as Record<string, never>;
  return dynamo.store.prepare([{ Put: { TableName: "elsewhere", Item } }]).bytes;
};

it("the control item stays under 1 KB in normal use, in mid-run and between runs", async () => {
  const clock = settableClock("2026-01-01T00:00:00Z", { autoAdvance: { atMostMs: 5_000 } });
  const name = `expire-carts-${randomUUID().slice(0, 8)}`;
  const sizes: { running: number; idle: number }[] = [];
  const job = defineJob({
    name,
    schedule: cron("*/5 * * * *"),
    timeout: "4m",
    run: async (run) => {
      clock.advance(1_234);
      for (let i = 0; i < 3; i++) {
        await run.commit([increment(`row-of-${name}`)], {
          watermark: { expiresAtId: `2026-01-01T00:00:00.000Z#${randomUUID()}`, id: randomUUID() },
          items: 1_234,
        });
      }
      sizes.push({ running: await sizeOf(name), idle: 0 });
    },
  });
  for (let i = 0; i < 30; i++) {
    const tick = clock.now();
    const trigger = { kind: "schedule", tick, requestId: randomUUID(), attempt: 1 } as const;
    const deps = { store: dynamo.store, clock, log: silentLog, version: "2026-01-01.abcdef1" };
    expect((await runJob(job, trigger, deps)).outcome).toBe("succeeded");
    sizes.at(-1)!.idle = await sizeOf(name);
    clock.set(tick + 5 * minute);
  }
  const item = await dynamo.controlItem(name);
  expect([JSON.parse(String(item.recent)), item.recentOwners]).toMatchObject([{ length: 20 }, { length: 8 }]);
  expect(sizes).toHaveLength(30);
  expect(Math.max(...sizes.map(({ idle }) => idle))).toBeLessThan(1_024);
  expect(Math.max(...sizes.map(({ running }) => running))).toBeLessThan(1_024);
  // It doesn't creep: the last ten are within a few bytes of each other.
  const last = sizes.slice(-10).map(({ idle }) => idle);
  expect(Math.max(...last) - Math.min(...last)).toBeLessThan(16);
});

it("the control item has a bound even where no run ever finishes", async () => {
  const scene = openScene(dynamo.store);
  for (let i = 0; i < 45; i++) {
    const granted = await scene.grant({ tick: scene.tick });
    await scene.commit(granted, [], { watermark: "x".repeat(100) });
    scene.clock.advance(expiryMs);
    expect((await scene.read()).prev.length).toBeLessThanOrEqual(20);
  }
  expect(await sizeOf(scene.job)).toBeLessThan(8 * 1_024);
});
