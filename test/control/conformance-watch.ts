/** What the watchdog reads and notes: it changes nothing that a run depends on, and one of two is refused. */
import { describe, expect, it } from "vitest";
import { freshName } from "../fixture.ts";
import { minute, openScene, type Scene, type StoreUnderTest } from "./conformance.ts";

export const watchConformance = (under: StoreUnderTest): void => {
  const hour = 60 * minute;
  const note = (tick: number, by = "w", times = 1) => ({ tick, at: tick + hour, times, by });
  const noteHealed = (scene: Scene, healed: ReturnType<typeof note>) =>
    scene.store.noteHealed(scene.job, healed, scene.budget());
  const created = async (): Promise<Scene> => {
    const scene = openScene(under.store);
    await scene.store.create(scene.job, scene.clock.now(), scene.budget());
    return scene;
  };

  describe("many items read at once", () => {
    it("are what each of them is alone; what doesn't exist, or is asked for twice, makes no difference", async () => {
      const scenes = [await created(), await created(), await created()];
      await scenes[0]!.grant();
      const names = scenes.map(({ job }) => job);
      const read = await under.store.readMany([...names, freshName(), names[0]!], scenes[0]!.budget());
      expect([...read.keys()].sort()).toEqual([...names].sort());
      for (const scene of scenes) expect(read.get(scene.job)).toEqual(await scene.read());
    });

    it("may be none, or more than one request takes", async () => {
      const scene = await created();
      expect((await under.store.readMany([], scene.budget())).size).toBe(0);
      const names = [...Array.from({ length: 230 }, freshName), scene.job];
      expect([...(await under.store.readMany(names, scene.budget())).keys()]).toEqual([scene.job]);
    });
  });

  describe("the note of a start", () => {
    it("is refused where there is no item, and makes none", async () => {
      const scene = openScene(under.store);
      expect(await noteHealed(scene, note(scene.tick))).toBe("refused");
      expect(await scene.store.read(scene.job, scene.budget())).toBeUndefined();
    });

    it("is refused where a start of this tick or a later one is noted", async () => {
      const scene = await created();
      expect(await noteHealed(scene, note(scene.tick))).toBe("noted");
      expect(await noteHealed(scene, note(scene.tick, "other"))).toBe("refused");
      expect(await noteHealed(scene, note(scene.tick - hour, "other"))).toBe("refused");
      expect(await noteHealed(scene, note(scene.tick + hour, "other", 2))).toBe("noted");
      expect((await scene.read()).healed).toEqual(note(scene.tick + hour, "other", 2));
    });

    it("is granted to one of many that come at once", async () => {
      const scene = await created();
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, index) => noteHealed(scene, note(scene.tick, `w${index}`))),
      );
      expect(answers.filter((answer) => answer === "noted")).toHaveLength(1);
    });

    it("is refused where the tick is done", async () => {
      const scene = await created();
      const granted = await scene.grant({ tick: scene.tick });
      await scene.finish(granted, "succeeded", { tick: scene.tick });
      expect(await noteHealed(scene, note(scene.tick))).toBe("refused");
      expect(await noteHealed(scene, note(scene.tick + hour))).toBe("noted");
    });

    it("changes nothing that a run depends on", async () => {
      const scene = await created();
      const granted = await scene.grant();
      const before = await scene.read();
      await noteHealed(scene, note(scene.tick));
      expect(await scene.read()).toEqual({ ...before, healed: note(scene.tick) });
      expect(await scene.commit(granted)).toEqual({ seq: 1 });
      expect((await scene.finish(granted, "succeeded", { seq: 1 })).kind).toBe("finished");
    });
  });

  describe("the note of a schedule", () => {
    it("is made where the item expects what was seen, and otherwise changes nothing", async () => {
      const scene = await created();
      const granted = await scene.grant({ tick: scene.tick });
      const finish = scene.finishOf(granted, "succeeded", { tick: scene.tick });
      const nextTick = scene.tick + hour;
      await scene.finish(granted, "succeeded", { ...finish, record: { ...finish.record, nextTick } });
      const before = await scene.read();
      expect(before.nextTick).toBe(nextTick);
      await scene.store.noteSchedule(scene.job, { nextTick: 1, seen: nextTick + 1, at: 7 }, scene.budget());
      expect(await scene.read()).toEqual(before);
      await scene.store.noteSchedule(scene.job, { nextTick: 1, seen: nextTick, at: 7 }, scene.budget());
      expect(await scene.read()).toEqual({ ...before, nextTick: 1, activeSince: 7 });
    });

    it("makes no item", async () => {
      const scene = openScene(under.store);
      await scene.store.noteSchedule(scene.job, { nextTick: 2, seen: 1, at: 8 }, scene.budget());
      expect(await scene.store.read(scene.job, scene.budget())).toBeUndefined();
    });
  });

  describe("the tick that is expected next", () => {
    it("is remembered by a success, and by no other end", async () => {
      const scene = await created();
      const end = async (outcome: "succeeded" | "failed", nextTick: number) => {
        const granted = await scene.grant();
        const finish = scene.finishOf(granted, outcome);
        await scene.finish(granted, outcome, { ...finish, record: { ...finish.record, nextTick } });
        return (await scene.read()).nextTick;
      };
      expect(await end("failed", 5)).toBeUndefined();
      expect(await end("succeeded", 6)).toBe(6);
      expect(await end("failed", 7)).toBe(6);
    });
  });

  describe("since when a job is active", () => {
    it("is when it was created, where older ticks are owed, and when it was resumed", async () => {
      const scene = openScene(under.store);
      const at = scene.clock.now();
      await scene.store.create(scene.job, at - hour, scene.budget());
      expect(await scene.read()).toMatchObject({ since: at - hour, activeSince: at });
      await scene.pause();
      scene.clock.advance(hour);
      await scene.resume();
      expect(await scene.read()).toMatchObject({ since: at - hour, activeSince: at + hour });
      expect(await created().then((plain) => plain.read())).not.toHaveProperty("activeSince");
    });
  });

  describe("capped runs", () => {
    it("are told apart from others among the recent ones", async () => {
      const scene = await created();
      for (const outcome of ["succeeded", "capped", "succeeded", "capped"] as const) {
        await scene.finish(await scene.grant(), outcome);
      }
      expect((await scene.read()).recent.map(({ capped }) => capped)).toEqual([undefined, true, undefined, true]);
    });
  });
};
