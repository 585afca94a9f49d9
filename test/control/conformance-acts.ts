/** What operators do: pause, resume, cancel, each with a record of who and why. */
import { describe, expect, it } from "vitest";
import { freshName } from "../fixture.ts";
import { kept, leaseLost, minute, openScene, operator, type Scene, type StoreUnderTest } from "./conformance.ts";

export const actsConformance = (under: StoreUnderTest): void => {
  describe("a pause", () => {
    it("blocks new runs, and is recorded with who and why", async () => {
      const scene = openScene(under.store);
      await scene.finish(await scene.grant());
      await scene.pause();
      const before = await scene.read();
      expect(before.paused).toEqual({ ...operator, at: scene.clock.now() });
      expect(await scene.acquire()).toEqual({ kind: "paused", state: before });
      expect(await scene.acquire({ tick: scene.tick + minute })).toMatchObject({ kind: "paused" });
      expect(await scene.read()).toEqual(before);
      expect(await under.acts(scene.job)).toMatchObject([{ kind: "pause", ...operator, at: scene.clock.now() }]);
    });

    it("doesn't touch the run that is going: it commits, renews and finishes", async () => {
      const scene = openScene(under.store);
      const granted = await scene.grant();
      await scene.pause();
      expect(await scene.commit(granted)).toEqual({ seq: 1 });
      await scene.renew(granted);
      expect((await scene.finish(granted, "succeeded", { seq: 1 })).kind).toBe("finished");
      expect((await scene.acquire()).kind).toBe("paused");
    });

    it("with an end ends by itself", async () => {
      const scene = openScene(under.store);
      const until = scene.clock.now() + minute;
      await scene.pause({ until });
      scene.clock.advance(minute - 1);
      expect((await scene.acquire()).kind).toBe("paused");
      scene.clock.advance(1);
      await scene.grant();
    });

    it("of a job that never ran makes it known", async () => {
      const scene = openScene(under.store);
      await scene.pause();
      expect(await scene.read()).toMatchObject({ since: scene.clock.now(), unfinished: 0 });
      expect((await scene.acquire()).kind).toBe("paused");
    });

    it("ends with resume, which is recorded too", async () => {
      const scene = openScene(under.store);
      await scene.pause();
      scene.clock.advance(1_000);
      await scene.resume();
      expect((await scene.read()).paused).toBeUndefined();
      await scene.grant();
      expect(await under.acts(scene.job)).toMatchObject([
        { kind: "pause" },
        { kind: "resume", ...operator, at: scene.clock.now() },
      ]);
    });
  });

  it.each<[string, (scene: Scene) => Promise<unknown>]>([
    ["resuming", (scene) => scene.resume()],
    ["cancelling", (scene) => scene.cancel()],
    ["rewinding", (scene) => scene.rewind("w")],
    ["skipping a tick of", (scene) => scene.skip(scene.tick)],
    ["moving", (scene) => scene.move(freshName())],
  ])("%s a job that nobody knows says so, and keeps nothing", async (_, act) => {
    const scene = openScene(under.store);
    await expect(act(scene)).rejects.toMatchObject({ code: "ACT_REFUSED", job: scene.job });
    expect(await under.acts(scene.job)).toEqual([]);
    expect(await under.store.read(scene.job, scene.budget())).toBeUndefined();
  });

  describe("a cancel", () => {
    it("fences the holder out: its next commit, renewal and finish find that out", async () => {
      const scene = openScene(under.store);
      const granted = await scene.grant({ tick: scene.tick });
      await scene.commit(granted, [], { items: 3, watermark: "w" });
      scene.clock.advance(1_000);
      const { run } = await scene.read();
      expect(await scene.cancel()).toEqual(run);
      const state = await scene.read();
      expect(state).toMatchObject({
        fence: granted.lease.fence + 1,
        recentOwners: [granted.lease.owner],
        watermark: "w",
        unfinished: 0,
        failedTicks: 0,
      });
      expect([state.owner, state.leaseUntil, state.run]).toEqual([undefined, undefined, undefined]);
      await expect(scene.commit(granted, [], { seq: 1 })).rejects.toEqual(leaseLost("not applied"));
      await expect(scene.renew(granted)).rejects.toEqual(leaseLost("none"));
      expect(await scene.finish(granted, "succeeded", { seq: 1 })).toMatchObject({
        kind: "finished",
        outcome: "cancelled",
        record: { outcome: "cancelled", commits: 1 },
      });
      expect(await scene.read()).toEqual(state);
    });

    it("records the run as cancelled with what it had done, and the act with who and why", async () => {
      const scene = openScene(under.store);
      const { tick } = scene;
      const { lease } = await scene.grant({ tick });
      await scene.commit({ lease, state: await scene.read() }, [], { items: 3 });
      scene.clock.advance(1_000);
      await scene.cancel();
      expect(await scene.records()).toEqual([
        {
          job: scene.job,
          id: lease.run.id,
          owner: lease.owner,
          fence: lease.fence,
          trigger: "schedule",
          outcome: "cancelled",
          startedAt: lease.run.startedAt,
          endedAt: scene.clock.now(),
          items: 3,
          commits: 1,
          ticks: { from: tick, through: tick, count: 1 },
          reason: "ann: because",
        },
      ]);
      expect(await under.acts(scene.job)).toMatchObject([
        { kind: "cancel", ...operator, at: scene.clock.now(), run: lease.run.id },
      ]);
    });

    it("stays on record whatever the run learns or its successors record", async () => {
      const scene = openScene(under.store);
      const granted = await scene.grant();
      await scene.cancel();
      const before = await scene.records();
      expect(await scene.recordLost(granted)).toBe("cancelled");
      await scene.recordCrashed([granted.lease.run]);
      expect(await scene.records()).toEqual(before);
    });

    it("leaves the tick to the next run at once", async () => {
      const scene = openScene(under.store);
      const { tick } = scene;
      const cancelled = await scene.grant({ tick });
      await scene.cancel();
      const { lease, state } = await scene.grant({ tick });
      expect(lease.fence).toBe(cancelled.lease.fence + 2);
      expect(state.prev).toEqual([]);
    });

    it("doesn't let the cancelled run's acquisition be granted again", async () => {
      const scene = openScene(under.store);
      const request = scene.request();
      await scene.grant(request);
      await scene.cancel();
      expect((await scene.acquire(request)).kind).toBe("held");
      expect((await scene.read()).owner).toBeUndefined();
    });

    it("where no run is going does nothing, and records no act", async () => {
      const scene = openScene(under.store);
      await scene.finish(await scene.grant());
      const before = await kept(scene);
      expect(await scene.cancel()).toBeUndefined();
      expect(await kept(scene)).toEqual(before);
      expect(await under.acts(scene.job)).toEqual([]);
    });
  });
};
