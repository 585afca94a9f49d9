import { cron, defineJob, type Job, type Json, type RunReport, runJob, type TickRun, type Write } from "cronfence";
import { fromAsyncIterable, type Source } from "cronfence/sources";
import { dumpTable, settableClock } from "cronfence/testing";
import { describe, expect, it } from "vitest";
import { budgetOn, controlTable, freshName, silentLog, useEngine } from "../fixture.ts";

const engine = useEngine("sessions");

const start = Date.UTC(2026, 0, 1);

/** A purge of whatever `items` says by now, which a test may change between runs. */
const purge = (items: () => readonly string[], options: Record<string, unknown>) => {
  const clock = settableClock(start);
  const name = freshName();
  const source: Source<string> = {
    ...fromAsyncIterable<string>({ name: "sessions", items, cursor: (id) => id }),
    resumes: "start",
  };
  const job = defineJob({
    name,
    timeout: "1m",
    source,
    process: (id: string) => [{ Put: { TableName: "sessions", Item: { id: `${name}/${id}`, purged: true } } }],
    ...options,
  } as never) as Job;
  const deps = { store: engine.store, clock, log: silentLog };
  return {
    name,
    clock,
    go: (): Promise<RunReport> => {
      clock.advance(1_000);
      return runJob(job, { kind: "manual" }, deps);
    },
    approve: (max: number, forMs = 86_400_000) =>
      engine.store.approve(
        name,
        { max, until: clock.now() + forMs, by: "ann", why: "a big day" },
        clock.now(),
        budgetOn(clock),
      ),
    purged: async () =>
      (await dumpTable(engine.client, "sessions")).filter(({ id }) => String(id).startsWith(`${name}/`)).length,
    state: () => engine.store.read(name, budgetOn(clock)),
  };
};
const ids = (count: number, from = 0) => Array.from({ length: count }, (_, index) => `s${from + index}`);

