/**
 * What the conformance suite needs of a store, and the acts its tests are told in. The suite is the `conformance-*.ts`
 * files beside this one: each exports a function that takes a store under test, so that another store proves itself with
 * one test file that calls them all. `dynamo.ts` is the DynamoDB one.
 */
import { randomUUID } from "node:crypto";
import type {
  AcquireRequest,
  AcquireResult,
  Act,
  Budget,
  Commit,
  ControlState,
  ControlStore,
  Finish,
  Json,
  Lease,
  RunEntry,
  RunOutcome,
  RunRecord,
  Write,
} from "cronfence";
import { type SettableClock, settableClock } from "cronfence/testing";
import { expect } from "vitest";
import { tally } from "../../src/control/tally.ts";
import { freshName } from "../fixture.ts";

/** A store, and what the tests do beside it. Rows are users' data: a number each, by id. */
export interface StoreUnderTest {
  readonly store: ControlStore;
  /** Adds one to row `id`, which starts at 0: shows how often a commit was applied. */
  increment(id: string): Write;
  /** Makes row `id` with the value 1; the store rejects it where the row exists. */
  insert(id: string): Write;
  row(id: string): Promise<number | undefined>;
  /** What operators did to `job`, oldest first. */
  acts(job: string): Promise<readonly Record<string, unknown>[]>;
  /** Takes a backup of everything that is kept of `job` but its run records; the result puts it back. */
  backup(job: string): Promise<() => Promise<void>>;
}

export const minute = 60_000;
export const ttlMs = 30_000;
export const skewMs = 10_000;
/** A lease that was not renewed is free after this. */
export const expiryMs = ttlMs + skewMs + 1;

export interface Granted {
  readonly lease: Lease;
  readonly state: ControlState;
}

/** One job on a clock of its own, and short forms of everything a run or an operator does to it. */
export interface Scene {
  readonly store: ControlStore;
  readonly clock: SettableClock;
  readonly job: string;
  /** The tick that is due when the scene opens. */
  readonly tick: number;
  budget(ms?: number): Budget;
  request(more?: Partial<AcquireRequest>): AcquireRequest;
  acquire(more?: Partial<AcquireRequest>): Promise<AcquireResult>;
  /** Acquires, and expects to be granted. */
  grant(more?: Partial<AcquireRequest>): Promise<Granted>;
  /** Commits `writes` as the run's first commit, or whichever `more` says. */
  commit(granted: Granted, writes?: readonly Write[], more?: Partial<Commit>): ReturnType<ControlStore["commit"]>;
  renew(granted: Granted, until?: number): Promise<void>;
  finishOf(granted: Granted, outcome?: RunOutcome, more?: Partial<Finish>): Finish;
  finish(granted: Granted, outcome?: RunOutcome, more?: Partial<Finish>): ReturnType<ControlStore["finish"]>;
  queue(holder: Granted, tick: number): Promise<"queued" | "moved">;
  recordCrashed(entries: readonly RunEntry[]): Promise<readonly RunEntry[]>;
  recordLost(granted: Granted, more?: Partial<RunRecord>): Promise<RunOutcome>;
  pause(more?: { until?: number; cancel?: boolean; fence?: number }): Promise<RunEntry | undefined>;
  resume(): Promise<void>;
  cancel(more?: { fence?: number }): Promise<RunEntry | undefined>;
  rewind(watermark: Json | null, more?: { cancel?: boolean; fence?: number }): Promise<RunEntry | undefined>;
  /** Skips the one tick, or all from `from` on. */
  skip(tick: number, more?: { from?: number; cancel?: boolean; fence?: number }): Promise<RunEntry | undefined>;
  move(to: string, more?: { cancel?: boolean; fence?: number }): Promise<RunEntry | undefined>;
  read(): Promise<ControlState>;
  /** Newest first. */
  records(): Promise<readonly RunRecord[]>;
  /** The same job through another client of the same store, which gives up after `budgetMs`. */
  through(store: ControlStore, budgetMs?: number): Scene;
}

export const operator: Act = { by: "ann", why: "because" };

export const openScene = (store: ControlStore, start = "2026-01-01T00:00:00Z"): Scene =>
  sceneOf(store, settableClock(start, { autoAdvance: true }), freshName(), Date.parse(start));

