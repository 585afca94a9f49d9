/** Run records that are written outside a finish, and reading them. */
import { describe, expect, it } from "vitest";
import { expiryMs, minute, openScene, type StoreUnderTest } from "./conformance.ts";

export const recordsConformance = (under: StoreUnderTest): void => {
  describe("the record of a run that never finished", () => {
    it("says crashed, and how much it had committed", async () => {
      const scene = openScene(under.store);
      const { tick } = scene;
      const dead = await scene.grant({
        tick,
        run: { id: "dead", startedAt: scene.clock.now(), trigger: "schedule", tick, requestId: "q", version: "v1" },
      });
      await scene.commit(dead, [], { items: 30 });
      await scene.commit(dead, [], { items: 70, seq: 1 });
      scene.clock.advance(expiryMs);
      const { prev } = (await scene.grant()).state;
      expect(await scene.recordCrashed(prev)).toEqual(prev);
      expect(await scene.records()).toEqual([
        {
          job: scene.job,
          id: "dead",
          owner: dead.lease.owner,
          fence: dead.lease.fence,
          outcome: "crashed",
          trigger: "schedule",
          requestId: "q",
          version: "v1",
          startedAt: dead.lease.run.startedAt,
          endedAt: scene.clock.now(),
          items: 70,
          commits: 2,
          ticks: { from: tick, through: tick, count: 1 },
        },
      ]);
    });

    it("is written only where there is none: what is on record stays, and counts as recorded", async () => {
      const scene = openScene(under.store);
      const granted = await scene.grant();
      await scene.finish(granted);
      const before = await scene.records();
      expect(await scene.recordCrashed([granted.lease.run])).toEqual([granted.lease.run]);
      expect(await scene.records()).toEqual(before);
    });

    it("is written once, whoever else records it later", async () => {
      const scene = openScene(under.store);
      await scene.grant();
      scene.clock.advance(expiryMs);
      const { prev } = (await scene.grant()).state;
      await scene.recordCrashed(prev);
      const before = await scene.records();
      scene.clock.advance(minute);
      expect(await scene.recordCrashed(prev)).toEqual(prev);
      expect(await scene.records()).toEqual(before);
    });
  });

  describe("the record of a run that learnt that it had lost its lease", () => {
    it("is written where there is none", async () => {
      const scene = openScene(under.store);
      const a = await scene.grant();
      await scene.grant({ takeover: { fence: a.lease.fence } });
      expect(await scene.recordLost(a, { commits: 4, items: 9 })).toBe("lease_lost");
      expect(await scene.records()).toMatchObject([
        { id: a.lease.run.id, outcome: "lease_lost", commits: 4, items: 9 },
      ]);
    });

    it("replaces its own record as crashed", async () => {
      const scene = openScene(under.store);
      const a = await scene.grant();
      await scene.grant({ takeover: { fence: a.lease.fence } });
      await scene.recordCrashed([a.lease.run]);
      expect(await scene.recordLost(a)).toBe("lease_lost");
      expect(await scene.records()).toMatchObject([{ outcome: "lease_lost" }]);
    });

    it("leaves its record as crashed where that counts a commit that it doesn't know of", async () => {
      const scene = openScene(under.store);
      const a = await scene.grant();
      await scene.commit(a, [], { items: 7 });
      const { prev } = (await scene.grant({ takeover: { fence: a.lease.fence } })).state;
      await scene.recordCrashed(prev);
      const before = await scene.records();
      expect(await scene.recordLost(a)).toBe("crashed");
      expect(await scene.records()).toEqual(before);
      expect(await scene.recordLost(a, { commits: 1, items: 7 })).toBe("lease_lost");
      expect(await scene.records()).toMatchObject([{ outcome: "lease_lost", commits: 1, items: 7 }]);
    });

    it.each(["succeeded", "failed", "timed_out"] as const)("leaves its record as %s, and says so", async (outcome) => {
      const scene = openScene(under.store);
      const a = await scene.grant();
      await scene.finish(a, outcome);
      const before = await scene.records();
      expect(await scene.recordLost(a)).toBe(outcome);
      expect(await scene.records()).toEqual(before);
    });

    it("leaves another run's record as crashed alone", async () => {
      const scene = openScene(under.store);
      const a = await scene.grant();
      await scene.recordCrashed([{ ...a.lease.run, owner: "stranger" }]);
      const before = await scene.records();
      expect(await scene.recordLost(a)).toBe("crashed");
      expect(await scene.records()).toEqual(before);
    });

    it("is seen by a successor that comes to record it as crashed, and stays", async () => {
      const scene = openScene(under.store);
      const a = await scene.grant();
      const b = await scene.grant({ takeover: { fence: a.lease.fence } });
      await scene.recordLost(a);
      expect(await scene.recordCrashed(b.state.prev)).toEqual(b.state.prev);
      expect(await scene.records()).toMatchObject([{ outcome: "lease_lost" }]);
    });
  });

  describe("run records", () => {
    it("are read newest first, page by page, of one job only", async () => {
      const [scene, other] = [openScene(under.store), openScene(under.store)];
      await other.finish(await other.grant());
      const ids: string[] = [];
      for (let i = 0; i < 5; i++) {
        const granted = await scene.grant();
        ids.unshift(granted.lease.run.id);
        await scene.finish(granted);
        scene.clock.advance(minute);
      }
      await scene.pause();
      const seen: string[] = [];
      for (let before: string | undefined, pages = 0; pages < 10; pages++) {
        const page = await scene.store.runs(
          scene.job,
          { limit: 2, ...(before === undefined ? {} : { before }) },
          scene.budget(),
        );
        expect(page.runs.length).toBeLessThanOrEqual(2);
        seen.push(...page.runs.map(({ id }) => id));
        before = page.next;
        if (before === undefined) break;
      }
      expect(seen).toEqual(ids);
    });

    it("are read oldest first from an instant on, whole or in brief, and by the beginning of an id", async () => {
      const [scene, other] = [openScene(under.store), openScene(under.store)];
      await other.finish(await other.grant());
      const started: number[] = [];
      for (const id of ["ab1", "ab2", "b3", "ab4"]) {
        const now = scene.clock.now();
        const { tick } = scene;
        const granted = await scene.grant({ run: { id, startedAt: now, trigger: "schedule" } });
        const { record } = scene.finishOf(granted);
        const more = { ticks: { from: tick, through: tick, count: 1 }, completed: tick, nextTick: tick + minute };
        await scene.finish(granted, "succeeded", { record: { ...record, ...more, watermarkAfter: "w" } });
        started.push(now);
        scene.clock.advance(minute);
      }
      await scene.pause();
      const { store, job } = scene;
      for (const kind of ["runsSince", "coverage"] as const) {
        const from = started[1] as number;
        const first = await store[kind](job, { limit: 2, from }, scene.budget());
        const next = await store[kind](job, { limit: 2, from, after: first.next as string }, scene.budget());
        expect([first, next].map(({ runs }) => runs.map(({ id }) => id))).toEqual([["ab2", "b3"], ["ab4"]]);
      }
      const whole = (await store.runsSince(job, { limit: 1, from: 0 }, scene.budget())).runs[0];
      const { id, fence, outcome, startedAt, endedAt, ticks, completed, nextTick } = whole!;
      expect((await store.coverage(job, { limit: 1, from: 0 }, scene.budget())).runs).toEqual([
        { id, fence, outcome, startedAt, endedAt, ticks, completed, nextTick },
      ]);
      const named = async (beginning: string, most: number) =>
        (await store.runsNamed(job, beginning, most, scene.budget())).map((run) => run.id);
      expect([await named("ab", 9), await named("ab", 2), await named("ab2", 9), await named("c", 9)]).toEqual([
        ["ab4", "ab2", "ab1"],
        ["ab4", "ab2"],
        ["ab2"],
        [],
      ]);
    });

    it("are read apart from acts, which are paged newest first", async () => {
      const scene = openScene(under.store);
      for (const act of [scene.pause, scene.resume, scene.pause]) {
        await act();
        scene.clock.advance(minute);
      }
      const read = (before?: string) =>
        scene.store.acts(scene.job, { limit: 2, ...(before === undefined ? {} : { before }) }, scene.budget());
      const first = await read();
      const second = await read(first.next);
      expect([...first.acts, ...second.acts].map(({ kind, by }) => [kind, by])).toEqual([
        ["pause", "ann"],
        ["resume", "ann"],
        ["pause", "ann"],
      ]);
      expect(first.acts).toHaveLength(2);
      expect(await scene.records()).toEqual([]);
    });

    it("keep every field, watermarks and errors too", async () => {
      const scene = openScene(under.store);
      const granted = await scene.grant();
      const { record } = scene.finishOf(granted, "failed");
      const full = {
        ...record,
        reason: "by hand",
        version: "v1",
        requestId: "q",
        ticks: { from: scene.tick, through: scene.tick + minute, count: 2 },
        completed: scene.tick,
        watermarkBefore: null,
        watermarkAfter: { a: [1.5, "x", false, {}] },
        error: { name: "Error", code: "E", message: "m" },
        nextTick: scene.tick + 2 * minute,
        backlog: "12 left",
      };
      await scene.finish(granted, "failed", { record: full });
      expect(await scene.records()).toEqual([full]);
    });
  });
};
