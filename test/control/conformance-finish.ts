/** Ending a run: lease, tick, record and last writes in one, once, and never over a successor. */
import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  expiryMs,
  kept,
  leaseLost,
  minute,
  openScene,
  regrant,
  restoreUnder,
  type StoreUnderTest,
} from "./conformance.ts";

export const finishConformance = (under: StoreUnderTest): void => {
  describe("a finish", () => {
    it("gives the lease back, completes the tick, records the run and makes the last writes, all at once", async () => {
      const scene = openScene(under.store);
      const { tick, clock } = scene;
      const granted = await scene.grant({ tick });
      const row = randomUUID();
      const { record } = scene.finishOf(granted);
      clock.advance(1_000);
      const result = await scene.finish(granted, "succeeded", {
        tick,
        watermark: ["w"],
        writes: scene.store.prepare([under.increment(row)]),
        record: { ...record, endedAt: clock.now(), items: 1, watermarkAfter: ["w"] },
        recent: [{ durationMs: 1_000, items: 1 }],
        lastSuccessAt: clock.now(),
      });
      expect(result).toEqual({ kind: "finished", outcome: "succeeded" });
      expect(await scene.read()).toEqual({
        job: scene.job,
        fence: granted.lease.fence,
        since: granted.state.since,
        prev: [],
        recentOwners: [granted.lease.owner],
        watermark: ["w"],
        tick,
        unfinished: 0,
        failedTicks: 0,
        lastSuccessAt: clock.now(),
        recent: [{ durationMs: 1_000, items: 1 }],
      });
      expect(await scene.records()).toEqual([{ ...record, endedAt: clock.now(), items: 1, watermarkAfter: ["w"] }]);
      expect(await under.row(row)).toBe(1);
    });

    it("as failed gives the lease back, counts the failure, and leaves tick and watermark alone", async () => {
      const scene = openScene(under.store);
      const { tick } = scene;
      await scene.finish(await scene.grant({ tick: tick - minute }), "succeeded", {
        tick: tick - minute,
        watermark: 1,
      });
      const granted = await scene.grant({ tick });
      expect(await scene.finish(granted, "failed")).toEqual({ kind: "finished", outcome: "failed" });
      const state = await scene.read();
      expect(state).toMatchObject({
        tick: tick - minute,
        watermark: 1,
        failedTicks: 1,
        lastFailedTick: tick,
        unfinished: 0,
      });
      expect([state.owner, state.leaseUntil, state.run]).toEqual([undefined, undefined, undefined]);
      await scene.grant({ tick });
    });

    it("case 3: twice finds out that it has been done: the tick moves once and the run counts once", async () => {
      const scene = openScene(under.store);
      const { tick } = scene;
      const granted = await scene.grant({ tick });
      await scene.finish(granted, "succeeded", { tick });
      const before = await kept(scene);
      expect(await scene.finish(granted, "succeeded", { tick })).toEqual({ kind: "finished", outcome: "succeeded" });
      // How it is on record goes before how it is asked for now.
      const record = { outcome: "succeeded", commits: 0 };
      expect(await scene.finish(granted, "failed")).toMatchObject({ kind: "finished", outcome: "succeeded", record });
      expect(await kept(scene)).toEqual(before);
      await scene.grant({ tick: tick + minute });
    });

    it("takes the predecessors off that are on record, and keeps the others", async () => {
      const scene = openScene(under.store);
      await scene.grant();
      scene.clock.advance(expiryMs);
      await scene.grant();
      scene.clock.advance(expiryMs);
      const granted = await scene.grant();
      const [first, second] = granted.state.prev;
      await scene.finish(granted, "failed", { prev: [second!] });
      const state = await scene.read();
      expect(state.prev).toEqual([second]);
      expect(first).toBeDefined();
      await scene.finish(await scene.grant());
      expect((await scene.read()).prev).toEqual([]);
    });

    it("as a success takes a pending tick away that it covers", async () => {
      const scene = openScene(under.store);
      const { tick } = scene;
      const granted = await scene.grant({ tick });
      await scene.queue(granted, tick);
      await scene.finish(granted, "succeeded", { tick });
      expect((await scene.read()).pending).toBeUndefined();
    });

    it("as a success is refused while a later tick is pending, and again until that is covered", async () => {
      const scene = openScene(under.store);
      const { tick } = scene;
      const granted = await scene.grant({ tick });
      await scene.queue(granted, tick + minute);
      const before = await kept(scene);
      expect(await scene.finish(granted, "succeeded", { tick })).toEqual({ kind: "pending", tick: tick + minute });
      // A run that covers no ticks can't take one away either.
      expect(await scene.finish(granted, "succeeded", { success: { covered: undefined } })).toMatchObject({
        kind: "pending",
      });
      expect(await kept(scene)).toEqual(before);
      const success = { covered: tick + minute };
      expect((await scene.finish(granted, "succeeded", { tick: tick + minute, success })).kind).toBe("finished");
      expect((await scene.read()).pending).toBeUndefined();
    });

    it("as anything but a success keeps what is pending", async () => {
      const scene = openScene(under.store);
      for (const outcome of ["failed", "capped", "timed_out", "interrupted"] as const) {
        const granted = await scene.grant();
        await scene.queue(granted, scene.tick + minute);
        expect((await scene.finish(granted, outcome)).kind).toBe("finished");
        expect((await scene.read()).pending).toBe(scene.tick + minute);
      }
    });

    it("that doesn't count a commit which was applied finds that out, and is made with the next count", async () => {
      const scene = openScene(under.store);
      const granted = await scene.grant();
      const row = randomUUID();
      await scene.commit(granted, [under.increment(row)]);
      const last = { writes: scene.store.prepare([under.increment(row)]) };
      expect(await scene.finish(granted, "succeeded", last)).toMatchObject({
        kind: "late_commit",
        state: { run: { seq: 1 } },
      });
      expect([await under.row(row), await scene.records()]).toEqual([1, []]);
      expect((await scene.finish(granted, "succeeded", { ...last, seq: 1 })).kind).toBe("finished");
      expect(await under.row(row)).toBe(2);
    });

    it("whose last write is rejected ends nothing: the lease is held and the run can end otherwise", async () => {
      const scene = openScene(under.store);
      const granted = await scene.grant();
      const row = randomUUID();
      await scene.commit(granted, [under.insert(row)]);
      const before = await kept(scene);
      const writes = scene.store.prepare([under.increment(randomUUID()), under.insert(row)]);
      await expect(scene.finish(granted, "succeeded", { seq: 1, writes })).rejects.toMatchObject({
        code: "WRITE_REJECTED",
        rejected: [{ index: 1, code: "ConditionalCheckFailed" }],
      });
      expect(await kept(scene)).toEqual(before);
      expect((await scene.finish(granted, "failed", { seq: 1 })).kind).toBe("finished");
    });

    it("case 8: that comes late doesn't free the successor's lease", async () => {
      const scene = openScene(under.store);
      const a = await scene.grant();
      scene.clock.advance(expiryMs);
      const b = await scene.grant();
      await expect(scene.finish(a)).rejects.toEqual(leaseLost("none"));
      expect(await scene.read()).toEqual(b.state);
      expect(await scene.acquire()).toMatchObject({ kind: "held", state: { owner: b.lease.owner } });
    });

    it("case 9: that comes late leaves what the successor recorded as it is", async () => {
      const scene = openScene(under.store);
      const { tick } = scene;
      const row = randomUUID();
      const a = await scene.grant({ tick });
      scene.clock.advance(expiryMs);
      const b = await scene.grant({ tick });
      await scene.recordCrashed(b.state.prev);
      await scene.finish(b, "succeeded", { tick, watermark: "b" });
      const before = await kept(scene);
      const late = { tick, watermark: "a", writes: scene.store.prepare([under.increment(row)]) };
      await expect(scene.finish(a, "timed_out", late)).rejects.toEqual(leaseLost("none"));
      expect(await kept(scene)).toEqual(before);
      expect(await under.row(row)).toBeUndefined();
    });

    it("is refused under an old fence although its owner was granted again", async () => {
      const scene = openScene(under.store);
      const { first, again } = await regrant(scene);
      await expect(scene.finish(first)).rejects.toEqual(leaseLost("none"));
      expect(await scene.read()).toEqual(again.state);
      expect(await scene.records()).toHaveLength(1);
    });

    it("is refused to a holder whose fence was granted to another from a restored table", async () => {
      const scene = openScene(under.store);
      const { a, b } = await restoreUnder(under, scene);
      await expect(scene.finish(a)).rejects.toEqual(leaseLost("none"));
      expect(await scene.read()).toEqual(b.state);
      expect(await scene.records()).toEqual([]);
    });

    it("doesn't overwrite the record of another run, and ends nothing then", async () => {
      const scene = openScene(under.store);
      const granted = await scene.grant();
      const stranger = { ...granted.lease.run, owner: "stranger" };
      await scene.recordCrashed([stranger]);
      const before = await kept(scene);
      await expect(scene.finish(granted)).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
      expect(await kept(scene)).toEqual(before);
    });

    it("replaces its own record, should there be one while it still holds the lease", async () => {
      const scene = openScene(under.store);
      const granted = await scene.grant();
      await scene.recordCrashed([granted.lease.run]);
      expect((await scene.finish(granted)).kind).toBe("finished");
      expect(await scene.records()).toMatchObject([{ outcome: "succeeded" }]);
    });

    it("of a run that an operator cancelled finds that out", async () => {
      const scene = openScene(under.store);
      const granted = await scene.grant();
      await scene.cancel();
      const before = await kept(scene);
      const record = { outcome: "cancelled" };
      expect(await scene.finish(granted)).toMatchObject({ kind: "finished", outcome: "cancelled", record });
      expect(await kept(scene)).toEqual(before);
    });

    it("of a run that its successor recorded as crashed is lost, not finished", async () => {
      const scene = openScene(under.store);
      const a = await scene.grant();
      scene.clock.advance(expiryMs);
      const b = await scene.grant();
      await scene.recordCrashed(b.state.prev);
      await expect(scene.finish(a)).rejects.toEqual(leaseLost("none"));
      await scene.recordLost(a);
      await expect(scene.finish(a)).rejects.toEqual(leaseLost("none"));
      expect(await scene.records()).toMatchObject([{ outcome: "lease_lost" }]);
    });
  });
};