const sceneOf = (
  store: ControlStore,
  clock: SettableClock,
  job: string,
  tick: number,
  budgetMs: number = minute,
): Scene => {
  const { prepare } = store;
  const scene: Scene = {
    store,
    clock,
    job,
    tick,
    budget: (ms = budgetMs) => ({ clock, until: clock.now() + ms, random: () => 1 }),
    request: (more = {}) => ({
      job,
      owner: randomUUID(),
      run: {
        id: randomUUID(),
        startedAt: clock.now(),
        trigger: "schedule",
        ...(more.tick === undefined ? {} : { tick: more.tick }),
      },
      now: clock.now(),
      ttlMs,
      skewMs,
      ...more,
    }),
    acquire: (more) => store.acquire(scene.request(more), scene.budget()),
    grant: async (more) => {
      const result = await scene.acquire(more);
      expect(result.kind).toBe("acquired");
      return result as Granted & { kind: "acquired" };
    },
    commit: ({ lease }, writes = [], more = {}) =>
      store.commit(
        lease,
        {
          seq: 0,
          leaseUntil: clock.now() + ttlMs,
          items: writes.length,
          writes: prepare(writes, more.watermark),
          ...more,
        },
        scene.budget(),
      ),
    renew: ({ lease }, until = clock.now() + ttlMs) => store.renew(lease, until, scene.budget()),
    finishOf: ({ lease, state }, outcome = "succeeded", more = {}) => ({
      seq: 0,
      record: { ...recordOf(lease, outcome, clock.now()), ...more.record },
      writes: prepare([]),
      prev: [],
      ...(outcome === "succeeded" ? { success: { covered: lease.run.tick } } : {}),
      ...tally(
        state,
        { outcome, owner: lease.owner, tick: lease.run.tick, at: clock.now(), durationMs: 1, items: 0 },
        state.prev,
      ),
      ...more,
    }),
    finish: (granted, outcome, more) =>
      store.finish(granted.lease, scene.finishOf(granted, outcome, more), scene.budget()),
    queue: ({ state }, later) => store.queue(job, later, state, scene.budget()),
    recordCrashed: (entries) => store.recordCrashed(job, entries, clock.now(), scene.budget()),
    recordLost: async ({ lease }, more) => {
      const record = { ...recordOf(lease, "lease_lost", clock.now()), ...more };
      return (await store.recordLost(record, scene.budget())).outcome;
    },
    pause: (more) => store.pause(job, { ...operator, at: clock.now(), ...more }, scene.budget()),
    resume: () => store.resume(job, operator, clock.now(), scene.budget()),
    cancel: (more) => store.cancel(job, { ...operator, ...more }, clock.now(), scene.budget()),
    rewind: (watermark, more) => store.rewind(job, watermark, { ...operator, ...more }, clock.now(), scene.budget()),
    skip: (through, { from = through, ...more } = {}) =>
      store.skip(job, { from, through, count: 1 }, { ...operator, ...more }, clock.now(), scene.budget()),
    move: (to, more) => store.move(job, to, { ...operator, ...more }, clock.now(), scene.budget()),
    read: async () => {
      const state = await store.read(job, scene.budget());
      expect(state).toBeDefined();
      return state!;
    },
    records: async () => (await store.runs(job, { limit: 100 }, scene.budget())).runs,
    through: (other, ms) => sceneOf(other, clock, job, tick, ms),
  };
  return scene;
};

const recordOf = ({ job, owner, fence, run }: Lease, outcome: RunOutcome, at: number): RunRecord => ({
  job,
  owner,
  fence,
  id: run.id,
  outcome,
  trigger: run.trigger,
  startedAt: run.startedAt,
  endedAt: at,
  items: 0,
  commits: 0,
});

/** Holder A lost its lease to B, which has finished and forgotten A; then A's acquisition was granted once more. */
export const regrant = async (scene: Scene): Promise<{ first: Granted; again: Granted; request: AcquireRequest }> => {
  const request = scene.request();
  const first = await scene.grant(request);
  scene.clock.advance(expiryMs);
  const successor = await scene.grant();
  await scene.finish(successor, "failed", { prev: [], recentOwners: [] });
  const again = await scene.grant({ ...request, now: scene.clock.now() });
  expect(again.lease).toMatchObject({ owner: first.lease.owner, fence: first.lease.fence + 2 });
  return { first, again, request };
};

/** The table was restored from a backup taken before A was granted its fence, and B was granted the same fence then. */
export const restoreUnder = async (under: StoreUnderTest, scene: Scene): Promise<{ a: Granted; b: Granted }> => {
  await scene.store.create(scene.job, scene.clock.now(), scene.budget());
  const restore = await under.backup(scene.job);
  const a = await scene.grant();
  await restore();
  const b = await scene.grant();
  expect(b.lease.fence).toBe(a.lease.fence);
  return { a, b };
};

/** Everything that is kept of the job but `keys`, to compare before and after. */
export const kept = async (scene: Scene) => ({ state: await scene.read(), records: await scene.records() });

export const leaseLost = (lastCommit: "applied" | "not applied" | "unknown" | "none") =>
  expect.objectContaining({ code: "LEASE_LOST", lastCommit });