describe("A destructive job", () => {
  it("runs when its plan is within the limit", async () => {
    const here = purge(() => ids(10), { destructive: { max: 10 } });
    expect(await here.go()).toMatchObject({ outcome: "succeeded", items: 10 });
    expect(await here.purged()).toBe(10);
  });

  it("writes nothing when its plan exceeds the limit, and says so", async () => {
    const here = purge(() => ids(11), { destructive: { max: 10 } });
    const report = await here.go();
    expect(report).toMatchObject({ outcome: "guard_tripped", items: 0, commits: 0, error: { code: "GUARD_TRIPPED" } });
    expect(report.error?.message).toContain("11 planned items exceed the limit of 10");
    expect(await here.purged()).toBe(0);
    expect(await here.state()).toMatchObject({ tripped: { count: 11 } });
    expect((await here.state())?.watermark).toBeUndefined();
  });

  it("counts as a failure, and leaves the tick owed", async () => {
    const here = purge(() => ids(2), { destructive: { max: 1 } });
    await here.go();
    const state = await here.state();
    expect(state?.failedTicks).toBe(1);
    expect(state?.tick).toBeUndefined();
  });

  it("trips at far more than is usual, once three runs are on record", async () => {
    let count = 4;
    const here = purge(() => ids(count), { destructive: { max: 1_000, usual: { factor: 3 } } });
    await here.go();
    await here.go();
    count = 40;
    expect((await here.go()).outcome).toBe("succeeded");
    count = 4;
    await here.go();
    count = 13;
    const report = await here.go();
    expect(report.outcome).toBe("guard_tripped");
    expect(report.error?.message).toContain("3 times what is usual (12)");
    count = 12;
    expect((await here.go()).outcome).toBe("succeeded");
  });

  it("trips at too large a share of the whole", async () => {
    const here = purge(() => ids(6), { destructive: { max: 1_000, share: { of: () => 20, atMost: 0.25 } } });
    expect((await here.go()).error?.message).toContain("a share of 0.25 of 20");
    expect(await here.purged()).toBe(0);
  });

  it("never affects more than was planned, though more has come since", async () => {
    let reads = 0;
    const here = purge(() => ids(reads++ === 0 ? 5 : 8), { destructive: { max: 10 } });
    expect(await here.go()).toMatchObject({ outcome: "capped", items: 5 });
    expect(await here.purged()).toBe(5);
  });

  it("plans without doing anything when there is nothing to do", async () => {
    const here = purge(() => [], { destructive: { max: 0 } });
    expect(await here.go()).toMatchObject({ outcome: "succeeded", items: 0 });
  });

  it.each<[string, (run: TickRun, write: Write) => unknown]>([
    ["by a commit of its own", (run, write) => run.commit([write])],
    ["by one that isn't waited for", (run, write) => void run.commit([write])],
    ["by an effect", (run) => run.once("effect", () => {})],
  ])("lets a tick write nothing past its guard, %s", async (_, early) => {
    const clock = settableClock(start);
    const name = freshName();
    const write = (id: string) => ({ Put: { TableName: "sessions", Item: { id: `${name}/${id}` } } });
    const job = defineJob({
      name,
      timeout: "1m",
      destructive: { max: 2 },
      tick: async (_tick, run) => {
        await early(run, write("early"));
        return [write("counted")];
      },
    });
    const report = await runJob(job, { kind: "schedule", tick: start }, { store: engine.store, clock, log: silentLog });
    expect(report).toMatchObject({ outcome: "failed", commits: 0, error: { code: "COMMIT_REFUSED" } });
    expect((await dumpTable(engine.client, "sessions")).filter(({ id }) => String(id).startsWith(name))).toEqual([]);
  });

  it("says that nothing of the plan was written, not that nothing was: an earlier tick of the run may be done", async () => {
    const clock = settableClock(start);
    const name = freshName();
    const job = defineJob({
      name,
      timeout: "30s",
      schedule: cron("* * * * *"),
      destructive: { max: 2 },
      tick: (tick) =>
        ids(tick.at.getTime() === start ? 3 : 1).map((id) => ({
          Put: { TableName: "sessions", Item: { id: `${name}/${tick.id}/${id}` } },
        })),
    });
    await engine.store.create(name, start - 61_000, budgetOn(clock));
    const report = await runJob(job, { kind: "schedule", tick: start }, { store: engine.store, clock, log: silentLog });
    expect(report).toMatchObject({ outcome: "guard_tripped", commits: 1, items: 1 });
    expect(report.error?.message).toContain("nothing of this plan was written");
    expect((await engine.store.read(name, budgetOn(clock)))?.tick).toBe(start - 60_000);
  });

  it("guards a tick's writes before the first of them is committed", async () => {
    const clock = settableClock(start);
    const name = freshName();
    const job = defineJob({
      name,
      timeout: "1m",
      destructive: { max: 2 },
      tick: () => ids(3).map((id) => ({ Put: { TableName: "sessions", Item: { id: `${name}/${id}` } } })),
    });
    const report = await runJob(job, { kind: "schedule", tick: start }, { store: engine.store, clock, log: silentLog });
    expect(report).toMatchObject({ outcome: "guard_tripped", commits: 0 });
    expect((await engine.store.read(name, budgetOn(clock)))?.tick).toBeUndefined();
  });

  it("with a run function counts what plan returns, and refuses commits beyond it", async () => {
    const clock = settableClock(start);
    const name = freshName();
    let planned: Json[] = ["a", "b"];
    const put = (id: string) => ({ Put: { TableName: "sessions", Item: { id: `${name}/${id}` } } });
    const job = defineJob({
      name,
      timeout: "1m",
      destructive: { max: 2 },
      plan: () => planned,
      run: async (run) => {
        await run.commit([put("a"), put("b")]);
        await run.commit([put("c")]);
      },
    });
    const deps = { store: engine.store, clock, log: silentLog };
    const report = await runJob(job, { kind: "manual" }, deps);
    expect(report).toMatchObject({ outcome: "failed", items: 2, error: { code: "COMMIT_REFUSED" } });
    expect(report.error?.message).toContain("planned to affect 2 items");
    planned = ["a", "b", "c"];
    clock.advance(1_000);
    expect((await runJob(job, { kind: "manual" }, deps)).outcome).toBe("guard_tripped");
  });

  it.each([
    [{ destructive: {} }, "destructive.max is missing"],
    [{ destructive: true }, "destructive is true"],
    [{ destructive: { max: -1 } }, "destructive.max is -1"],
    [{ destructive: { max: 1, usual: { factor: 0.5 } } }, "destructive.usual.factor is 0.5"],
    [{ destructive: { max: 1, share: { of: 3, atMost: 0.5 } } }, "destructive.share.of is 3"],
  ])("is refused without a guard that can work: %o", (options, problem) => {
    expect(() => purge(() => [], options)).toThrow(problem);
  });

  it("with a run function is refused without a plan", () => {
    expect(() => defineJob({ name: "x", timeout: "1m", destructive: { max: 1 }, run: () => {} })).toThrow(
      "destructive and plan belong together",
    );
  });
});

