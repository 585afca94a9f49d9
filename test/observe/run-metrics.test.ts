/** What a run comes to in numbers, for every way in which it can end, and that telling them changes nothing. */
import { defineJob, type Job, type JobOptions, type Run, type RunDeps, runJob } from "cronfence";
import { settableClock } from "cronfence/testing";
import { afterEach, describe, expect, it, vi } from "vitest";
import { SilentFailureError } from "../../src/errors.ts";
import type { MetricSet } from "../../src/observe/metrics.ts";
import type { RunObserver } from "../../src/observe/observers.ts";
import { metricsOf, runMetrics, sinkOf } from "../../src/observe/run-metrics.ts";
import { defaultMetrics } from "../../src/observe/standard-observers.ts";
import type { Outcome } from "../../src/outcome.ts";
import { withThrown } from "../../src/report.ts";
import { freshName, useEngine } from "../fixture.ts";
import { recordedLog } from "../recorded-log.ts";
import { until } from "../testing/processes.ts";

const fixture = useEngine("rows");
afterEach(() => {
  vi.unstubAllEnvs();
  fixture.proxy.reset();
});

const tick = Date.parse("2026-03-01T23:59:30Z");
const define = (more: Partial<JobOptions> & { run?: (run: Run) => unknown } = {}): Job =>
  defineJob({ name: freshName(), timeout: "5m", run: () => {}, ...more });

const scene = () => {
  const clock = settableClock(tick);
  const log = recordedLog();
  const sets: MetricSet[] = [];
  const sink = { record: (set: MetricSet) => void sets.push(set), flush: vi.fn(async () => {}) };
  const run = (job: Job, more: Partial<RunDeps> = {}, trigger: object = {}) =>
    runJob(
      job,
      { kind: "schedule", tick, ...trigger },
      { store: fixture.store, clock, log: log.log, observers: [runMetrics(sink)], ...more },
    );
  return { clock, log, sets, sink, run };
};

describe("A run that ends as", () => {
  const started = { job: "carts", run: "r1", fence: 7, trigger: "schedule", startedAt: tick, dryRun: false } as const;
  const of = (outcome: Outcome, more = {}) =>
    metricsOf({
      ...started,
      endedAt: tick + 1_500,
      report: { job: "carts", outcome, items: 5, commits: 1, durationMs: 1_500, ...more },
    }).values;

  it.each([
    ["succeeded", { Succeeded: 1, Failed: 0 }],
    ["capped", { Succeeded: 1, Failed: 0, Capped: 1 }],
    ["failed", { Succeeded: 0, Failed: 1 }],
    ["timed_out", { Succeeded: 0, Failed: 1 }],
    ["guard_tripped", { Succeeded: 0, Failed: 1, GuardTripped: 1 }],
    ["lease_lost", { Succeeded: 0, Failed: 0, LeaseLost: 1 }],
    ["interrupted", { Succeeded: 0, Failed: 0 }],
    ["cancelled", { Succeeded: 0, Failed: 0 }],
    ["dry_run", { Succeeded: 0, Failed: 0 }],
  ] as const)("%s counts as %j, beside its duration and items", (outcome, expected) => {
    expect(of(outcome)).toEqual({ ...expected, Duration: 1_500, Items: 5 });
  });

  it("one with parked items, or with failures that its code had swallowed, counts those", () => {
    expect(of("succeeded", { itemsParked: 3 })).toMatchObject({ Parked: 3 });
    expect(of("succeeded", { itemsParked: 0 })).not.toHaveProperty("Parked");
    const swallowed = new SilentFailureError("carts", [
      { call: "S3 DeleteObjects", code: "AccessDenied", count: 4 },
      { call: "SQS SendMessage", code: "AccessDenied", count: 1 },
    ]);
    const report = withThrown({ job: "carts", outcome: "failed", items: 0, commits: 0, durationMs: 1 }, swallowed);
    const { values } = metricsOf({ ...started, endedAt: tick, report });
    expect(values).toMatchObject({ Failed: 1, SilentFailures: 5 });
  });

  it("nobody knows how counts as failed", () => {
    expect(metricsOf({ ...started, endedAt: tick + 7, error: new Error("lost") }).values).toEqual({
      Succeeded: 0,
      Failed: 1,
      Duration: 7,
      Items: 0,
    });
  });
});

