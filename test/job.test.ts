import {
  CronfenceError,
  cron,
  defineJob,
  dynamoStore,
  type InvalidOptionsError,
  type Job,
  type JobOptions,
  type Json,
  type Run,
  type RunInfo,
  runJob,
  type Tick,
  type TickRun,
  type Write,
} from "cronfence";
import { queryAfter, type Source } from "cronfence/sources";
import { settableClock } from "cronfence/testing";
import { afterEach, describe, expect, expectTypeOf, it, vi } from "vitest";
import { recordedLog } from "./recorded-log.ts";

const run = () => {};
const clock = settableClock("2026-03-01T00:00:00Z");
const source = queryAfter<{ id: string }>({ table: "carts", partition: { shop: "eu" }, sort: "expiresAtId" });
const process = (): Write[] => [];

/** Defines a job of any options, as someone who writes JavaScript could. */
const define = (options: unknown): Job => defineJob(options as Parameters<typeof defineJob>[0], { clock });

const problemsOf = (options: unknown): readonly string[] => {
  try {
    define(options);
  } catch (error) {
    expect(error).toBeInstanceOf(CronfenceError);
    expect((error as InvalidOptionsError).code).toBe("INVALID_OPTIONS");
    return (error as InvalidOptionsError).problems;
  }
  return [];
};

afterEach(() => vi.unstubAllEnvs());

describe("A job that is defined", () => {
  it("has a default for what isn't given", () => {
    expect(define({ name: "expire-carts", timeout: "4m", run })).toMatchObject({
      name: "expire-carts",
      timeoutMs: 240_000,
      ttlMs: 30_000,
      skewMs: 10_000,
      overlap: "queue",
      dryRun: false,
      work: { shape: "run" },
      warnings: [],
    });
  });

  it("has what is given, with durations as texts or numbers of milliseconds", () => {
    const schedule = cron("*/5 * * * *");
    const options = { name: "a", timeout: 60_000, ttl: "10s", skew: 500, overlap: "skip", dryRun: true, schedule, run };
    expect(define(options)).toMatchObject({
      timeoutMs: 60_000,
      ttlMs: 10_000,
      skewMs: 500,
      overlap: "skip",
      dryRun: true,
      schedule,
    });
  });

  it.each([
    ["run", { run }, { shape: "run", run }],
    ["tick", { tick: run }, { shape: "tick", tick: run }],
    ["source with process", { source, process, limit: { items: 5 } }, { shape: "source", source, limit: { items: 5 } }],
  ])("has the shape of work of the function that is given: %s", (_, options, work) => {
    expect(define({ name: "a", timeout: "1m", ...options }).work).toMatchObject(work);
  });

  it("is dry in an environment that says so, unless its definition says otherwise", () => {
    vi.stubEnv("CRONFENCE_DRY_RUN", "1");
    expect(define({ name: "a", timeout: "1m", run }).dryRun).toBe(true);
    expect(define({ name: "a", timeout: "1m", run, dryRun: false }).dryRun).toBe(false);
    vi.stubEnv("CRONFENCE_DRY_RUN", "0");
    expect(define({ name: "a", timeout: "1m", run }).dryRun).toBe(false);
    expect(define({ name: "a", timeout: "1m", run, dryRun: true }).dryRun).toBe(true);
  });

  it("warns of a lease that a crashed run would still hold at Lambda's first retry", () => {
    const warningsFor = (ttl: string, skew: string | number) =>
      define({ name: "a", timeout: "1m", ttl, skew, run }).warnings;
    expect(warningsFor("50s", "10s")).toEqual([
      expect.stringMatching(/^ttl \+ skew is 60000 ms, and should be less than 60000 ms: .*retry comes after a minute/),
    ]);
    expect(warningsFor("50s", 9_999)).toEqual([]);
  });

  it("passes on the warnings about its schedule", () => {
    const schedule = cron("0 6 * * *");
    expect(define({ name: "a", timeout: "1m", schedule, run }).warnings).toEqual([expect.stringContaining("minute 0")]);
    expect(define({ name: "a", timeout: "1m", schedule, run, exact: true }).warnings).toEqual([]);
  });
});

