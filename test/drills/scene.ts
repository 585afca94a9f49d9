/**
 * What a test of real processes stands on: an engine with the main job's tables, workers, and one tick after another.
 * Processes are real and so are signals; the instant at which a run's clock starts is given, so nothing waits for a lease.
 */
import { afterAll, beforeAll, expect } from "vitest";
import { job } from "../../handlers/expire-carts.ts";
import { systemClock } from "../../src/clock.ts";
import { budgetOn, controlTable, type Fixture, useEngine } from "../fixture.ts";
import { cartsDueBy, createCartTables, deliveryMs, putCarts, readEffects, tickMs } from "./carts.ts";
import type { FireCommand } from "./worker.ts";
import { isHolding, startWorker, type WorkerProcess } from "./worker-process.ts";

export interface Scene {
  readonly fixture: Fixture;
  start(name: string, env?: Readonly<Record<string, string>>): Promise<WorkerProcess>;
  /** The next tick, with that many carts due. */
  nextTick(carts: number): Promise<number>;
  /** Delivers a tick and expects the run to come to the call that it holds back; the control item then. */
  runInto(worker: WorkerProcess, command: Omit<FireCommand, "do">): Promise<ControlItem>;
  control(): Promise<ControlItem>;
  /** The control item as soon as it is so; for what other processes are still about to write. */
  controlOnce(holds: (item: ControlItem) => boolean): Promise<ControlItem>;
  /** Oldest first. */
  records(): ReturnType<typeof recordsOf>;
  /** Expects every cart so far to have expired exactly once, by a run whose record says so. */
  expectEachOnce(): Promise<void>;
}

type ControlItem = NonNullable<Awaited<ReturnType<Fixture["store"]["read"]>>>;

/** When a tick is delivered. */
export const onTime = (tick: number): number => tick + deliveryMs;

export const useScene = (): Scene => {
  const fixture = useEngine();
  const workers: WorkerProcess[] = [];
  let tick = Date.parse("2026-03-02T06:00:00Z");
  let carts = 0;
  beforeAll(() => createCartTables(fixture.client));
  afterAll(() => Promise.all(workers.map((worker) => worker.end())));

  const scene: Scene = {
    fixture,
    start: async (name, env = {}) => {
      const worker = await startWorker(name, { endpoint: fixture.endpoint, table: controlTable, env });
      workers.push(worker);
      return worker;
    },
    nextTick: async (count) => {
      tick += tickMs;
      carts += count;
      await putCarts(fixture.client, cartsDueBy(tick, count));
      return tick;
    },
    runInto: async (worker, command) => {
      expect(isHolding(await worker.fire(command))).toBe(true);
      return scene.control();
    },
    control: async () => (await fixture.store.read(job.name, budgetOn(systemClock))) as ControlItem,
    controlOnce: async (holds) => {
      for (const giveUpAt = performance.now() + 10_000; ; ) {
        const item = await scene.control();
        if (holds(item)) return item;
        if (performance.now() > giveUpAt) throw new Error(`the control item is ${JSON.stringify(item)}`);
      }
    },
    records: () => recordsOf(fixture),
    expectEachOnce: async () => {
      const effects = await readEffects(fixture.client);
      const onRecord = (await recordsOf(fixture)).filter(({ items }) => items > 0);
      expect(effects).toEqual({
        rows: carts,
        fewest: 1,
        most: 1,
        open: 0,
        byRun: Object.fromEntries(onRecord.map(({ id, items }) => [id, items])),
      });
    },
  };
  return scene;
};

const recordsOf = async ({ store }: Fixture) =>
  [...(await store.runs(job.name, { limit: 500 }, budgetOn(systemClock))).runs].reverse();
