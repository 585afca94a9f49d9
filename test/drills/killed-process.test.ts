/** A process that is killed with -9 leaves its lease behind and says nothing; the next run goes on where it was. */
import { describe, expect, it } from "vitest";
import { tickMs } from "./carts.ts";
import { onTime, useScene } from "./scene.ts";
import type { WorkerProcess } from "./worker-process.ts";

const scene = useScene();
const carts = 245; // five transactions of 49 carts, the last of them with the finish
const lease = { ttlMs: 60_000, skewMs: 10_000 };

let next: Promise<WorkerProcess> | undefined;
const nextProcess = () => {
  next ??= scene.start("next");
  return next;
};

describe("case 10: a holder that is killed", () => {
  it.each([
    ["before its first commit", "commit", 1, 0],
    ["in mid-run", "commit", 3, 2],
    ["before its finish", "finish", 1, 4],
  ] as const)(
    "%s is succeeded by the first try after ttl and skew, which resumes exactly after its last commit",
    async (_, before, nth, commits) => {
      const [killed, successor] = await Promise.all([scene.start("killed"), nextProcess()]);
      const tick = await scene.nextTick(carts);
      const left = await scene.runInto(killed, { tick, at: onTime(tick), hold: { before, nth }, ...lease });
      await killed.kill("SIGKILL");
      expect(left.run).toMatchObject({ seq: commits });

      // One try a minute, none of which waits, and one at the very end of the lease.
      const expiry = (left.leaseUntil ?? 0) + lease.skewMs;
      for (const at of [onTime(tick) + 60_000, expiry]) {
        const refused = await successor.fire({ tick, at, ...lease });
        expect(refused).toMatchObject({ outcome: "held", holder: { run: left.run?.id } });
      }
      const resumed = await successor.fire({ tick, at: expiry + 1, ...lease });
      expect(resumed).toMatchObject({ outcome: "succeeded", items: carts - commits * 49, fence: left.fence + 1 });

      const records = await scene.records();
      expect(records.find(({ id }) => id === left.run?.id)).toMatchObject({
        outcome: "crashed",
        commits,
        items: commits * 49,
        ticks: { through: tick },
      });
      const { watermarkBefore } = records.at(-1) ?? {};
      expect(watermarkBefore).toEqual(left.watermark);
      expect(await scene.control()).not.toHaveProperty("prev.0");
      await scene.expectEachOnce();
    },
  );

  it("keeps a later tick queued behind it, which the first try after ttl and skew covers too", async () => {
    const [killed, successor] = await Promise.all([scene.start("killed"), nextProcess()]);
    const tick = await scene.nextTick(carts);
    const left = await scene.runInto(killed, { tick, at: onTime(tick), hold: { before: "commit", nth: 2 }, ...lease });
    await killed.kill("SIGKILL");
    const later = tick + tickMs;
    expect(await successor.fire({ tick: later, at: left.leaseUntil ?? 0, ...lease })).toMatchObject({
      outcome: "queued",
    });
    const at = (left.leaseUntil ?? 0) + lease.skewMs + 1;
    expect(await successor.fire({ tick, at, ...lease })).toMatchObject({
      outcome: "succeeded",
      items: carts - 49,
      ticks: { count: 2, through: new Date(later).toISOString() },
    });
    expect((await scene.control()).tick).toBe(later);
    await scene.nextTick(0);
    await scene.expectEachOnce();
  });
});
