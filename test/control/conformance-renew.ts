/** Prolonging a lease: only the holder's own, and only while it holds it. */
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

export const renewConformance = (under: StoreUnderTest): void => {
  describe("a renewal", () => {
    it("prolongs the lease and changes nothing else", async () => {
      const scene = openScene(under.store);
      const granted = await scene.grant();
      scene.clock.advance(ttlMs / 3);
      await scene.renew(granted);
      expect(await scene.read()).toEqual({ ...granted.state, leaseUntil: scene.clock.now() + ttlMs });
      scene.clock.advance(expiryMs - ttlMs / 3);
      expect((await scene.acquire()).kind).toBe("held");
    });

    it("by an expired holder that nobody has replaced is accepted", async () => {
      const scene = openScene(under.store);
      const granted = await scene.grant();
      scene.clock.advance(expiryMs);
      await scene.renew(granted);
      expect((await scene.acquire()).kind).toBe("held");
    });

    it("that comes late doesn't shorten what a commit has prolonged since", async () => {
      const scene = openScene(under.store);
      const granted = await scene.grant();
      const early = scene.clock.now() + ttlMs;
      await scene.commit(granted, [], { leaseUntil: early + minute });
      await scene.renew(granted, early);
      expect((await scene.read()).leaseUntil).toBe(early + minute);
      await scene.renew(granted, early + 2 * minute);
      expect((await scene.read()).leaseUntil).toBe(early + 2 * minute);
    });

    it("that comes after a successor was granted doesn't prolong the successor's lease", async () => {
      const scene = openScene(under.store);
      const a = await scene.grant();
      scene.clock.advance(expiryMs);
      await scene.grant();
      const before = await kept(scene);
      await expect(scene.renew(a, scene.clock.now() + 10 * ttlMs)).rejects.toEqual(leaseLost("none"));
      expect(await kept(scene)).toEqual(before);
    });

    it("that comes after the run has ended doesn't bring the lease back", async () => {
      const scene = openScene(under.store);
      const granted = await scene.grant();
      await scene.finish(granted);
      const before = await kept(scene);
      await expect(scene.renew(granted)).rejects.toEqual(leaseLost("none"));
      expect(await kept(scene)).toEqual(before);
    });

    it("is refused to a holder whose fence was granted to another from a restored table", async () => {
      const scene = openScene(under.store);
      const { a, b } = await restoreUnder(under, scene);
      await expect(scene.renew(a, scene.clock.now() + 10 * ttlMs)).rejects.toEqual(leaseLost("none"));
      expect(await scene.read()).toEqual(b.state);
    });

    it("is refused under an old fence although its owner was granted again", async () => {
      const scene = openScene(under.store);
      const { first, again } = await regrant(scene);
      await expect(scene.renew(first, scene.clock.now() + 10 * ttlMs)).rejects.toEqual(leaseLost("none"));
      expect(await scene.read()).toEqual(again.state);
    });
  });
};
