/** A watchdog that heals: what it starts, when, and how often. */
import { cron, type DynamoStore, type Job, rate, runJob } from "cronfence";
import { lateAfterMs, watchdog } from "cronfence/watchdog";
import { afterEach, describe, expect, it } from "vitest";
import { budgetOn, useEngine } from "../fixture.ts";
import { day, hour, minute, openScene, type Scene, storeWith } from "./scene.ts";

const fixture = useEngine("rows");
afterEach(() => fixture.proxy.reset());

const iso = (at: number) => new Date(at).toISOString();
const control = (scene: Scene, job: Job) => fixture.store.read(job.name, budgetOn(scene.clock));
const known = (scene: Scene, job: Job) => fixture.store.create(job.name, scene.clock.now(), budgetOn(scene.clock));

describe("An overdue job", () => {
  it("is started for its overdue tick, whose run does it, and then it is well", async () => {
    const scene = openScene(fixture);
    const job = scene.job();
    await known(scene, job);
    const tick = Date.parse("2026-03-01T01:00:00Z");
    scene.clock.set(tick + lateAfterMs(job) + 1);
    const { report } = await scene.watch([job], { heal: true });
    expect(report).toMatchObject({ overdue: 1, started: 1 });
    expect(report?.findings.at(-1)).toEqual({ job: job.name, kind: "started", tick: iso(tick) });
    expect(scene.started).toEqual([[job.name, tick]]);
    expect(await scene.run(job, tick)).toMatchObject({ outcome: "succeeded" });
    expect((await scene.watch([job], { heal: true })).report).toMatchObject({ overdue: 0, started: 0 });
  });

  it("isn't started by a watchdog that isn't told to", async () => {
    const scene = openScene(fixture);
    const job = scene.job();
    await known(scene, job);
    scene.clock.advance(5 * hour);
    expect((await scene.watch([job])).report).toMatchObject({ overdue: 1, started: 0 });
    expect(await control(scene, job)).not.toHaveProperty("healed");
  });

  it("is started once for a tick, however often the watchdog looks, and however many there are", async () => {
    const scene = openScene(fixture);
    const job = scene.job({ schedule: cron("0 1 * * *") });
    await known(scene, job);
    scene.clock.set("2026-03-01T02:00:00Z");
    await Promise.all(["a", "b", "c"].map((name) => scene.watch([job], { heal: true, name: `${name}-${job.name}` })));
    for (let looks = 0; looks < 20; looks += 1) {
      scene.clock.advance(hour);
      await scene.watch([job], { heal: true });
    }
    expect(scene.started).toEqual([[job.name, Date.parse("2026-03-01T01:00:00Z")]]);
  });

  it("that goes on failing is started for later ticks less and less often, and at once after it has recovered", async () => {
    const scene = openScene(fixture);
    let fails = true;
    const job = scene.job({
      run: () => {
        if (fails) throw new Error("broken");
      },
    });
    await known(scene, job);
    const from = Date.parse("2026-03-01T01:00:00Z");
    const startedAt: number[] = [];
    const looking = async (until: number) => {
      while (scene.clock.now() < until) {
        scene.clock.advance(30 * minute);
        const before = scene.started.length;
        await scene.watch([job], { heal: true, every: "30m" });
        for (const [, tick] of scene.started.slice(before)) {
          startedAt.push(scene.clock.now());
          await scene.run(job, tick);
        }
      }
    };
    scene.clock.set(from);
    await looking(from + 2 * day);
    const pauses = startedAt.slice(1).map((at, index) => (at - startedAt[index]!) / minute);
    expect(pauses).toEqual([60, 120, 240, 480, 960]);
    fails = false;
    const recovered = scene.clock.now();
    await scene.run(job, Math.floor(recovered / hour) * hour);
    const before = startedAt.length;
    await looking(recovered + 3 * hour);
    expect(startedAt.length - before).toBe(2);
  });

  it("isn't started while a run holds the lease, nor when it is paused", async () => {
    const scene = openScene(fixture);
    const job = scene.job({ timeout: "20m" });
    const paused = scene.job();
    await known(scene, job);
    await fixture.store.pause(paused.name, { by: "ann", why: "test", at: scene.clock.now() }, budgetOn(scene.clock));
    scene.clock.set("2026-03-01T03:00:00Z");
    const request = {
      job: job.name,
      owner: "holder",
      run: { id: "held", startedAt: scene.clock.now(), trigger: "schedule" as const },
      now: scene.clock.now(),
      ttlMs: 30_000,
      skewMs: 10_000,
    };
    expect(await fixture.store.acquire(request, budgetOn(scene.clock))).toMatchObject({ kind: "acquired" });
    expect((await scene.watch([job, paused], { heal: true })).report).toMatchObject({ overdue: 1, started: 0 });
    scene.clock.advance(40_001);
    expect((await scene.watch([job, paused], { heal: true })).report).toMatchObject({ started: 1, suspects: 1 });
    expect(scene.started.map(([name]) => name)).toEqual([job.name]);
  });

  it("isn't started where it has been done in the meantime", async () => {
    const scene = openScene(fixture);
    const job = scene.job();
    await known(scene, job);
    const tick = Date.parse("2026-03-01T01:00:00Z");
    scene.clock.set(tick + 30 * minute);
    // Read while it was overdue, and done before the watchdog notes its start.
    const readMany: typeof fixture.store.readMany = async (jobs, budget) => {
      const read = await fixture.store.readMany(jobs, budget);
      await scene.run(job, tick);
      return read;
    };
    const { report } = await scene.watch([job], { heal: true, store: storeWith(fixture.store, { readMany }) });
    expect(report).toMatchObject({ overdue: 1, started: 0 });
    expect(scene.started).toEqual([]);
  });

  it("that can't be started is reported, and hides none of the others", async () => {
    const scene = openScene(fixture);
    const jobs = [scene.job(), scene.job(), scene.job()];
    for (const job of jobs) await known(scene, job);
    scene.clock.advance(2 * hour);
    const reached: string[] = [];
    const start = async (job: string) => {
      if (job === jobs[1]!.name) throw new Error("no such function");
      reached.push(job);
    };
    const { report, outcome } = await scene.watch(jobs, { heal: true, start });
    expect(outcome.outcome).toBe("succeeded");
    expect(report).toMatchObject({ started: 2, unwatched: 0 });
    expect(reached.sort()).toEqual([jobs[0]!.name, jobs[2]!.name].sort());
    expect(report?.findings).toContainEqual({
      job: jobs[1]!.name,
      kind: "notStarted",
      tick: expect.any(String),
      problem: "no such function",
    });
  });

  it("waits for the next look where too many are overdue at once", async () => {
    const scene = openScene(fixture);
    const jobs = Array.from({ length: 7 }, () => scene.job());
    for (const job of jobs) await known(scene, job);
    scene.clock.advance(90 * minute);
    const counts: (number | undefined)[] = [];
    for (let looks = 0; looks < 4; looks += 1) {
      counts.push((await scene.watch(jobs, { heal: true, mostStarts: 3 })).report?.started);
    }
    expect(counts).toEqual([3, 3, 1, 0]);
    expect(new Set(scene.started.map(([name]) => name)).size).toBe(7);
  });
});