describe("Metrics of runs", () => {
  it("are told once at the end, stamped with it, also where the run crosses midnight", async () => {
    const { clock, run, sets, sink } = scene();
    const job = define({
      run: async (current) => {
        await current.commit([], { items: 12 });
        clock.set("2026-03-02T00:00:45Z");
        await current.commit([], { items: 3 });
      },
    });
    const report = await run(job);
    expect(sets).toEqual([
      {
        job: job.name,
        run: report.run,
        at: Date.parse("2026-03-02T00:00:45Z"),
        values: { Succeeded: 1, Failed: 0, Duration: 75_000, Items: 15 },
      },
    ]);
    expect(sink.flush).toHaveBeenCalledTimes(1);
  });

  it.each([Number.NaN, -1, 1.5, Number.POSITIVE_INFINITY])(
    "can't be made nonsense by a commit that says it does the work of %d items: it is refused",
    async (items) => {
      const { run, sets } = scene();
      const report = await run(define({ run: (current) => current.commit([], { items }) }));
      expect(report).toMatchObject({ outcome: "failed", error: { code: "COMMIT_REFUSED" } });
      expect(report.error?.message).toBe(`items is ${items}, and must be a whole number of at least 0`);
      expect(sets[0]?.values).toMatchObject({ Failed: 1, Items: 0 });
    },
  );

  it("aren't told of attempts that never became a run, nor of ad hoc dry runs", async () => {
    const { run, sets } = scene();
    const job = define();
    await run(job);
    await run(job);
    await run(job, {}, { dryRun: true });
    expect(sets).toHaveLength(1);
  });

  it("are told of a run whose end couldn't be recorded", async () => {
    const { run, sets } = scene();
    fixture.proxy.when("TransactWriteItems", { error: "AccessDeniedException" });
    await expect(run(define(), { store: fixture.faulty() })).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    expect(sets.map(({ values }) => values)).toMatchObject([{ Succeeded: 0, Failed: 1 }]);
  });

  it("that can't be told are a line in the log, and the run is what it was", async () => {
    const { run, log } = scene();
    const broken = (what: "record" | "flush") => ({
      record: () => {
        if (what === "record") throw new Error("no room");
      },
      flush: () => Promise.reject(new Error("no network")),
    });
    const observers = [runMetrics(broken("record")), runMetrics(broken("flush"))];
    expect((await run(define(), { observers })).outcome).toBe("succeeded");
    const lines = log.lines.filter(({ message }) => message === "an observer of runs failed");
    expect(lines.map(({ level, observer, error }) => [level, observer, error.message])).toEqual([
      ["warn", "metrics", "no room"],
      ["warn", "metrics", "no network"],
    ]);
  });

  it("hold up a report for a few seconds at most", async () => {
    const { run, clock, log } = scene();
    let flushed = () => {};
    const flushing = new Promise<void>((resolve) => {
      flushed = resolve;
    });
    let aborted: AbortSignal | undefined;
    const sink = {
      record: () => {},
      flush: (signal?: AbortSignal) => {
        aborted = signal;
        flushed();
        return new Promise<void>(() => {});
      },
    };
    const running = run(define(), { observers: [runMetrics(sink)] });
    await flushing;
    clock.advance(6_000);
    expect((await running).outcome).toBe("succeeded");
    expect(aborted?.aborted).toBe(true);
    expect(log.lines.some(({ message }) => message === "observers of runs weren't done in time")).toBe(true);
  });
});

