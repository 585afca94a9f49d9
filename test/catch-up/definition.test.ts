/** What a job's definition says of which ticks are due: from when on, how late, and what a calendar takes away. */
import { cron, rate, runJob } from "cronfence";
import { describe, expect, it } from "vitest";
import { useEngine } from "../fixture.ts";
import { at, iso, minuteMs, noon, sceneOf } from "./scene.ts";

const engine = useEngine("effects");
const everyFive = cron("*/5 * * * *");

describe("the first deployment", () => {
  it("does the first delivered tick and owes none from before", async () => {
    const { deliver, started, ledger } = await sceneOf(engine, everyFive, undefined);
    expect(await deliver(at(5))).toMatchObject({ outcome: "succeeded", ticks: { from: iso(at(5)), count: 1 } });
    await deliver(at(10));
    expect(started).toEqual([at(5), at(10)]);
    expect(await ledger()).toHaveLength(2);
  });

  it("owes what came due since the job was made known", async () => {
    const { deliver, started } = await sceneOf(engine, everyFive, at(2));
    await deliver(at(15));
    expect(started).toEqual([at(5), at(10), at(15)]);
  });
});

describe("startAt", () => {
  it("in the past makes the first run catch up from there, that instant included", async () => {
    const { deliver, started } = await sceneOf(engine, everyFive, undefined, { startAt: iso(at(-10)) });
    await deliver(at(5));
    expect(started).toEqual([at(-10), at(-5), at(0), at(5)]);
  });

  it("in the future leaves out what comes before, with the reason, and begins there", async () => {
    const { deliver, started, ledger, fates } = await sceneOf(engine, everyFive, noon, { startAt: iso(at(15)) });
    for (const minute of [5, 10, 20]) await deliver(at(minute));
    expect(started).toEqual([at(15), at(20)]);
    const reason = "before startAt";
    expect((await ledger()).map(({ outcome, skipped }) => [outcome, skipped])).toEqual([
      ["succeeded", [{ from: at(5), through: at(5), count: 1, reason }]],
      ["succeeded", [{ from: at(10), through: at(10), count: 1, reason }]],
      ["succeeded", undefined],
    ]);
    expect([...(await fates(at(5), at(20))).values()].map(({ kind }) => kind)).toEqual([
      "skipped",
      "skipped",
      "done",
      "done",
    ]);
  });
});

describe("startWithin", () => {
  it("does a tick that starts just within it, and records a later one as missed", async () => {
    const { deliver, started, ledger } = await sceneOf(engine, rate("1 hour"), noon, { startWithin: "10m" });
    await deliver(at(60), 10 * minuteMs);
    expect(await deliver(at(120), 10 * minuteMs + 1)).toMatchObject({ outcome: "succeeded", items: 0 });
    expect(started).toEqual([at(60)]);
    expect((await ledger())[1]?.skipped).toEqual([
      { from: at(120), through: at(120), count: 1, reason: "startWithin" },
    ]);
  });

  it("leaves out what an outage made late, and does what isn't", async () => {
    const { deliver, started } = await sceneOf(engine, everyFive, noon, { startWithin: "12m" });
    await deliver(at(30));
    expect(started).toEqual([at(20), at(25), at(30)]);
  });

  it("allows for the jitter", async () => {
    const { deliver, started } = await sceneOf(engine, rate("1 hour"), noon, { startWithin: "10m", jitter: "5m" });
    await deliver(at(60), 15 * minuteMs);
    await deliver(at(120), 15 * minuteMs + 1);
    expect(started).toEqual([at(60)]);
  });
});

describe("a calendar", () => {
  const except = [{ from: iso(at(10)), to: iso(at(20)), reason: "a freeze" }];

  it("takes away a tick that is delivered all the same: nothing is done, and the record says why", async () => {
    const { deliver, started, ledger } = await sceneOf(engine, everyFive, noon, { except });
    await deliver(at(5));
    expect(await deliver(at(10))).toMatchObject({ outcome: "succeeded", items: 0 });
    expect(started).toEqual([at(5)]);
    expect((await ledger())[1]).toMatchObject({
      completed: at(10),
      skipped: [{ from: at(10), through: at(10), count: 1, reason: "calendar" }],
    });
  });

  it("lets a removed tick's delivery bring up what was owed before it", async () => {
    const { deliver, started } = await sceneOf(engine, everyFive, noon, { except });
    await deliver(at(15));
    expect(started).toEqual([at(5)]);
    await deliver(at(25));
    expect(started).toEqual([at(5), at(20), at(25)]);
  });

  it("owes none of the removed ticks", async () => {
    const { deliver, started, fates } = await sceneOf(engine, everyFive, noon, { except });
    await deliver(at(25));
    expect(started).toEqual([at(5), at(20), at(25)]);
    expect(
      [...(await fates(at(5), at(25))).values()].map((fate) => (fate.kind === "skipped" ? fate.reason : fate.kind)),
    ).toEqual(["done", "calendar", "calendar", "done", "done"]);
  });
});

describe("a tick that is delivered late", () => {
  it("after its successor is a duplicate: the successor's run has done it", async () => {
    const { deliver, started, ledger } = await sceneOf(engine, everyFive, noon);
    expect(await deliver(at(10))).toMatchObject({ ticks: { from: iso(at(5)), through: iso(at(10)), count: 2 } });
    expect(await deliver(at(5))).toMatchObject({ outcome: "duplicate" });
    expect(started).toEqual([at(5), at(10)]);
    expect(await ledger()).toHaveLength(1);
  });

  it("is done though the schedule has been changed since", async () => {
    const { job, clock, deps, started } = await sceneOf(engine, cron("7 * * * *"), noon);
    clock.set(at(5));
    expect(await runJob(job, { kind: "schedule", tick: at(5) }, deps)).toMatchObject({
      outcome: "succeeded",
      items: 1,
    });
    expect(started).toEqual([at(5)]);
  });
});
