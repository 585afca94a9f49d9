/** A holder that is stopped by SIGSTOP, as a frozen environment or a paused machine is, and goes on after its successor. */
import type { RunReport } from "cronfence";
import { dumpTable } from "cronfence/testing";
import { describe, expect, it } from "vitest";
import { controlTable } from "../fixture.ts";
import { onTime, useScene } from "./scene.ts";
import { isHolding, type WorkerProcess } from "./worker-process.ts";

const scene = useScene();
const carts = 245; // five transactions of 49 carts, the last of them with the finish
const lease = { ttlMs: 30_000, skewMs: 10_000 };

let pair: Promise<[WorkerProcess, WorkerProcess]> | undefined;
const processes = () => {
  pair ??= Promise.all([scene.start("A"), scene.start("B")]);
  return pair;
};

const tables = async (stoppedRun: string | undefined) => ({
  carts: await dumpTable(scene.fixture.client, "carts"),
  audit: await dumpTable(scene.fixture.client, "cart-audit"),
  control: (await dumpTable(scene.fixture.client, controlTable)).filter(({ id }) => id !== stoppedRun),
});

describe("a holder stopped past the end of its lease, and continued after another process took over", () => {
  it.each([
    ["case 7: its late commit changes nothing", "commit", 3, "works", 2],
    ["case 7: its late commit changes nothing", "commit", 3, "has finished", 2],
    ["cases 8 and 9: its late finish neither releases the lease nor completes", "finish", 1, "works", 4],
    ["cases 8 and 9: its late finish changes nothing", "finish", 1, "has finished", 4],
  ] as const)("%s (%s %i, while its successor %s)", async (_, before, nth, successorState, commits) => {
    const [holder, successor] = await processes();
    const tick = await scene.nextTick(carts);
    const left = await scene.runInto(holder, { tick, at: onTime(tick), hold: { before, nth }, ...lease });
    await holder.stop();
    expect(left.run).toMatchObject({ seq: commits, items: commits * 49 });

    const over = (left.leaseUntil ?? 0) + lease.skewMs + 1;
    const mid = successorState === "works" ? { hold: { before: "finish", nth: 1 } as const } : {};
    const took = await successor.fire({ tick, at: over, ...mid, ...lease });
    expect(isHolding(took)).toBe(successorState === "works");

    const stoppedRun = left.run?.id;
    const stood = await tables(stoppedRun);
    holder.release();
    holder.continue();
    expect(await holder.report()).toMatchObject({ outcome: "lease_lost", fence: left.fence, commits });
    expect(await tables(stoppedRun)).toEqual(stood);

    if (isHolding(took)) {
      const third = await holder.fire({ tick, at: over, ...lease });
      expect(third).toMatchObject({ outcome: "held", holder: { fence: left.fence + 1 } });
      successor.release();
    }
    const report = isHolding(took) ? await successor.report() : (took as RunReport);
    expect(report).toMatchObject({ outcome: "succeeded", fence: left.fence + 1, items: carts - commits * 49 });
    const records = await scene.records();
    expect(records.find(({ id }) => id === stoppedRun)).toMatchObject({ outcome: "lease_lost", commits });
    expect((await scene.control()).tick).toBe(tick);
    await scene.expectEachOnce();
  });
});
