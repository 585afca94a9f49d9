/** Acts that need the job idle, or end its run: pause with cancel, rewind, skip, move. */
import type { ActRecord } from "cronfence";
import { describe, expect, it } from "vitest";
import { freshName } from "../fixture.ts";
import {
  expiryMs,
  type Granted,
  kept,
  leaseLost,
  minute,
  openScene,
  operator,
  type Scene,
  type StoreUnderTest,
} from "./conformance.ts";

const refused = (why: string) =>
  expect.objectContaining({ code: "ACT_REFUSED", message: expect.stringContaining(why) });

export const endingActsConformance = (under: StoreUnderTest): void => {
  const actsOf = async (scene: Scene): Promise<readonly ActRecord[]> =>
    (await under.store.acts(scene.job, { limit: 100 }, scene.budget())).acts;

  /** A job that has done its tick, with the watermark "w", and is idle. */
  const idle = async () => {
    const scene = openScene(under.store);
    const { tick } = scene;
    const granted = await scene.grant({ tick });
    await scene.finish(granted, "succeeded", { tick, watermark: "w" });
    return { scene, tick, fence: granted.lease.fence };
  };
  /** The same with a run of the next tick going, which has committed once. */
  const running = async () => {
    const { scene, tick } = await idle();
    scene.clock.advance(minute);
    const granted = await scene.grant({ tick: tick + minute });
    await scene.commit(granted, [], { items: 3, watermark: "x" });
    return { scene, tick: tick + minute, granted };
  };
  const expectFencedOut = async (scene: Scene, granted: Granted, kind: string) => {
    const { lease } = granted;
    await expect(scene.commit(granted, [], { seq: 1 })).rejects.toEqual(leaseLost("not applied"));
    expect((await scene.records())[0]).toMatchObject({ id: lease.run.id, outcome: "cancelled", items: 3, commits: 1 });
    expect(await actsOf(scene)).toMatchObject([{ kind, ...operator, run: lease.run.id, fence: lease.fence + 1 }]);
  };

  describe("a pause that cancels", () => {
    it("blocks new runs and fences the holder out, as one act", async () => {
      const { scene, tick, granted } = await running();
      expect(await scene.pause({ cancel: true })).toMatchObject({ id: granted.lease.run.id, seq: 1, items: 3 });
      expect(await scene.read()).toMatchObject({ fence: granted.lease.fence + 1, paused: operator, unfinished: 0 });
      expect((await scene.read()).paused).not.toHaveProperty("cancel");
      expect((await scene.acquire({ tick })).kind).toBe("paused");
      await expectFencedOut(scene, granted, "pause");
    });

    it("only pauses where no run is going", async () => {
      const { scene, fence } = await idle();
      expect(await scene.pause({ cancel: true })).toBeUndefined();
      expect(await scene.read()).toMatchObject({ fence, paused: operator });
      expect(await scene.records()).toHaveLength(1);
    });
  });

  describe("an act on a fence that was seen", () => {
    it.each<[string, (scene: Scene, fence: number) => Promise<unknown>]>([
      ["pause", (scene, fence) => scene.pause({ fence })],
      ["pause that cancels", (scene, fence) => scene.pause({ fence, cancel: true })],
      ["cancel", (scene, fence) => scene.cancel({ fence })],
      ["rewind", (scene, fence) => scene.rewind("v", { fence, cancel: true })],
      ["skip", (scene, fence) => scene.skip(scene.tick + minute, { fence, cancel: true })],
      ["move", (scene, fence) => scene.move(freshName(), { fence, cancel: true })],
    ])("is refused where another run was granted since: %s", async (_, act) => {
      const { scene, granted } = await running();
      const before = await kept(scene);
      await expect(act(scene, granted.lease.fence - 1)).rejects.toEqual(refused("look again"));
      expect([await kept(scene), await actsOf(scene)]).toEqual([before, []]);
      await act(scene, granted.lease.fence);
      expect(await actsOf(scene)).toHaveLength(1);
    });
  });

  it("a pause on a fence of a job that nobody knows doesn't make it known", async () => {
    const scene = openScene(under.store);
    await expect(scene.pause({ fence: 7 })).rejects.toEqual(refused("isn't known"));
    expect(await under.store.read(scene.job, scene.budget())).toBeUndefined();
  });

  describe("a rewind", () => {
    it("is refused under a run, and with cancel ends it and sets the watermark at once", async () => {
      const { scene, granted } = await running();
      const before = await kept(scene);
      await expect(scene.rewind("v")).rejects.toEqual(refused("holds the lease"));
      expect(await kept(scene)).toEqual(before);
      expect(await scene.rewind("v", { cancel: true })).toMatchObject({ id: granted.lease.run.id });
      expect(await scene.read()).toMatchObject({ watermark: "v", fence: granted.lease.fence + 1 });
      await expectFencedOut(scene, granted, "rewind");
      expect(await actsOf(scene)).toMatchObject([{ from: '"x"', to: '"v"' }]);
    });

    it("moves no tick: what was done isn't owed again", async () => {
      const { scene, tick } = await idle();
      await scene.rewind("v");
      expect((await scene.acquire({ tick })).kind).toBe("duplicate");
    });
  });

  describe("a skip", () => {
    it("completes the ticks without a run, under a fence of its own, and is recorded with them", async () => {
      const { scene, tick, fence } = await idle();
      const [from, through] = [tick + minute, tick + 3 * minute];
      expect(await scene.skip(through, { from })).toBeUndefined();
      expect(await scene.read()).toMatchObject({ tick: through, fence: fence + 1, watermark: "w" });
      expect((await scene.acquire({ tick: through })).kind).toBe("duplicate");
      expect(await actsOf(scene)).toMatchObject([
        { kind: "skip", ...operator, fence: fence + 1, ticks: { from, through } },
      ]);
      expect((await scene.grant({ tick: through + minute })).lease.fence).toBe(fence + 2);
    });

    it("of ticks that are settled is refused: no tick moves back", async () => {
      const { scene, tick } = await idle();
      const before = await kept(scene);
      await expect(scene.skip(tick)).rejects.toEqual(refused("settled"));
      await expect(scene.skip(tick + minute, { from: tick })).rejects.toEqual(refused("settled"));
      await expect(scene.skip(tick - minute)).rejects.toEqual(refused("settled"));
      expect([await kept(scene), await actsOf(scene)]).toEqual([before, []]);
    });

    it("is refused under a run, and with cancel ends it", async () => {
      const { scene, tick, granted } = await running();
      await expect(scene.skip(tick)).rejects.toEqual(refused("holds the lease"));
      expect(await scene.skip(tick, { cancel: true })).toMatchObject({ id: granted.lease.run.id });
      expect(await scene.read()).toMatchObject({ tick, watermark: "x" });
      await expectFencedOut(scene, granted, "skip");
    });

    it("takes a queued tick that it covers, and a tick that is half done; a later queued one stays", async () => {
      const { scene, tick, granted } = await running();
      await scene.commit(granted, [], { seq: 1, tickPart: { tick, done: 1, total: 2 } });
      await scene.queue(granted, tick + minute);
      await scene.skip(tick, { cancel: true });
      const { pending, tickPart } = await scene.read();
      expect([pending, tickPart]).toEqual([tick + minute, undefined]);
      await scene.skip(tick + minute);
      expect((await scene.read()).pending).toBeUndefined();
    });
  });

  describe("a move", () => {
    it("gives the job another name, with everything but its history, under a greater fence", async () => {
      const { scene, tick, fence } = await idle();
      const to = freshName();
      const before = await scene.read();
      await scene.move(to);
      const moved = await under.store.read(to, scene.budget());
      expect(moved).toMatchObject({
        job: to,
        watermark: "w",
        tick,
        since: before.since,
        recent: before.recent,
        recentOwners: before.recentOwners,
        movedFrom: { job: scene.job, at: scene.clock.now() },
        activeSince: scene.clock.now(),
      });
      expect(moved?.fence).toBe(fence + 2);
      expect(moved).not.toHaveProperty("moving");
      expect(await scene.records()).toHaveLength(1);
      expect((await under.store.runs(to, { limit: 9 }, scene.budget())).runs).toEqual([]);
      const act = { kind: "move", ...operator, from: scene.job, to };
      expect(await actsOf(scene)).toMatchObject([act]);
      expect((await under.store.acts(to, { limit: 9 }, scene.budget())).acts).toMatchObject([act]);
    });

    it("grants nothing under the old name any more, and says which the new one is", async () => {
      const { scene, tick, fence } = await idle();
      const to = freshName();
      await scene.move(to);
      const before = await kept(scene);
      expect(before.state).toMatchObject({ fence: fence + 1, moving: { to, ...operator } });
      for (const asked of [{}, { tick: tick + minute }, { takeover: { fence: fence + 1 } }]) {
        await expect(scene.acquire(asked)).rejects.toMatchObject({ code: "JOB_MOVED", job: scene.job, to });
      }
      const acts = [
        () => scene.pause(),
        () => scene.resume(),
        () => scene.cancel(),
        () => scene.rewind("v"),
        () => scene.skip(tick + minute),
      ];
      for (const act of acts) await expect(act()).rejects.toEqual(refused(`moved to "${to}"`));
      await expect(scene.move(freshName())).rejects.toEqual(refused(`moved to "${to}"`));
      await expect(scene.move(to)).rejects.toEqual(refused("already"));
      expect(await kept(scene)).toEqual(before);
    });

    it("lets the job go on under the new one: no tick twice, from the watermark, and with the old one fenced out", async () => {
      const { scene, tick, granted } = await running();
      const to = freshName();
      await expect(scene.move(to)).rejects.toEqual(refused("holds the lease"));
      expect(await scene.move(to, { cancel: true })).toMatchObject({ id: granted.lease.run.id });
      await expectFencedOut(scene, granted, "move");
      const asked = { ...scene.request({ tick }), job: to };
      const again = await under.store.acquire({ ...asked, tick: tick - minute }, scene.budget());
      expect(again.kind).toBe("duplicate");
      const there = await under.store.acquire(asked, scene.budget());
      expect(there).toMatchObject({ kind: "acquired", state: { watermark: "x", unfinished: 1, prev: [] } });
    });

    it("doesn't grant a request again that was granted under the old name", async () => {
      const scene = openScene(under.store);
      const request = scene.request();
      await scene.grant(request);
      const to = freshName();
      await scene.move(to, { cancel: true });
      expect((await under.store.acquire({ ...request, job: to }, scene.budget())).kind).toBe("held");
    });

    it("takes parked items and effects along", async () => {
      const { scene } = await idle();
      const granted = await scene.grant();
      const { job } = scene;
      const parked = { attempts: 1, error: { name: "Error", message: "m" }, at: 1, run: "r" };
      let seq = 0;
      for (let number = 0; number < 60; number += 1) {
        const writes = under.store.park(job, { ...parked, cursor: `c${number}` });
        await under.store.commit(granted.lease, { seq: seq++, leaseUntil: 1e15, items: 0, writes }, scene.budget());
      }
      const intent = { fence: granted.lease.fence, run: "r", at: 1, seen: undefined };
      const effect = under.store.intend(job, "charge", intent);
      await under.store.commit(
        granted.lease,
        { seq: seq++, leaseUntil: 1e15, items: 0, writes: effect },
        scene.budget(),
      );
      await scene.finish(granted, "succeeded", { seq });
      const to = freshName();
      await scene.move(to);
      const parkedOf = async (name: string) => (await under.store.parked(name, { limit: 100 }, scene.budget())).items;
      expect([(await parkedOf(job)).length, (await parkedOf(to)).length]).toEqual([0, 60]);
      expect((await parkedOf(to))[0]).toMatchObject({ cursor: "c0", ...parked });
      expect(await under.store.readOnce(job, "charge", scene.budget())).toBeUndefined();
      expect(await under.store.readOnce(to, "charge", scene.budget())).toMatchObject({ state: "intended", run: "r" });
    });

    it("records runs that never finished under the name that they ran under", async () => {
      const scene = openScene(under.store);
      const dead = await scene.grant();
      scene.clock.advance(expiryMs);
      const successor = await scene.grant();
      await scene.finish(successor, "failed", { prev: successor.state.prev });
      const to = freshName();
      await scene.move(to);
      expect((await scene.records()).map(({ id, outcome }) => [id, outcome])).toContainEqual([
        dead.lease.run.id,
        "crashed",
      ]);
      expect((await under.store.read(to, scene.budget()))?.prev).toEqual([]);
    });

    it("isn't made over a job that has run: it would lose what it has done", async () => {
      const { scene } = await idle();
      const other = await idle();
      const before = [await kept(scene), await kept(other.scene)];
      await expect(scene.move(other.scene.job)).rejects.toEqual(refused("history"));
      expect([await kept(scene), await kept(other.scene)]).toEqual(before);
    });

    it("is made over a job that is only known, whose pause stays", async () => {
      const { scene, fence } = await idle();
      const other = openScene(under.store);
      await other.pause();
      const { paused, fence: known } = await other.read();
      await scene.move(other.job);
      expect(await other.read()).toMatchObject({ paused, watermark: "w", movedFrom: { job: scene.job } });
      expect((await other.read()).fence).toBeGreaterThan(Math.max(known, fence + 1));
    });

    it("can be followed by another", async () => {
      const { scene, tick } = await idle();
      const [second, third] = [freshName(), freshName()];
      await scene.move(second);
      await under.store.move(second, third, operator, scene.clock.now(), scene.budget());
      expect(await under.store.read(third, scene.budget())).toMatchObject({ tick, movedFrom: { job: second } });
      await expect(scene.acquire()).rejects.toMatchObject({ code: "JOB_MOVED", to: second });
    });
  });
};
