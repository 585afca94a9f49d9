/** The load that `npm run bench -- load` puts on, in small: what must hold holds. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { contend } from "./load/contended-lease.ts";
import { simulateDay } from "./load/simulated-day.ts";
import { openScene, type Scene } from "./scene.ts";

describe("under load", () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene({ filled: false });
  });
  afterAll(() => scene.stop());

  it("every tick of every job is done exactly once, and each second delivery is told so", async () => {
    const day = await simulateDay(scene, { jobs: 110, workers: 6, hours: 1 });
    expect(day).toMatchObject({ wrong: 0, runs: day.ticks });
    expect(day.ticks).toBeGreaterThan(110);
    expect(day.refused).toBeGreaterThan(0);
  });

  it("what a contended job commits is committed once, though conflicts get in its way", async () => {
    const contention = await contend(scene, { contenders: 6, runs: 10 });
    expect(contention.counted).toBe(contention.due);
    expect(contention.conflicts).toBeGreaterThan(0);
    expect(contention.held).toBeGreaterThan(0);
  });
});