describe("Ticks that EventBridge leaves out (case 16)", () => {
  it("are started soon after their time, and no alarm would have gone off", async () => {
    const scene = openScene(fixture, "2026-03-07T07:30:20Z");
    const job = scene.job({ schedule: cron("30 2 * * *", { zone: "America/New_York" }) });
    await scene.run(job, Date.parse("2026-03-07T07:30:00Z"));
    const skipped = Date.parse("2026-03-08T07:00:00Z");
    const overdue: unknown[] = [];
    for (scene.clock.set(skipped - 5 * minute); scene.clock.now() < skipped + hour; scene.clock.advance(5 * minute)) {
      const before = scene.started.length;
      await scene.watch([job], { heal: true });
      overdue.push(scene.metrics.of(job.name)?.Overdue);
      for (const [, tick] of scene.started.slice(before)) await scene.run(job, tick);
    }
    expect(scene.started).toEqual([[job.name, skipped]]);
    expect(new Set(overdue)).toEqual(new Set([0]));
    expect(await control(scene, job)).toMatchObject({ tick: skipped });
  });
});

describe("A watchdog that is killed in mid-run", () => {
  /** One that is heard of no more once `die` is called: neither its timers nor its requests go on. */
  const killed = async (
    scene: Scene,
    jobs: readonly Job[],
    orders: (die: () => Promise<never>) => {
      readonly start?: (job: string, tick: number) => Promise<void>;
      readonly store?: DynamoStore;
    },
  ): Promise<string> => {
    let died = () => {};
    const dead = new Promise<void>((resolve) => {
      died = resolve;
    });
    const frozen = { now: scene.clock.now, after: () => () => {} };
    const { start, store } = orders(() => {
      died();
      return new Promise<never>(() => {});
    });
    const job = watchdog({
      name: scene.name,
      jobs,
      clock: frozen,
      store: store ?? fixture.store,
      metrics: scene.metrics,
      ...(start === undefined ? {} : { heal: true, start }),
    });
    const deps = { store: fixture.store, clock: frozen, log: scene.log.log };
    void runJob(job, { kind: "schedule", tick: scene.clock.now() }, deps).catch(() => {});
    await dead;
    return (await fixture.store.read(scene.name, budgetOn(scene.clock)))?.run?.id ?? "";
  };
  const overdue = async (scene: Scene, count: number): Promise<Job[]> => {
    const jobs = Array.from({ length: count }, () => scene.job({ schedule: rate("1 day") }));
    for (const job of jobs) await known(scene, job);
    scene.clock.advance(30 * hour);
    return jobs;
  };

  it.each(["before the note", "after the note", "after the start"])(
    "%s of one job has started nothing twice, and the next look does the rest",
    async (when) => {
      const scene = openScene(fixture);
      const jobs = await overdue(scene, 3);
      const victim = jobs[1]!.name;
      await killed(scene, jobs, (die) => ({
        start: async (job, tick) => {
          if (job === victim && when === "after the note") await die();
          scene.started.push([job, tick]);
          if (job === victim) await die();
        },
        store: storeWith(fixture.store, {
          noteHealed: (job, ...rest) =>
            job === victim && when === "before the note" ? die() : fixture.store.noteHealed(job, ...rest),
        }),
      }));
      scene.clock.advance(5 * minute);
      const { outcome } = await scene.watch(jobs, { heal: true });
      expect(outcome.outcome).toBe("succeeded");
      const counts = jobs.map(({ name }) => scene.started.filter(([started]) => started === name).length);
      expect(counts).toEqual([1, when === "after the note" ? 0 : 1, 1]);
      // What was noted and not started is overdue, and so paged; its next tick is started.
      expect(scene.metrics.of(victim)?.Overdue).toBeGreaterThan(0);
      scene.clock.advance(day);
      await scene.watch([jobs[1]!], { heal: true });
      expect(scene.started.at(-1)?.[0]).toBe(victim);
    },
  );

  it("is recorded as crashed by the next, which does its work", async () => {
    const scene = openScene(fixture);
    const jobs = await overdue(scene, 2);
    const run = await killed(scene, jobs, (die) => ({ store: storeWith(fixture.store, { readMany: die }) }));
    expect(scene.metrics.sets).toEqual([]);
    scene.clock.advance(5 * minute);
    const { outcome, report } = await scene.watch(jobs);
    expect(outcome).toMatchObject({ outcome: "succeeded", items: 2 });
    expect(report).toMatchObject({ overdue: 2 });
    const { runs } = await fixture.store.runs(scene.name, { limit: 10 }, budgetOn(scene.clock));
    expect(runs.map(({ id, outcome }) => [id, outcome])).toEqual([
      [outcome.run, "succeeded"],
      [run, "crashed"],
    ]);
  });
});
