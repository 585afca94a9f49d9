/** Getting the lease, and asking its holder to cover a later tick. */
import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { expiryMs, minute, openScene, regrant, type StoreUnderTest, skewMs, ttlMs } from "./conformance.ts";

export const acquireConformance = (under: StoreUnderTest): void => {
  describe("first use", () => {
    it("makes the job known: its fence starts at the time in seconds, and nothing before now is owed", async () => {
      const scene = openScene(under.store);
      const { lease, state } = await scene.grant();
      const now = scene.clock.now();
      expect(state).toMatchObject({ since: now, unfinished: 1, failedTicks: 0, prev: [], owner: lease.owner });
      expect(lease.fence).toBe(now / 1000 + 1);
    });

    it("by two clients at once grants the lease to one of them, under the first fence", async () => {
      const scene = openScene(under.store);
      const results = await Promise.all([scene.acquire(), scene.acquire()]);
      expect(results.map(({ kind }) => kind).sort()).toEqual(["acquired", "held"]);
      const { fence, unfinished, prev } = await scene.read();
      expect({ fence, unfinished, prev }).toEqual({ fence: scene.clock.now() / 1000 + 1, unfinished: 1, prev: [] });
    });

    it("leaves a job alone that is known already", async () => {
      const scene = openScene(under.store);
      await scene.finish(await scene.grant());
      const before = await scene.read();
      scene.clock.advance(minute);
      await scene.store.create(scene.job, scene.clock.now(), scene.budget());
      expect(await scene.read()).toEqual(before);
    });

    it("owes ticks from an earlier instant when it is told to, though it couldn't have done them before now", async () => {
      const scene = openScene(under.store);
      const since = scene.tick - 5 * minute;
      expect((await scene.grant({ since })).state).toMatchObject({ since, activeSince: scene.clock.now() });
    });

    it("owes nothing older than its request, however long it takes to make the job known", async () => {
      const scene = openScene(under.store);
      const request = scene.request();
      scene.clock.advance(1_500);
      const { state } = await scene.grant(request);
      expect(state.since).toBe(request.now);
      expect(state).not.toHaveProperty("activeSince");
    });
  });

  describe("an acquisition", () => {
    it("raises the fence by one and gives the run its lease and its place on the item", async () => {
      const scene = openScene(under.store);
      const first = await scene.grant();
      await scene.finish(first);
      const run = { id: "r2", startedAt: scene.clock.now(), trigger: "manual", requestId: "q", version: "v7" } as const;
      const { lease, state } = await scene.grant({ run, owner: "o2" });
      expect(lease).toEqual({
        job: scene.job,
        owner: "o2",
        fence: first.lease.fence + 1,
        run: { ...run, owner: "o2", seq: 0 },
        ttlMs,
      });
      expect(state).toMatchObject({
        fence: lease.fence,
        owner: "o2",
        run: lease.run,
        leaseUntil: scene.clock.now() + ttlMs,
      });
      expect(await scene.read()).toEqual(state);
    });

    it("case 3: of a tick that is completed is a duplicate, and changes nothing", async () => {
      const scene = openScene(under.store);
      const { tick } = scene;
      await scene.finish(await scene.grant({ tick }), "succeeded", { tick });
      const before = await scene.read();
      for (const again of [tick, tick - minute]) {
        expect(await scene.acquire({ tick: again })).toMatchObject({ kind: "duplicate", state: { tick } });
      }
      expect(await scene.read()).toEqual(before);
      expect((await scene.acquire({ tick: tick + minute })).kind).toBe("acquired");
    });

    it("without a tick is granted whatever tick is completed", async () => {
      const scene = openScene(under.store);
      const { tick } = scene;
      await scene.finish(await scene.grant({ tick }), "succeeded", { tick });
      await scene.grant();
    });

    it("is refused while another run holds the lease, and says who", async () => {
      const scene = openScene(under.store);
      const { lease, state } = await scene.grant();
      const refused = await scene.acquire();
      expect(refused).toEqual({ kind: "held", state });
      expect(await scene.read()).toMatchObject({ owner: lease.owner, fence: lease.fence, unfinished: 1 });
    });

    it("gets a lease that has been over for the skew, not a moment sooner, with its run among the predecessors", async () => {
      const scene = openScene(under.store);
      const dead = await scene.grant();
      scene.clock.advance(ttlMs + skewMs);
      expect((await scene.acquire()).kind).toBe("held");
      scene.clock.advance(1);
      const { lease, state } = await scene.grant();
      expect(lease.fence).toBe(dead.lease.fence + 1);
      expect(state).toMatchObject({ prev: [dead.lease.run], unfinished: 2 });
    });

    it("case 12: by a clock that is ahead within the skew takes nothing over; past it, case 7 holds", async () => {
      const scene = openScene(under.store);
      const minuteLease = { ttlMs: minute, skewMs: 2 * minute };
      const holder = await scene.grant(minuteLease);
      scene.clock.advance(30_000);
      const challenger = (aheadMs: number) => scene.request({ ...minuteLease, now: scene.clock.now() + aheadMs });
      expect((await scene.acquire(challenger(90_000))).kind).toBe("held");
      await scene.grant(challenger(180_000));
      const row = randomUUID();
      await expect(scene.commit(holder, [under.increment(row)])).rejects.toMatchObject({ code: "LEASE_LOST" });
      expect(await under.row(row)).toBeUndefined();
    });

    it("that was granted already is recognised by its owner: the same lease, and no second fence", async () => {
      const scene = openScene(under.store);
      const request = scene.request();
      const { lease } = await scene.grant(request);
      expect(await scene.acquire(request)).toMatchObject({ kind: "acquired", lease });
      // However late it comes: its own lease being over doesn't make it another's.
      scene.clock.advance(expiryMs);
      expect(await scene.acquire({ ...request, now: scene.clock.now() })).toMatchObject({ kind: "acquired", lease });
      expect(await scene.read()).toMatchObject({ fence: lease.fence, unfinished: 1, prev: [] });
    });

    it("that took over is recognised by its owner even if it names the fence it was granted", async () => {
      const scene = openScene(under.store);
      const { lease: held } = await scene.grant();
      const request = scene.request({ takeover: { fence: held.fence } });
      const { lease } = await scene.grant(request);
      expect(await scene.acquire({ ...request, takeover: { fence: lease.fence } })).toMatchObject({ lease });
      expect((await scene.read()).fence).toBe(lease.fence);
    });

    it("that comes again after its run has ended isn't granted to nobody", async () => {
      const scene = openScene(under.store);
      const request = scene.request();
      await scene.finish(await scene.grant(request), "failed");
      const before = await scene.read();
      expect((await scene.acquire(request)).kind).toBe("held");
      expect(await scene.read()).toEqual(before);
    });

    it("that comes again after its run was replaced and its successor has ended isn't granted to nobody", async () => {
      const scene = openScene(under.store);
      const request = scene.request();
      await scene.grant(request);
      scene.clock.advance(expiryMs);
      await scene.finish(await scene.grant(), "failed");
      expect((await scene.acquire({ ...request, now: scene.clock.now() })).kind).toBe("held");
      expect((await scene.read()).owner).toBeUndefined();
    });

    it("that comes again after its run was replaced isn't granted a second time, neither by expiry nor by takeover", async () => {
      const scene = openScene(under.store);
      const request = scene.request();
      await scene.grant(request);
      scene.clock.advance(expiryMs);
      const { lease } = await scene.grant();
      scene.clock.advance(expiryMs);
      expect((await scene.acquire({ ...request, now: scene.clock.now() })).kind).toBe("held");
      expect((await scene.acquire({ ...request, takeover: { fence: lease.fence } })).kind).toBe("held");
      expect(await scene.read()).toMatchObject({ owner: lease.owner, fence: lease.fence });
    });

    it("remembers eight owners, the latest ones", async () => {
      const scene = openScene(under.store);
      const owners: string[] = [];
      for (let i = 0; i < 10; i++) {
        const granted = await scene.grant();
        owners.push(granted.lease.owner);
        await scene.finish(granted);
      }
      expect((await scene.read()).recentOwners).toEqual(owners.slice(-8));
    });

    it("waits for a backlog of 20 unfinished runs: they are recorded as crashed first, and taken off the item", async () => {
      const scene = openScene(under.store);
      const runs: string[] = [];
      for (let i = 0; i < 21; i++) {
        runs.push((await scene.grant()).lease.run.id);
        scene.clock.advance(expiryMs);
      }
      expect((await scene.read()).prev).toHaveLength(20);
      expect(await scene.records()).toEqual([]);
      const { state } = await scene.grant();
      expect(state.prev.map(({ id }) => id)).toEqual(runs.slice(20));
      expect(state.unfinished).toBe(22);
      const records = await scene.records();
      expect(records.map(({ id, outcome }) => [id, outcome])).toEqual(
        runs
          .slice(0, 20)
          .reverse()
          .map((id) => [id, "crashed"]),
      );
    });

    it("is refused as held, not blocked, while a holder with a full backlog still has its lease", async () => {
      const scene = openScene(under.store);
      for (let i = 0; i < 20; i++) {
        await scene.grant();
        scene.clock.advance(expiryMs);
      }
      const { state } = await scene.grant();
      expect(await scene.acquire()).toEqual({ kind: "held", state });
      expect(await scene.records()).toEqual([]);
    });
  });

  describe("a takeover", () => {
    it("fences out a holder whose lease isn't over", async () => {
      const scene = openScene(under.store);
      const holder = await scene.grant();
      const { lease, state } = await scene.grant({ takeover: { fence: holder.lease.fence } });
      expect(lease.fence).toBe(holder.lease.fence + 1);
      expect(state.prev).toEqual([holder.lease.run]);
      await expect(scene.commit(holder)).rejects.toMatchObject({ code: "LEASE_LOST" });
    });

    it("is refused if the fence is no longer the one that was seen, so that two don't fence each other out", async () => {
      const scene = openScene(under.store);
      const { lease: seen } = await scene.grant();
      const takeover = { fence: seen.fence };
      const { lease } = await scene.grant({ takeover });
      expect(await scene.acquire({ takeover })).toMatchObject({ kind: "held", state: { owner: lease.owner } });
      expect((await scene.read()).fence).toBe(lease.fence);
    });

    it("is refused while the job is paused, and for a completed tick", async () => {
      const scene = openScene(under.store);
      const { tick } = scene;
      await scene.finish(await scene.grant({ tick }), "succeeded", { tick });
      const { lease } = await scene.grant();
      const takeover = { fence: lease.fence };
      expect((await scene.acquire({ tick, takeover })).kind).toBe("duplicate");
      await scene.pause();
      expect((await scene.acquire({ takeover })).kind).toBe("paused");
      expect((await scene.read()).owner).toBe(lease.owner);
    });
  });

  describe("queueing", () => {
    it("marks the tick for the holder that refused us; a later one stays", async () => {
      const scene = openScene(under.store);
      const { tick } = scene;
      const holder = await scene.grant({ tick });
      expect(await scene.queue(holder, tick + 2 * minute)).toBe("queued");
      expect(await scene.queue(holder, tick + minute)).toBe("queued");
      expect((await scene.read()).pending).toBe(tick + 2 * minute);
      expect(await scene.queue(holder, tick + 3 * minute)).toBe("queued");
      expect((await scene.read()).pending).toBe(tick + 3 * minute);
    });

    it("behind a holder that has ended meanwhile leaves nothing pending that nobody would see", async () => {
      const scene = openScene(under.store);
      const holder = await scene.grant();
      await scene.finish(holder);
      const before = await scene.read();
      expect(await scene.queue(holder, scene.tick + minute)).toBe("moved");
      expect(await scene.read()).toEqual(before);
    });

    it("behind a holder that was replaced meanwhile says so", async () => {
      const scene = openScene(under.store);
      const holder = await scene.grant();
      await scene.grant({ takeover: { fence: holder.lease.fence } });
      expect(await scene.queue(holder, scene.tick + minute)).toBe("moved");
      expect((await scene.read()).pending).toBeUndefined();
    });

    it("behind a holder whose owner was granted again under another fence says so", async () => {
      const scene = openScene(under.store);
      const { first, again } = await regrant(scene);
      expect(await scene.queue(first, scene.tick + minute)).toBe("moved");
      expect((await scene.read()).pending).toBeUndefined();
      expect(await scene.queue(again, scene.tick + minute)).toBe("queued");
    });
  });
};
