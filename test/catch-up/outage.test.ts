/** What becomes of ticks that nobody delivered: caught up, skipped with a reason, or owed. */
import { cron, defineJob, type RunReport, rate, runJob, type Trigger } from "cronfence";
import { describe, expect, it } from "vitest";
import { freshName, silentLog, useEngine } from "../fixture.ts";
import { at, effectOf, iso, minuteMs, noon, sceneOf } from "./scene.ts";

const engine = useEngine("effects");
const everyMinute = rate("1 minute");
const everyFive = cron("*/5 * * * *");

describe("after an outage of 500 ticks", () => {
  it("a job with maxTicks 24 works it off oldest first, in capped runs, and every tick is done exactly once", async () => {
    const { deliver, started, done, ledger } = await sceneOf(engine, everyMinute, noon, { maxTicks: 24 });
    await deliver(at(1));
    let tick = 501;
    const reports: RunReport[] = [];
    for (; reports.at(-1)?.outcome !== "succeeded"; tick += 1) reports.push(await deliver(at(tick + 1)));

    const through = at(tick);
    // 500 were missed; each run does 24 and meets one more.
    expect(reports.map(({ outcome }) => outcome)).toEqual([...Array(21).fill("capped"), "succeeded"]);
    expect(reports[0]?.backlog).toBe("477 ticks (stopped by maxTicks)");
    expect(started).toEqual([...everyMinute.between(noon, through)]);
    expect(await done()).toEqual(started);
    // Each run says exactly which ticks it covered, and none is missing between two.
    let covered = noon;
    for (const { ticks } of await ledger()) {
      expect(ticks?.from).toBe(covered + minuteMs);
      expect(ticks?.count).toBeLessThanOrEqual(24);
      covered = ticks?.through as number;
    }
    expect(covered).toBe(through);
  });

  it("a job without maxTicks does all of it in one run", async () => {
    const { deliver, done } = await sceneOf(engine, everyMinute, noon);
    const report = await deliver(at(501));
    expect(report).toMatchObject({
      outcome: "succeeded",
      ticks: { from: iso(at(1)), through: iso(at(501)), count: 501 },
    });
    expect(await done()).toHaveLength(501);
  });

  it('catchUp "latest" does the newest, and records the others as skipped', async () => {
    const { deliver, started, ledger, fates } = await sceneOf(engine, everyMinute, noon, { catchUp: "latest" });
    expect(await deliver(at(501))).toMatchObject({ outcome: "succeeded", ticks: { count: 501 } });
    expect(started).toEqual([at(501)]);
    const [record] = await ledger();
    expect(record?.skipped).toEqual([{ from: at(1), through: at(500), count: 500, reason: "catchUp" }]);
    const kinds = [...(await fates(at(1), at(501))).values()].map(({ kind }) => kind);
    expect(kinds).toEqual([...Array(500).fill("skipped"), "done"]);
    // They stay skipped.
    expect(await deliver(at(502))).toMatchObject({ ticks: { from: iso(at(502)), count: 1 } });
  });

  it('catchUp "latest" with maxTicks does that many of the newest, oldest first', async () => {
    const { deliver, started, ledger } = await sceneOf(engine, everyMinute, noon, { catchUp: "latest", maxTicks: 3 });
    expect(await deliver(at(501))).toMatchObject({ outcome: "succeeded" });
    expect(started).toEqual([at(499), at(500), at(501)]);
    expect((await ledger())[0]?.skipped).toEqual([{ from: at(1), through: at(498), count: 498, reason: "catchUp" }]);
  });

  it('catchUp "none" does the delivered one, and records the others as skipped', async () => {
    const { deliver, started, ledger } = await sceneOf(engine, everyMinute, noon, { catchUp: "none" });
    await deliver(at(501));
    await deliver(at(504));
    expect(started).toEqual([at(501), at(504)]);
    expect((await ledger()).map(({ skipped }) => skipped)).toEqual([
      [{ from: at(1), through: at(500), count: 500, reason: "catchUp" }],
      [{ from: at(502), through: at(503), count: 2, reason: "catchUp" }],
    ]);
  });

  it("a job of another shape covers all of it with one call", async () => {
    let calls = 0;
    const { deps, clock } = await sceneOf(engine, everyMinute, noon);
    const job = defineJob({ name: freshName(), schedule: everyMinute, timeout: "30s", run: () => (calls += 1) });
    await engine.store.create(job.name, noon, { clock, random: () => 0, until: noon + 60_000 });
    clock.set(at(501));
    expect(await runJob(job, { kind: "schedule", tick: at(501) }, deps)).toMatchObject({
      outcome: "succeeded",
      ticks: { from: iso(at(1)), through: iso(at(501)), count: 501 },
    });
    expect(calls).toBe(1);
  });
});

