/** The watchdog on real control items: what runs leave there, and what it makes of it. */
import { UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { cron, dynamoStore } from "cronfence";
import { UnwatchedError, watchdog } from "cronfence/watchdog";
import { afterEach, describe, expect, it } from "vitest";
import { budgetOn, clientFor, controlTable, useEngine } from "../fixture.ts";
import { day, hour, minute, openScene, type Scene, storeWith } from "./scene.ts";

const fixture = useEngine("rows");
afterEach(() => fixture.proxy.reset());

const key = (job: string) => marshall({ pk: `job#${job}`, sk: "control" });
const late = 11 * minute + 10_000;

/** What was found about a job. */
const found = (scene: Scene, job: string) =>
  scene.log.lines
    .filter(({ watched }) => watched === job)
    .map(({ level, message, ...line }) => ({ level, message, line }));

describe("A healthy job", () => {
  it("is measured at every look, as dense zeros, and nothing is said of it", async () => {
    const scene = openScene(fixture);
    const job = scene.job();
    scene.clock.set("2026-03-01T01:00:20Z");
    await scene.run(job, scene.clock.now() - 20_000);
    for (let looks = 0; looks < 3; looks += 1) {
      scene.clock.advance(5 * minute);
      const { outcome, report } = await scene.watch([job]);
      expect(outcome).toMatchObject({ outcome: "succeeded", items: 1 });
      expect(report).toEqual({ jobs: 1, overdue: 0, suspects: 0, remarks: 0, started: 0, unwatched: 0, findings: [] });
    }
    const sets = scene.metrics.sets.filter((set) => set.job === job.name);
    expect(sets.map(({ values }) => values)).toEqual(Array(3).fill({ Overdue: 0, ConsecutiveFailures: 0 }));
    expect(new Set(sets.map(({ at }) => at)).size).toBe(3);
    expect(scene.metrics.flushes).toBe(3);
    expect(found(scene, job.name)).toEqual([]);
  });

  it("costs an hundredth of a request, and the watchdog two more of its own", async () => {
    const scene = openScene(fixture);
    const jobs = Array.from({ length: 250 }, () => scene.job());
    const { outcome } = await scene.watch(jobs);
    expect(outcome.outcome).toBe("succeeded");
    await scene.watch(jobs, { store: fixture.faulty() });
    const operations = fixture.proxy.requests.map(({ operation, body }) => [
      operation,
      body.RequestItems?.[controlTable].Keys.length,
    ]);
    expect(operations).toEqual([
      ["BatchGetItem", 100],
      ["BatchGetItem", 100],
      ["BatchGetItem", 50],
    ]);
  });
});

describe("A job that missed a tick", () => {
  it("is overdue by what it is late, with the tick, until it has done it", async () => {
    const scene = openScene(fixture);
    const job = scene.job();
    await fixture.store.create(job.name, scene.clock.now(), budgetOn(scene.clock));
    scene.clock.set("2026-03-01T01:00:00Z");
    const tick = scene.clock.now();
    scene.clock.advance(late);
    await scene.watch([job]);
    expect(scene.metrics.of(job.name)?.Overdue).toBe(0);
    scene.clock.advance(90_500);
    const { report } = await scene.watch([job]);
    expect(scene.metrics.of(job.name)?.Overdue).toBe(91);
    expect(report).toMatchObject({
      overdue: 1,
      findings: [{ job: job.name, kind: "overdue", tick: "2026-03-01T01:00:00.000Z", overdueMs: 90_500 }],
    });
    expect(found(scene, job.name)).toMatchObject([{ level: "warn", message: "a tick is overdue" }]);
    await scene.run(job, tick);
    await scene.watch([job]);
    expect(scene.metrics.of(job.name)?.Overdue).toBe(0);
  });

  it("is found by a watchdog whose clock differs from its own by no more than the skew, and not falsely before", async () => {
    const scene = openScene(fixture);
    const job = scene.job();
    await fixture.store.create(job.name, scene.clock.now(), budgetOn(scene.clock));
    scene.clock.set("2026-03-01T01:00:00Z");
    // Whatever time a run's own machine has, a tick's identity is the scheduled time.
    const ahead = scene.clock.skewed(10_000);
    scene.clock.advance(11 * minute);
    await scene.watch([job], { clock: ahead });
    expect(scene.metrics.of(job.name)?.Overdue).toBe(0);
    scene.clock.advance(20_001);
    await scene.watch([job], { clock: scene.clock.skewed(-10_000) });
    expect(scene.metrics.of(job.name)?.Overdue).toBeGreaterThan(0);
  });

  it("pages although it was deployed and never ran: its control item is made, and its ticks are owed from then on", async () => {
    const scene = openScene(fixture);
    const job = scene.job();
    await scene.watch([job]);
    expect(await fixture.store.read(job.name, budgetOn(scene.clock))).toMatchObject({
      since: scene.clock.now(),
      unfinished: 0,
    });
    expect(scene.metrics.of(job.name)).toEqual({ Overdue: 0, ConsecutiveFailures: 0 });
    scene.clock.set("2026-03-01T01:20:00Z");
    await scene.watch([job]);
    expect(scene.metrics.of(job.name)?.Overdue).toBeGreaterThan(0);
  });

  it("and that is to begin in the past isn't late before its first delivery", async () => {
    const scene = openScene(fixture);
    const job = scene.job({ startAt: "2026-02-01T00:00:00Z" });
    await scene.watch([job]);
    await scene.watch([job]);
    expect(scene.metrics.of(job.name)?.Overdue).toBe(0);
    scene.clock.set(Date.parse("2026-03-01T01:00:00Z") + late + 1);
    const { report } = await scene.watch([job]);
    expect(report?.findings).toMatchObject([{ kind: "overdue", tick: "2026-02-01T00:00:00.000Z", overdueMs: 1 }]);
  });

  it("has no control item made where it has no schedule, nor a metric for what it can't be", async () => {
    const scene = openScene(fixture);
    const job = scene.job({ schedule: undefined, exact: undefined });
    const { outcome } = await scene.watch([job]);
    expect(outcome.outcome).toBe("succeeded");
    expect(await fixture.store.read(job.name, budgetOn(scene.clock))).toBeUndefined();
    expect(scene.metrics.of(job.name)).toEqual({ ConsecutiveFailures: 0 });
  });

  it("is nobody's business any more when it is removed from the code", async () => {
    const scene = openScene(fixture);
    const [kept, removed] = [scene.job(), scene.job()];
    await scene.watch([kept, removed]);
    scene.clock.advance(2 * hour);
    const before = scene.metrics.sets.length;
    const { report } = await scene.watch([kept]);
    expect(report).toMatchObject({ jobs: 1, overdue: 1 });
    expect(scene.metrics.sets.slice(before).map(({ job }) => job)).not.toContain(removed.name);
  });
});

describe("After a deployment with another schedule", () => {
  it("nothing is overdue that only the new schedule has, and its next tick is owed all the same", async () => {
    const scene = openScene(fixture);
    const daily = scene.job({ schedule: cron("0 1 * * *") });
    scene.clock.set("2026-03-01T01:00:10Z");
    await scene.run(daily, scene.clock.now() - 10_000);
    const hourly = scene.job({ name: daily.name });
    scene.clock.set("2026-03-01T20:30:00Z");
    const { report } = await scene.watch([hourly]);
    expect(report).toMatchObject({ overdue: 0 });
    scene.clock.set(Date.parse("2026-03-01T21:00:00Z") + late);
    expect((await scene.watch([hourly])).report).toMatchObject({ overdue: 0 });
    scene.clock.advance(1);
    expect((await scene.watch([hourly])).report).toMatchObject({ overdue: 1 });
    // And the run of the new schedule does all that is owed.
    await scene.run(hourly, Date.parse("2026-03-01T21:00:00Z"));
    expect((await scene.watch([hourly])).report).toMatchObject({ overdue: 0 });
  });

  it("a change that can't be noted makes the job unwatched, since it would stay so for ever", async () => {
    const scene = openScene(fixture);
    const daily = scene.job({ schedule: cron("0 1 * * *") });
    scene.clock.set("2026-03-01T01:00:10Z");
    await scene.run(daily, scene.clock.now() - 10_000);
    scene.clock.set("2026-03-01T20:30:00Z");
    const noteSchedule = async () => {
      throw new Error("not allowed");
    };
    const store = storeWith(fixture.store, { noteSchedule });
    const { report } = await scene.watch([scene.job({ name: daily.name })], { store });
    expect(report?.findings).toMatchObject([{ kind: "unwatched", problem: "Error: not allowed" }]);
  });
});

describe("A paused job", () => {
  it("isn't overdue, is remarked on after a week, and after it is resumed only its next tick is late", async () => {
    const scene = openScene(fixture);
    const job = scene.job({ schedule: cron("0 12 * * *") });
    const budget = () => budgetOn(scene.clock);
    const paused = { by: "ann", why: "stocktaking", at: scene.clock.now() };
    await fixture.store.pause(job.name, paused, budget());
    scene.clock.advance(6 * day);
    expect((await scene.watch([job])).report).toMatchObject({ overdue: 0, remarks: 0 });
    scene.clock.advance(2 * day);
    expect((await scene.watch([job])).report?.findings).toEqual([
      { job: job.name, kind: "remark", remark: { kind: "paused", forMs: 8 * day, by: "ann", why: "stocktaking" } },
    ]);
    expect((await scene.watch([job], { tooLong: "9d" })).report).toMatchObject({ remarks: 0 });
    await fixture.store.resume(job.name, { by: "ann", why: "done" }, scene.clock.now(), budget());
    expect((await scene.watch([job])).report).toMatchObject({ overdue: 0 });
    scene.clock.set(Date.parse("2026-03-09T12:00:00Z") + late + 1);
    expect((await scene.watch([job])).report).toMatchObject({ overdue: 1 });
  });
});

describe("After the control table was restored from a backup", () => {
  it("nothing is overdue that was done since then, before the next delivery has had its time", async () => {
    const scene = openScene(fixture);
    const job = scene.job({ schedule: cron("0 12 * * *") });
    await scene.watch([job]);
    scene.clock.advance(5 * day);
    await fixture.store.restored({ by: "ann", why: "a backup" }, scene.clock.now(), budgetOn(scene.clock));
    expect((await scene.watch([job])).report).toMatchObject({ overdue: 0 });
    scene.clock.set(Date.parse("2026-03-06T12:00:00Z") + late + 1);
    expect((await scene.watch([job])).report).toMatchObject({ overdue: 1 });
  });
});

describe("Failures", () => {
  it("in a row are counted by ticks, the tries of one counting once, until a success", async () => {
    const scene = openScene(fixture);
    let fails = true;
    const job = scene.job({
      run: () => {
        if (fails) throw new Error("broken");
      },
    });
    const counted: unknown[] = [];
    for (let tick = Date.parse("2026-03-01T01:00:00Z"), index = 0; index < 4; index += 1, tick += hour) {
      scene.clock.set(tick + 1_000);
      fails = index < 3;
      await scene.run(job, tick);
      if (fails) await scene.run(job, tick);
      await scene.watch([job]);
      counted.push(scene.metrics.of(job.name)?.ConsecutiveFailures);
    }
    expect(counted).toEqual([1, 2, 3, 0]);
  });

  it("don't hide how far the watermark is, nor how often the job was capped", async () => {
    const scene = openScene(fixture);
    const job = scene.job({
      run: async (run: { commit(writes: [], options: object): Promise<void>; capped(): void }) => {
        await run.commit([], { watermark: "2026-03-01T00:00:00.000Z#cart-1" });
        run.capped();
      },
    });
    scene.clock.set("2026-03-01T01:00:00Z");
    await scene.run(job, scene.clock.now());
    scene.clock.set("2026-03-01T02:00:00Z");
    await scene.run(job, scene.clock.now());
    await scene.watch([job]);
    expect(scene.metrics.of(job.name)).toEqual({
      Overdue: 0,
      ConsecutiveFailures: 0,
      CappedInARow: 2,
      WatermarkLag: 2 * 3_600,
    });
  });
});

describe("What is broken hides nothing else:", () => {
  const unwatched = (scene: Scene) => scene.log.lines.filter(({ message }) => message === "a job couldn't be judged");

  it("a definition that can't be loaded, one that is none, one that comes twice, one whose schedule throws", async () => {
    const scene = openScene(fixture);
    const [first, last] = [scene.job(), scene.job()];
    const throwing = {
      ...scene.job(),
      schedule: {
        ...first.schedule!,
        next: () => {
          throw new Error("no such zone");
        },
      },
    };
    const { outcome, report } = await scene.watch([
      first,
      () => {
        throw new SyntaxError("unexpected end of input");
      },
      async () => ({ name: "not a job" }) as never,
      scene.job({ name: first.name }),
      throwing,
      () => Promise.resolve(last),
    ]);
    expect(report).toMatchObject({ jobs: 3, unwatched: 4 });
    expect(scene.metrics.of(first.name)).toBeDefined();
    expect(scene.metrics.of(last.name)).toBeDefined();
    expect(unwatched(scene).map(({ watched, problem }) => [watched, problem])).toEqual([
      ["(number 2)", "SyntaxError: unexpected end of input"],
      ["(number 3)", expect.stringContaining("it isn't a job as defineJob returns it")],
      [first.name, "two of the watched jobs have this name"],
      [throwing.name, "Error: no such zone"],
    ]);
    expect(outcome).toMatchObject({ outcome: "failed", error: { code: "UNWATCHED" } });
    expect(outcome.thrown).toBeInstanceOf(UnwatchedError);
    expect(outcome.error?.message).toContain(`${throwing.name} (Error: no such zone)`);
  });

  it("a control item with a watermark that isn't JSON, one with a number that isn't, one of a future tick", async () => {
    const scene = openScene(fixture);
    const jobs = Array.from({ length: 4 }, () => scene.job());
    await scene.watch(jobs);
    const edit = (job: string, attribute: string, value: unknown) =>
      fixture.client.send(
        new UpdateItemCommand({
          TableName: controlTable,
          Key: key(job),
          UpdateExpression: "SET #a = :v",
          ExpressionAttributeNames: { "#a": attribute },
          ExpressionAttributeValues: marshall({ ":v": value }),
        }),
      );
    await edit(jobs[0]!.name, "watermark", "{not json");
    await edit(jobs[1]!.name, "failedTicks", "many");
    await edit(jobs[2]!.name, "tick", Date.parse("2099-01-01T00:00:00Z"));
    const { report } = await scene.watch(jobs);
    expect(report).toMatchObject({ jobs: 4, unwatched: 3 });
    expect(report?.findings.map(({ job }) => job).sort()).toEqual(
      jobs
        .slice(0, 3)
        .map(({ name }) => name)
        .sort(),
    );
    expect(scene.metrics.of(jobs[3]!.name)).toBeDefined();
    const { sets } = scene.metrics;
    expect(sets.at(-1)?.values).toEqual({ Unwatched: 3 });
  });

  it("a batch that can't be read, while the others can", async () => {
    const scene = openScene(fixture);
    const jobs = Array.from({ length: 150 }, () => scene.job());
    fixture.proxy.when(({ body }) => body.RequestItems?.[controlTable]?.Keys.length === 100, {
      error: "AccessDeniedException",
    });
    const { report } = await scene.watch(jobs, { store: fixture.faulty() });
    expect(report).toMatchObject({ jobs: 150, unwatched: 100 });
    expect(scene.metrics.of(jobs[149]!.name)).toBeDefined();
    // A log that is still read: the first hundred, and that there is more.
    expect(unwatched(scene)).toHaveLength(100);
  });

  it("so many findings that nobody would read them: the first are logged, all are counted", async () => {
    const scene = openScene(fixture);
    const jobs = Array.from({ length: 130 }, () => scene.job());
    await scene.watch(jobs);
    scene.clock.advance(2 * hour);
    const { report } = await scene.watch(jobs);
    expect(report).toMatchObject({ overdue: 130 });
    expect(report?.findings).toHaveLength(130);
    expect(scene.log.lines.filter(({ message }) => message === "a tick is overdue")).toHaveLength(100);
    expect(scene.log.lines.filter(({ message }) => message.startsWith("more was found"))).toHaveLength(1);
    expect(scene.log.lines.findLast(({ message }) => message === "watched")).toMatchObject({ overdue: 130 });
  });

  it("metrics that can't be sent, which is said once", async () => {
    const scene = openScene(fixture);
    const metrics = {
      record: () => {
        throw new Error("full");
      },
      flush: () => Promise.reject(new Error("gone")),
    };
    const { outcome, report } = await scene.watch([scene.job(), scene.job()], { metrics });
    expect(outcome.outcome).toBe("succeeded");
    expect(report).toMatchObject({ jobs: 2, unwatched: 0 });
    expect(scene.log.lines.filter(({ message }) => message === "metrics of the watchdog were lost")).toHaveLength(1);
    expect(scene.log.lines.findLast(({ message }) => message === "watched")).toMatchObject({ metricsLost: 4 });
  });

  it("a control table that doesn't exist: every job is unwatched, and the run fails", async () => {
    const scene = openScene(fixture);
    const store = dynamoStore({ client: clientFor(fixture.endpoint), table: "no-such-table" });
    const { outcome, report } = await scene.watch([scene.job()], { store });
    expect(outcome.outcome).toBe("failed");
    expect(report).toMatchObject({ unwatched: 1 });
    expect(outcome.error?.message).toContain("no-such-table");
  });
});

describe("Options of a watchdog", () => {
  it("that can't be accepted are named all at once, each with what is allowed", () => {
    const wrong = {
      every: "7m",
      jobs: "all",
      metrics: "stdout",
      heal: "yes",
      start: 1,
      mostStarts: 0,
      tooLong: "long",
      service: ":x",
      evry: 1,
    };
    const refused = () => watchdog(wrong as never);
    for (const problem of [
      "evry is not an option; did you mean every?",
      'every is "7m", and must be a whole number of minutes that divides an hour',
      'jobs is "all"',
      'metrics is "stdout"',
      'heal is "yes"',
      "start must be a function",
      "mostStarts is 0",
      "tooLong is",
      'service is ":x"',
    ]) {
      expect(refused).toThrow(problem);
    }
  });

  it("that belong together are asked for together", () => {
    expect(() => watchdog({ jobs: [], heal: true })).toThrow("heal needs start");
    expect(() => watchdog({ jobs: [], start: async () => {} })).toThrow("start and mostStarts are for heal: true");
    expect(() => watchdog({ jobs: [], mostStarts: 3 })).toThrow("start and mostStarts are for heal: true");
  });

  it("decide its schedule and its timeout", () => {
    const times = (["1m", "5m", "30m", 900_000] as const).map((every) => {
      const { schedule, timeoutMs, warnings, name } = watchdog({ jobs: [], every, name: "dog" });
      return [schedule?.source, timeoutMs / minute, warnings, name];
    });
    expect(times).toEqual([
      ["*/1 * * * *", 0.8, [], "dog"],
      ["*/5 * * * *", 4, [], "dog"],
      ["*/30 * * * *", 24, [], "dog"],
      ["*/15 * * * *", 12, [], "dog"],
    ]);
    expect(watchdog({ jobs: [] })).toMatchObject({ name: "watchdog", timeoutMs: 4 * minute });
  });

  it("may give a list that is made anew at each look, also one that comes bit by bit", async () => {
    const scene = openScene(fixture);
    const jobs = [scene.job(), scene.job()];
    const list = async function* () {
      yield* jobs;
    };
    for (let looks = 0; looks < 2; looks += 1) expect((await scene.watch(list)).report).toMatchObject({ jobs: 2 });
  });
});

describe("A dry run of the watchdog", () => {
  it("looks and logs, and writes, sends and starts nothing", async () => {
    const scene = openScene(fixture);
    const known = scene.job();
    await scene.watch([known]);
    scene.clock.advance(2 * hour);
    const before = scene.metrics.sets.length;
    process.env.CRONFENCE_DRY_RUN = "1";
    const unknown = { ...scene.job({ dryRun: false }) };
    try {
      const { outcome, report } = await scene.watch([{ ...known, dryRun: false }, unknown], { heal: true });
      expect(outcome.outcome).toBe("dry_run");
      expect(report).toMatchObject({ jobs: 2, overdue: 1, started: 0 });
    } finally {
      delete process.env.CRONFENCE_DRY_RUN;
    }
    expect(scene.started).toEqual([]);
    expect(scene.metrics.sets).toHaveLength(before);
    expect(await fixture.store.read(unknown.name, budgetOn(scene.clock))).toBeUndefined();
  });
});