describe("A job's metrics option", () => {
  const written = async (job: Job) => {
    const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
    try {
      await scene().run(job, { observers: [] });
      return write.mock.calls.map(([line]) => JSON.parse(String(line)));
    } finally {
      write.mockRestore();
    }
  };

  it("sends them to standard output, or nowhere", async () => {
    const job = define({ metrics: "emf" });
    expect(await written(job)).toMatchObject([{ job: job.name, service: "cronfence", Succeeded: 1, Failed: 0 }]);
    expect(await written(define())).toEqual([]);
    expect(await written(define({ metrics: "off" }))).toEqual([]);
  });

  it("is the environment's where the job has none", async () => {
    vi.stubEnv("CRONFENCE_METRICS", "emf");
    expect(await written(define())).toHaveLength(1);
    expect(await written(define({ metrics: "off" }))).toEqual([]);
  });

  it("is refused where it is none of those that exist, in the job and in the environment", () => {
    expect(() => define({ metrics: "stdout" as never })).toThrow('must be "emf", "cloudwatch" or "off"');
    vi.stubEnv("CRONFENCE_METRICS", "yes");
    expect(() => define()).toThrow('the environment\'s CRONFENCE_METRICS is "yes"');
    expect(defaultMetrics).toThrow(RangeError);
    expect(() => define({ metrics: "off" })).not.toThrow();
  });

  it("drops a number that is none, with a line in the log", () => {
    const { log } = scene();
    const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
    try {
      void sinkOf("emf", log.log, "shop")?.record({ job: "carts", at: tick, values: { Items: Number.NaN } });
      expect(write).not.toHaveBeenCalled();
    } finally {
      write.mockRestore();
    }
    expect(log.lines).toMatchObject([{ level: "warn", job: "carts", metric: "Items", value: "NaN" }]);
    expect(sinkOf("off", log.log)).toBeUndefined();
  });
});

describe("Observers", () => {
  it("are told of the start while the work goes on, with what is known of the run, and of the end after that", async () => {
    const { run } = scene();
    const told: unknown[] = [];
    let begin = () => {};
    const beginning = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const observer: RunObserver = {
      name: "test",
      started: async (started) => {
        told.push(["started", started]);
        await beginning;
        told.push(["start told"]);
      },
      ended: ({ report, endedAt }) => void told.push(["ended", report?.outcome, endedAt]),
    };
    const job = define({
      run: () => {
        told.push(["worked"]);
        begin();
      },
    });
    const report = await run(job, { observers: [observer], version: "v7" });
    expect(told).toEqual([
      [
        "started",
        {
          job: job.name,
          run: report.run,
          fence: report.fence,
          trigger: "schedule",
          tick,
          startedAt: tick,
          dryRun: false,
          version: "v7",
        },
      ],
      ["worked"],
      ["start told"],
      ["ended", "succeeded", tick],
    ]);
  });

  it("are told of the end only when they are through with the start, however late", async () => {
    const { run, log } = scene();
    const told: string[] = [];
    let go = () => {};
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    const slow: RunObserver = {
      name: "slow",
      started: async () => {
        await gate;
        told.push("started");
      },
      ended: () => void told.push("ended"),
    };
    const quick: RunObserver = { name: "quick", ended: () => void told.push("quick ended") };
    const running = run(define(), { observers: [slow, quick] });
    await until("the run has ended and the quick one knows", () => told.includes("quick ended"));
    expect(log.lines.at(-1)?.message).toBe("attempt ended: succeeded");
    expect(told).toEqual(["quick ended"]);
    go();
    await running;
    expect(told).toEqual(["quick ended", "started", "ended"]);
  });

  it("that throw, at the start or at the end, at once or later, are a line in the log each", async () => {
    const { run, log } = scene();
    const throwing = (name: string): RunObserver => ({
      name,
      started: () => {
        throw new Error("at once");
      },
      ended: async () => {
        throw "not even an error";
      },
    });
    expect((await run(define(), { observers: [throwing("a"), throwing("b")] })).outcome).toBe("succeeded");
    const lines = log.lines.filter(({ message }) => message === "an observer of runs failed");
    expect(lines.map(({ observer, error }) => [observer, error.message])).toEqual([
      ["a", "at once"],
      ["b", "at once"],
      ["a", "not even an error"],
      ["b", "not even an error"],
    ]);
  });
});