describe("A definition is refused", () => {
  it("with all that is wrong at once, each problem with its option, value and what is allowed", () => {
    const options = {
      name: "expire carts",
      timeout: "soon",
      ttl: -5,
      overlap: "wait",
      dryrun: true,
      limit: { items: 0 },
    };
    expect(problemsOf(options)).toEqual([
      "dryrun is not an option; did you mean dryRun?",
      'name is "expire carts", and must be a name of letters, digits, - and _, at most 64 characters',
      'timeout is "soon", and must be a duration such as "30s" or "4m", or a number of milliseconds, more than 0',
      'ttl is -5, and must be a duration such as "30s" or "4m", or a number of milliseconds, more than 0',
      'overlap is "wait", and must be "queue", "skip" or "takeover"',
      "limit.items is 0, and must be an object with items, pages or transactions, each a whole number of at least 1",
      "exactly one of run, tick, or source with process says what the job does, and none is given",
      "limit is for jobs with a source, and there is none",
    ]);
  });

  it("by an error that names the job and lists the problems", () => {
    expect(() => define({ name: "expire-carts", timeout: 0, run })).toThrow(
      /^job "expire-carts": timeout is 0, and must/,
    );
    expect(() => define({ timeout: "1m", run })).toThrow(/^job "\(no name\)": name is missing, and must be a name/);
  });

  it.each([
    [{ timeout: Number.NaN }, "timeout is NaN, and must be"],
    [{ ttl: 10n }, "ttl is 10, and must be"],
    [{ name: 10n }, "name is 10, and must be"],
    [{ schedule: cron("*/5 * * * *"), except: [null, {}] }, "except: null is no date, range, freeze or calendar"],
  ])("by what is wrong with it, also where that isn't JSON: %o", (options, problem) => {
    expect(() => define({ name: "a", timeout: "1m", run, ...options })).toThrow(problem);
  });

  it.each([
    ["dry_run", "dryRun"],
    ["timout", "timeout"],
    ["overlaps", "overlap"],
    ["TTL", "ttl"],
    ["proces", "process"],
    ["shedule", "schedule"],
  ])("with the nearest option for %s", (given, nearest) => {
    expect(problemsOf({ name: "a", timeout: "1m", run, [given]: 1 })).toEqual([
      `${given} is not an option; did you mean ${nearest}?`,
    ]);
  });

  it("with all that are known for an option that is near none", () => {
    expect(problemsOf({ name: "a", timeout: "1m", run, "__proto__ ": 1 })).toEqual([
      expect.stringMatching(/^__proto__ {2}is not an option; known are name, schedule, timeout, ttl/),
    ]);
  });

  it("with the nearest limit, by its path", () => {
    expect(problemsOf({ name: "a", timeout: "1m", source, process, limit: { itms: 5 } })).toEqual([
      "limit.itms is not an option; did you mean items?",
    ]);
  });

  const withRun = { name: "a", timeout: "1m", run };
  const withSource = { name: "a", timeout: "1m", source, process };
  const withSchedule = { ...withRun, schedule: cron("*/5 * * * *") };
  const duration = [
    "",
    "soon",
    "5 parsecs",
    0,
    -1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    null,
    {},
    true,
    "1".repeat(101),
  ];
  const count = [0, -1, 1.5, "5", null, Number.NaN];
  const wrong: [object, string, unknown[]][] = [
    [withRun, "name", ["", "a b", "a#b", "x".repeat(65), 7, null, undefined, "ä"]],
    [withRun, "timeout", [...duration, undefined]],
    [withRun, "ttl", duration],
    [withRun, "skew", duration],
    [withRun, "schedule", ["*/5 * * * *", 5, null, {}, () => {}]],
    [withRun, "overlap", ["", "Queue", "wait", 1, null]],
    [withRun, "dryRun", ["yes", 1, null]],
    [{ name: "a", timeout: "1m" }, "run", ["run", {}, 5]],
    [{ name: "a", timeout: "1m" }, "tick", ["tick", {}, 5]],
    [{ name: "a", timeout: "1m", source }, "process", ["process", {}, 5]],
    [{ name: "a", timeout: "1m", process }, "source", ["carts", {}, 5, { read: "yes" }]],
    [withSource, "limit", [5, "5", null, []]],
    [withSchedule, "jitter", duration],
    [withSchedule, "startWithin", duration],
    [withSchedule, "startAt", ["2026-03-01", "2026-03-01T00:00:00", "2026-02-30T00:00:00Z", "now", 5, null]],
    [withSchedule, "exact", ["yes", 1, null]],
    [withSchedule, "except", ["2026-12-25", {}, 5]],
    [{ ...withRun, run: undefined, tick: run }, "catchUp", ["some", "", true, null]],
    [{ ...withRun, run: undefined, tick: run }, "maxTicks", count],
  ];
  it.each(wrong.flatMap(([options, option, values]) => values.map((value) => [option, value, options] as const)))(
    "for %s: %j",
    (option, value, options) => {
      const problems = problemsOf({ ...options, [option]: value });
      expect(problems.filter((problem) => problem.startsWith(`${option} is `))).toHaveLength(1);
      expect(problems.find((problem) => problem.startsWith(`${option} is `))).toMatch(/, and must be /);
    },
  );

  it.each(["items", "pages", "transactions"])("for a limit of %s that is no count", (bound) => {
    for (const value of count) {
      expect(problemsOf({ ...withSource, limit: { [bound]: value } })).toEqual([
        expect.stringMatching(new RegExp(`^limit.${bound} is .*, and must be .*whole number of at least 1`)),
      ]);
    }
  });

  it("without quoting a long value at length", () => {
    const [problem] = problemsOf({ name: "x".repeat(5_000), timeout: "1m", run });
    expect(problem?.length).toBeLessThan(200);
  });

  it.each([
    ["no work at all", {}, "and none is given"],
    ["two kinds of work", { run, tick: run }, "and run and tick is given"],
    ["three kinds of work", { run, tick: run, source, process }, "and run and tick and source is given"],
    ["a source without process", { source }, "source and process belong together, and only source is given"],
    ["process without a source", { run, process }, "source and process belong together, and only process is given"],
    ["a limit without a source", { run, limit: { items: 5 } }, "limit is for jobs with a source, and there is none"],
    ["catch-up without ticks", { run, catchUp: "all" }, "catchUp is for jobs with a tick function"],
    ["jitter without a schedule", { run, jitter: "1m" }, "jitter is for jobs with a schedule"],
  ])("for %s", (_, work, problem) => {
    expect(problemsOf({ name: "a", timeout: "1m", ...work }).join("; ")).toContain(problem);
  });

  it.each([[undefined], [null], [5], ["job"], [[]]])("for options that are none: %j", (options) => {
    expect(problemsOf(options)[0]).toMatch(/^options must be an object, not /);
  });

  it("for a timeout that isn't shorter than the shortest interval of its schedule", () => {
    const schedule = cron("*/5 * * * *");
    expect(problemsOf({ name: "a", timeout: "5m", schedule, run })).toEqual([
      expect.stringMatching(/timeout of .* must be shorter than the shortest interval between ticks/),
    ]);
    expect(problemsOf({ name: "a", timeout: 299_999, schedule, run })).toEqual([]);
  });

  it("for a schedule that never fires again", () => {
    expect(problemsOf({ name: "a", timeout: "1m", schedule: cron("cron(0 0 1 1 ? 2020)"), run })).toEqual([
      expect.stringContaining("never fires"),
    ]);
  });
});

