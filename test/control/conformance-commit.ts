/** Committing under a lease: writes, watermark and tick together, and never after a greater fence was granted. */
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
  ttlMs,
} from "./conformance.ts";

export const commitConformance = (under: StoreUnderTest): void => {
  describe("a commit", () => {
    it("makes its writes, the watermark, the tick and its count visible, and renews the lease", async () => {
      const scene = openScene(under.store);
      const granted = await scene.grant();
      const [a, b] = [randomUUID(), randomUUID()];
      const watermark = { day: "2026-01-01", at: [1, null, { ключ: true }] };
      const leaseUntil = scene.clock.now() + 2 * ttlMs;
      const { tick } = scene;
      const writes = [under.increment(a), under.increment(b)];
      expect(await scene.commit(granted, writes, { watermark, leaseUntil, tick })).toEqual({ seq: 1 });
      expect([await under.row(a), await under.row(b)]).toEqual([1, 1]);
      expect(await scene.read()).toMatchObject({
        watermark,
        tick,
        leaseUntil,
        run: { seq: 1, items: 2, fence: granted.lease.fence, owner: granted.lease.owner },
      });
    });

    it("without a watermark, tick or part leaves them as they are", async () => {
      const scene = openScene(under.store);
      const granted = await scene.grant();
      const tickPart = { tick: scene.tick + minute, done: 99, total: 150 };
      await scene.commit(granted, [], { watermark: 7, tick: scene.tick, tickPart });
      await scene.commit(granted, [], { seq: 1 });
      expect(await scene.read()).toMatchObject({ watermark: 7, tick: scene.tick, tickPart, run: { seq: 2 } });
      await scene.commit(granted, [], { seq: 2, tick: scene.tick + minute, tickPart: null });
      expect((await scene.read()).tickPart).toBeUndefined();
    });

    it("may say that the run covers more ticks, and which predecessors are left to be recorded", async () => {
      const scene = openScene(under.store);
      await scene.grant();
      scene.clock.advance(expiryMs);
      const granted = await scene.grant({ tick: scene.tick });
      const recentOwners = granted.state.prev.map(({ owner }) => owner);
      await scene.commit(granted, [], { covers: scene.tick + minute, prev: [], recentOwners });
      expect(await scene.read()).toMatchObject({ prev: [], recentOwners, run: { tick: scene.tick + minute } });
    });

    it("whose write is rejected changes nothing at all, says which write it was, and the run goes on", async () => {
      const scene = openScene(under.store);
      const granted = await scene.grant();
      const [taken, other, next] = [randomUUID(), randomUUID(), randomUUID()];
      await scene.commit(granted, [under.insert(taken)], { watermark: 1 });
      const before = await kept(scene);
      const result = await scene.commit(granted, [under.increment(other), under.increment(next), under.insert(taken)], {
        seq: 1,
        watermark: 2,
      });
      expect(result).toMatchObject({
        seq: 1,
        rejected: { code: "WRITE_REJECTED", rejected: [{ index: 2, code: "ConditionalCheckFailed" }] },
      });
      expect(await kept(scene)).toEqual(before);
      expect([await under.row(other), await under.row(next), await under.row(taken)]).toEqual([
        undefined,
        undefined,
        1,
      ]);
      expect(await scene.commit(granted, [under.increment(other)], { seq: 1, watermark: 3 })).toEqual({ seq: 2 });
    });

    it("case 7: by a holder that slept past its lease changes nothing once a successor was granted", async () => {
      const scene = openScene(under.store);
      const row = randomUUID();
      const a = await scene.grant();
      scene.clock.advance(expiryMs);
      const b = await scene.grant();
      await scene.commit(b, [under.increment(row)], { watermark: "b" });
      const before = await kept(scene);
      await expect(scene.commit(a, [under.increment(row)], { watermark: "a" })).rejects.toEqual(
        leaseLost("not applied"),
      );
      expect(await kept(scene)).toEqual(before);
      expect(await under.row(row)).toBe(1);
      expect(await scene.commit(b, [under.increment(row)], { seq: 1 })).toEqual({ seq: 2 });
    });

    it("by an expired holder that nobody has replaced is accepted: the fence decides, not the time", async () => {
      const scene = openScene(under.store);
      const granted = await scene.grant();
      scene.clock.advance(10 * expiryMs);
      expect(await scene.commit(granted)).toEqual({ seq: 1 });
    });

    it("is refused under an old fence although its owner was granted again", async () => {
      const scene = openScene(under.store);
      const { first, again } = await regrant(scene);
      const row = randomUUID();
      await expect(scene.commit(first, [under.increment(row)], { watermark: "old" })).rejects.toEqual(
        leaseLost("not applied"),
      );
      expect(await under.row(row)).toBeUndefined();
      expect(await scene.commit(again, [under.increment(row)])).toEqual({ seq: 1 });
    });

    it("is refused to a holder whose fence was granted to another from a restored table", async () => {
      const scene = openScene(under.store);
      const { a, b } = await restoreUnder(under, scene);
      const row = randomUUID();
      await expect(scene.commit(a, [under.increment(row)])).rejects.toEqual(leaseLost("not applied"));
      expect(await under.row(row)).toBeUndefined();
      expect(await scene.commit(b, [under.increment(row)])).toEqual({ seq: 1 });
    });

    it("that counts fewer commits than were applied is refused: nothing is applied twice", async () => {
      const scene = openScene(under.store);
      const granted = await scene.grant();
      const row = randomUUID();
      await scene.commit(granted, [under.increment(row)]);
      await expect(scene.commit(granted, [under.increment(row)])).rejects.toEqual(leaseLost("not applied"));
      expect(await under.row(row)).toBe(1);
      expect((await scene.read()).run?.seq).toBe(1);
    });

    it("is refused once the run has ended, and once it was cancelled", async () => {
      const scene = openScene(under.store);
      const ended = await scene.grant();
      await scene.finish(ended);
      await expect(scene.commit(ended)).rejects.toEqual(leaseLost("not applied"));
      const cancelled = await scene.grant();
      await scene.cancel();
      await expect(scene.commit(cancelled)).rejects.toEqual(leaseLost("not applied"));
    });

    it("of one job doesn't touch another", async () => {
      const [scene, other] = [openScene(under.store), openScene(under.store)];
      const granted = await scene.grant();
      const theirs = await other.grant();
      await scene.commit(granted, [], { watermark: 1 });
      expect(await other.read()).toEqual(theirs.state);
    });
  });
};