describe("what a run passes over", () => {
  const failingLast = { catchUp: "latest", maxTicks: 2 } as const;
  const passedOver = [{ from: at(5), through: at(15), count: 3, reason: "catchUp" }];

  it("is on record also when it fails after its first tick", async () => {
    const scene = await sceneOf(engine, everyFive, noon, {
      ...failingLast,
      work: (tick) => {
        if (tick === at(25) && scene.started.length === 2) throw new Error("the last one fails at first");
        return undefined;
      },
    });
    expect((await scene.deliver(at(25))).outcome).toBe("failed");
    expect(await scene.ledger()).toMatchObject([{ completed: at(20), skipped: passedOver }]);
    expect((await scene.deliver(at(25))).outcome).toBe("succeeded");
    const kinds = [...(await scene.fates(at(5), at(25))).values()].map(({ kind }) => kind);
    expect(kinds).toEqual(["skipped", "skipped", "skipped", "done", "done"]);
  });

  it("is on record also when it dies after its first tick", async () => {
    let die = () => {};
    const died = new Promise<void>((resolve) => {
      die = resolve;
    });
    const scene = await sceneOf(engine, everyFive, noon, {
      ...failingLast,
      work: (tick) => {
        if (tick !== at(25) || scene.started.length > 2) return undefined;
        die();
        return new Promise(() => {});
      },
    });
    const { ttlMs, skewMs } = scene.job;
    // Its run never ends: to everybody else it has died.
    void scene.deliver(at(25));
    await died;
    // The machine that takes over has a clock of its own: on that of the dead one its timers would still fire.
    const later = { ...scene.deps, clock: { now: () => at(25) + ttlMs + skewMs + 1, after: () => () => {} } };
    expect((await runJob(scene.job, { kind: "schedule", tick: at(25) }, later)).outcome).toBe("succeeded");
    const records = await scene.ledger();
    expect(records.map(({ outcome }) => outcome)).toEqual(["crashed", "succeeded"]);
    expect(records[0]).toMatchObject({ completed: at(20), skipped: passedOver });
    const kinds = [...(await scene.fates(at(5), at(25))).values()].map(({ kind }) => kind);
    expect(kinds).toEqual(["skipped", "skipped", "skipped", "done", "done"]);
    expect(await scene.done()).toEqual([at(20), at(25)]);
  });

  it("isn't on record while it may still be done: a run that is out of time stops before it", async () => {
    const scene = await sceneOf(engine, everyFive, noon, {
      startWithin: "12m",
      work: (tick) => {
        // The first that isn't too late takes nearly all the time.
        if (tick === at(15)) scene.clock.advance(29_950);
        return undefined;
      },
    });
    expect(await scene.deliver(at(25))).toMatchObject({ outcome: "capped", backlog: `ticks after ${iso(at(15))}` });
    expect(await scene.ledger()).toMatchObject([
      { completed: at(15), skipped: [{ from: at(5), through: at(10), count: 2, reason: "startWithin" }] },
    ]);
    scene.clock.set(at(30));
    await scene.deliver(at(30));
    const kinds = [...(await scene.fates(at(5), at(30))).values()].map((fate) =>
      fate.kind === "skipped" ? fate.reason : fate.kind,
    );
    expect(kinds).toEqual(["startWithin", "startWithin", "done", "done", "done", "done"]);
  });
});

describe("a run that is out of time before ticks that it would have passed over", () => {
  it("leaves them to the next run, and to its record", async () => {
    let queued: RunReport | undefined;
    const scene = await sceneOf(engine, everyFive, noon, {
      catchUp: "none",
      work: async (tick) => {
        // 12:25 comes while there is no time left to go round for it, so it stays queued.
        if (tick === at(5)) queued = await runJob(scene.job, { kind: "schedule", tick: at(25) }, scene.deps);
        if (tick !== at(25)) scene.clock.advance(29_950);
        return undefined;
      },
    });
    expect((await scene.deliver(at(5))).outcome).toBe("capped");
    expect(queued?.outcome).toBe("queued");
    expect(await scene.deliver(at(10))).toMatchObject({ outcome: "capped", ticks: { through: iso(at(25)) } });
    const beforeThem = (await scene.ledger())[1];
    expect([beforeThem?.completed, beforeThem?.skipped]).toEqual([at(10), undefined]);
    expect((await scene.deliver(at(25))).outcome).toBe("succeeded");
    expect((await scene.ledger())[2]?.skipped).toEqual([
      { from: at(15), through: at(20), count: 2, reason: "catchUp" },
    ]);
    expect(scene.started).toEqual([at(5), at(10), at(25)]);
  });
});

describe("a tick that is queued behind a manual run", () => {
  it("brings with it all that was owed before it", async () => {
    const { deliver, clock, deps, done } = await sceneOf(engine, everyFive, noon);
    const name = freshName();
    const manual: Trigger = { kind: "manual" };
    let queued: RunReport | undefined;
    const ticks = defineJob({
      name,
      schedule: everyFive,
      timeout: "30s",
      tick: ({ at }) => [effectOf(name, at.getTime())],
    });
    await deliver(at(5));
    expect(await done()).toEqual([at(5)]);
    await engine.store.create(name, noon, { clock, random: () => 0, until: clock.now() + 60_000 });
    // 12:05 and 12:10 are never delivered; 12:15 comes while a person's run is going.
    clock.set(at(15));
    const byHand = defineJob({
      name,
      schedule: everyFive,
      timeout: "30s",
      run: async (run) => {
        if (run.tick === undefined) queued = await runJob(ticks, { kind: "schedule", tick: at(15) }, deps);
      },
    });
    const report = await runJob(byHand, manual, { ...deps, log: silentLog });
    expect([queued?.outcome, report.outcome]).toEqual(["queued", "succeeded"]);
    expect(report.ticks).toEqual({ from: iso(at(5)), through: iso(at(15)), count: 3 });
  });
});