describe("An approval", () => {
  it("lets one run do the very plan that tripped, and is used up by it", async () => {
    let items = ids(20);
    const here = purge(() => items, { destructive: { max: 10 } });
    expect((await here.go()).outcome).toBe("guard_tripped");
    await here.approve(20);
    expect(await here.go()).toMatchObject({ outcome: "succeeded", items: 20 });
    expect((await here.state())?.approval).toBeUndefined();
    items = ids(20, 100);
    expect((await here.go()).outcome).toBe("guard_tripped");
    expect(await here.purged()).toBe(20);
  });

  it("isn't for the same plan a second time", async () => {
    const here = purge(() => ids(20), { destructive: { max: 10 } });
    await here.go();
    await here.approve(20);
    expect((await here.go()).outcome).toBe("succeeded");
    expect((await here.go()).outcome).toBe("guard_tripped");
  });

  it("is refused when the set has changed after it", async () => {
    let items = ids(20);
    const here = purge(() => items, { destructive: { max: 10 } });
    await here.go();
    await here.approve(20);
    items = [...ids(19), "other"];
    expect((await here.go()).outcome).toBe("guard_tripped");
    expect(await here.purged()).toBe(0);
  });

  it("is over at its time", async () => {
    const here = purge(() => ids(20), { destructive: { max: 10 } });
    await here.go();
    await here.approve(20, 60_000);
    here.clock.advance(60_000);
    expect((await here.go()).outcome).toBe("guard_tripped");
  });

  it("can't be given for less than the plan, nor before a guard has tripped", async () => {
    let items = ids(5);
    const here = purge(() => items, { destructive: { max: 10 } });
    await expect(here.approve(20)).rejects.toThrow("isn't known");
    expect((await here.go()).outcome).toBe("succeeded");
    await expect(here.approve(20)).rejects.toThrow("hasn't tripped");
    items = ids(25).slice(5);
    await here.go();
    await expect(here.approve(19)).rejects.toThrow("of 20 items, more than the 19");
    expect((await here.go()).outcome).toBe("guard_tripped");
  });

  it("isn't used up by a dry run", async () => {
    const here = purge(() => ids(20), { destructive: { max: 10 }, dryRun: true });
    await here.go();
    await here.approve(20);
    expect(await here.go()).toMatchObject({ outcome: "dry_run", wouldWrite: 20 });
    expect(await here.state()).toMatchObject({ approval: { max: 20 } });
    expect(await here.purged()).toBe(0);
  });

  it("is recorded with who gave it and why", async () => {
    const here = purge(() => ids(20), { destructive: { max: 10 } });
    await here.go();
    await here.approve(20);
    const acts = (await dumpTable(engine.client, controlTable)).filter(
      ({ pk, sk }) => pk === `job#${here.name}` && String(sk).startsWith("act#"),
    );
    expect(acts).toMatchObject([{ kind: "approve", by: "ann", why: "a big day", max: 20, planned: 20 }]);
  });
});