describe("A job that is run", () => {
  it("is refused, with nothing sent, if its lease could be outlived by one hanging request", async () => {
    const store = dynamoStore({ table: "control-table", requestTimeoutMs: 1_000 });
    const { log, lines } = recordedLog();
    const short = define({ name: "a", timeout: "1m", ttl: 2_999, run });
    await expect(runJob(short, { kind: "manual" }, { store, clock, log })).rejects.toMatchObject({
      code: "INVALID_OPTIONS",
      problems: [
        "ttl is 2999 ms, and must be at least 3000 ms: three times the request timeout (1000 ms), or one hanging request could outlive the lease",
      ],
    });
    expect(lines).toEqual([]);
  });
});

describe("The compiler", () => {
  const options = { name: "a", timeout: "1m" } satisfies JobOptions;
  interface Cart {
    readonly id: string;
    readonly total: number;
  }
  const carts = queryAfter<Cart>({ table: "carts", partition: { shop: "eu" }, sort: "expiresAtId" });

  it("knows process' item by the source", () => {
    defineJob({
      ...options,
      source: carts,
      process: (cart, run) => {
        expectTypeOf(cart).toEqualTypeOf<Cart>();
        expectTypeOf(run).toEqualTypeOf<RunInfo>();
        // @ts-expect-error what process returns is committed for it
        run.commit;
        return [{ Delete: { TableName: "carts", Key: { id: cart.id } } }];
      },
    });
    expectTypeOf(source).toEqualTypeOf<Source<{ id: string }>>();
    expectTypeOf(queryAfter({ table: "carts", partition: { shop: "eu" }, sort: "id" })).toEqualTypeOf<
      Source<Record<string, unknown>>
    >();
    // @ts-expect-error a cart has no such thing
    defineJob({ ...options, source: carts, process: ({ name }) => [{ Delete: { TableName: "c", Key: { name } } }] });
    // @ts-expect-error process is for another kind of item
    defineJob({ ...options, source: carts, process: (_order: { lines: number }) => [] });
  });

  it("knows the watermark of a job that says what it is", () => {
    interface Mark extends Record<string, Json> {
      readonly page: number;
    }
    defineJob<Mark>({
      ...options,
      run: async (run) => {
        expectTypeOf(run).toEqualTypeOf<Run<Mark>>();
        expectTypeOf(run.watermark).toEqualTypeOf<Mark | undefined>();
        await run.commit([], { watermark: { page: (run.watermark?.page ?? 0) + 1 } });
        // @ts-expect-error a page is a number
        await run.commit([], { watermark: { page: "2" } });
      },
    });
    defineJob<number>({
      ...options,
      tick: (tick, run) => {
        expectTypeOf(tick).toEqualTypeOf<Tick>();
        expectTypeOf(run).toEqualTypeOf<TickRun<number>>();
        expectTypeOf(run.watermark).toEqualTypeOf<number | undefined>();
        // @ts-expect-error a tick's last writes are what it returns
        run.commitAtEnd;
        return { writes: [], watermark: 7 };
      },
    });
    // @ts-expect-error the watermark is a number
    defineJob<number>({ ...options, tick: () => ({ writes: [], watermark: "7" }) });
  });

  it("takes any JSON for the watermark of a job that doesn't, and nothing else", () => {
    defineJob({
      ...options,
      run: async (run) => {
        expectTypeOf(run.watermark).toEqualTypeOf<Json | undefined>();
        await run.commit([], { watermark: ["any", { json: null }] });
        // @ts-expect-error a date isn't JSON
        await run.commit([], { watermark: new Date() });
      },
    });
  });

  it("refuses what the checks refuse", () => {
    const refused = [
      // @ts-expect-error no work
      () => defineJob(options),
      // @ts-expect-error no such option
      () => defineJob({ ...options, run, dryrun: true }),
      // @ts-expect-error no such policy
      () => defineJob({ ...options, run, overlap: "wait" }),
      // @ts-expect-error not writes
      () => defineJob({ ...options, tick: () => ["write"] }),
      // @ts-expect-error a source alone
      () => defineJob({ ...options, source: carts }),
    ];
    expect(refused).toHaveLength(5);
  });
});
