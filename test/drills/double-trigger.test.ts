/** One tick, two real processes: whatever the order in which their requests arrive, one of them works. */
import type { RunReport } from "cronfence";
import { describe, expect, it } from "vitest";
import { onTime, useScene } from "./scene.ts";

const scene = useScene();
const carts = 60;

describe("case 2: two processes fire the same tick at once", () => {
  it.each([1, 2])("and exactly one works, ten times in a row (start %i)", async () => {
    const pair = await Promise.all(["A", "B"].map((name) => scene.start(name)));
    for (let repetition = 0; repetition < 10; repetition += 1) {
      const tick = await scene.nextTick(carts);
      const before = await scene.control();
      // Both have opened their attempt before either asks for the lease.
      await Promise.all(
        pair.map((worker) => worker.fire({ tick, at: onTime(tick), hold: { before: "acquire", nth: 1 } })),
      );
      const ended = Promise.all(pair.map((worker) => worker.report()));
      for (const worker of pair) worker.release();
      const reports = await ended;

      const worked = reports.filter(({ outcome }) => outcome === "succeeded");
      const told = reports.filter(({ outcome }) => outcome === "held" || outcome === "duplicate");
      expect([worked.length, told.length]).toEqual([1, 1]);
      expect(worked[0]).toMatchObject({ items: carts, ticks: { count: 1 } });
      expect(told[0]).toMatchObject({ items: 0, commits: 0 });
      if (before !== undefined) expect(worked[0]?.fence).toBe(before.fence + 1);
      expect((await scene.records()).filter(({ ticks }) => ticks?.through === tick)).toHaveLength(1);

      const again = (await Promise.all(pair.map((worker) => worker.fire({ tick, at: onTime(tick) })))) as RunReport[];
      expect(again.map(({ outcome }) => outcome)).toEqual(["duplicate", "duplicate"]);
    }
    await scene.expectEachOnce();
  });
});
