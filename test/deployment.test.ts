/** What a job's definition says of its deployment, and what is refused of it. */
import { cron, defineJob, type InvalidOptionsError, type Job } from "cronfence";
import { queryAfter, scanAll } from "cronfence/sources";
import { settableClock } from "cronfence/testing";
import { watchdog } from "cronfence/watchdog";
import { describe, expect, it } from "vitest";

const clock = settableClock("2026-03-01T00:00:00Z");
const define = (options: object): Job =>
  defineJob({ name: "a", timeout: "1m", run: () => {}, ...options } as Parameters<typeof defineJob>[0], { clock });
const problemsOf = (options: object, make: (options: object) => unknown = define): readonly string[] => {
  try {
    make(options);
  } catch (error) {
    return (error as InvalidOptionsError).problems;
  }
  return [];
};

describe("A job's deployment", () => {
  it("has a default for what isn't given", () => {
    expect(define({}).deployment).toEqual({ retries: 2, access: [], environment: {}, alarms: true });
  });

  it("has what is given", () => {
    const access = [
      { table: "carts", index: "byExpiry", read: true },
      { table: "arn:aws:dynamodb:eu-west-1:123456789012:table/prices", read: true },
    ];
    const given = { retries: 0, access, environment: { BUCKET: "b" }, alarms: false, description: "Carts" };
    expect(define({ ...given, memory: 10_240 }).deployment).toEqual({ ...given, memoryMb: 10_240 });
  });

  it.each([
    [{ memory: 127 }, "memory is 127, and must be a whole number of megabytes from 128 to 10240"],
    [{ memory: 10_241 }, "memory is 10241, and must be"],
    [{ memory: "512" }, 'memory is "512", and must be'],
    [{ retries: 3 }, "retries is 3, and must be 0, 1 or 2"],
    [{ alarms: "no" }, 'alarms is "no", and must be true or false'],
    [{ description: "" }, 'description is "", and must be a text of 1 to 256 characters'],
    [{ access: { table: "carts" } }, "access is"],
    [
      { access: [{ table: "a*", read: true }] },
      'access.0.table is "a*", and must be a list of { table, index?, read?, write? }',
    ],
    [
      {
        access: [
          { table: "carts", read: true },
          { table: "audit", read: true, wirte: true },
        ],
      },
      "access.1.wirte is not an option; did you mean write?",
    ],
    [{ access: [{ table: "carts" }] }, 'access.0 ("carts") allows nothing: say read: true or write: true'],
    [{ access: [{ table: "carts", read: false, write: false }] }, "allows nothing"],
    [
      { access: [{ table: "carts", index: "byExpiry", write: true }] },
      "an index can only be read: give the table an entry of its own",
    ],
    [{ access: [{ table: "carts", index: "by*", read: true }] }, 'access.0.index is "by*", and must be'],
    [
      { access: [{ table: "arn:aws:dynamodb:eu-west-1:123456789012:table/prices", write: true }] },
      "is an ARN with write, and a commit can't write tables of another account or Region",
    ],
    [{ access: [{ table: "arn:aws:dynamodb:eu-west-1:123456789012:table/*", read: true }] }, "access.0.table is"],
    [{ environment: ["A"] }, 'environment is ["A"], and must be an object with a text for each variable'],
    [
      { environment: { "1A": "x" } },
      'environment has "1A", and a variable\'s name must be 2 or more letters, digits and _, a letter first',
    ],
    [{ environment: { SECRET: 12_345 } }, "environment.SECRET must be a text, and is a value of type number"],
  ])("that can't be is refused, naming the option, its value and what is allowed: %j", (options, problem) => {
    expect(problemsOf(options)).toEqual([expect.stringContaining(problem)]);
  });

  it("has a description that both the function and the schedule take", () => {
    expect(define({ description: "x".repeat(256) }).deployment.description).toHaveLength(256);
    expect(problemsOf({ description: "x".repeat(257) })).toEqual([expect.stringContaining("a text of 1 to 256")]);
  });

  it("is checked with all other options at once, and shows no value of a variable", () => {
    const problems = problemsOf({ timeout: 0, memory: 1, retries: 9, environment: { TOKEN: { secret: "s3cret" } } });
    expect(problems).toHaveLength(4);
    expect(problems.join()).not.toContain("s3cret");
  });
});

describe("A source", () => {
  it("says what it reads of DynamoDB", () => {
    const query = { table: "carts", partition: { shop: "eu" }, sort: "expiresAtId" };
    expect(queryAfter(query).reads).toEqual({ table: "carts", by: "query" });
    expect(queryAfter({ ...query, index: "byExpiry" }).reads).toEqual({
      table: "carts",
      index: "byExpiry",
      by: "query",
    });
    expect(scanAll({ table: "carts" }).reads).toEqual({ table: "carts", by: "scan" });
  });
});

describe("A watchdog", () => {
  const late = defineJob({ name: "late", schedule: cron("7 * * * *"), timeout: "1m", run: () => {} }, { clock });

  it("says that it is one: how often it looks, whether it starts jobs, where its metrics go, and whom it watches", () => {
    expect(define({}).watches).toBeUndefined();
    expect(watchdog({ jobs: [late] }).watches).toEqual({
      everyMs: 300_000,
      heals: false,
      metrics: "emf",
      jobs: ["late"],
      knowsAll: true,
    });
    const own = { record: () => {}, flush: async () => {} };
    const heals = { heal: true, start: async () => {}, every: "1m", metrics: own, service: "shop" } as const;
    expect(watchdog({ jobs: [late, () => late], ...heals }).watches).toEqual({
      everyMs: 60_000,
      heals: true,
      metrics: "own",
      service: "shop",
      jobs: ["late"],
      knowsAll: false,
    });
    expect(watchdog({ jobs: () => [late] }).watches).toMatchObject({ jobs: [], knowsAll: false });
  });

  it("says so also where one of its jobs isn't one, which only a look finds", () => {
    expect(watchdog({ jobs: [undefined, late] as unknown as Job[] }).watches).toMatchObject({ jobs: ["late"] });
  });

  it("is deployed as its options say, which are checked as a job's are", () => {
    const given = { memory: 256, environment: { LEVEL: "warn" }, alarms: false, description: "Looks" };
    expect(watchdog({ jobs: [], ...given }).deployment).toEqual({
      memoryMb: 256,
      retries: 2,
      access: [],
      environment: { LEVEL: "warn" },
      alarms: false,
      description: "Looks",
    });
    const make = (options: object) => watchdog({ jobs: [], ...options });
    expect(problemsOf({ memory: 1 }, make)).toEqual([expect.stringContaining("memory is 1")]);
    expect(problemsOf({ access: [] }, make)).toEqual([expect.stringContaining("access is not an option")]);
  });
});
