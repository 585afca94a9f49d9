/** Which drills a job gets, what they are told, and that they leave everything as it was. */
import { readFileSync } from "node:fs";
import { DynamoDBClient, GetItemCommand, ListTablesCommand, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { cron, defineJob, type Job, type JobOptions, rate, type Write } from "cronfence";
import { fromAsyncIterable } from "cronfence/sources";
import {
  createTable,
  type DrillOptions,
  drills,
  dumpTable,
  type Engine,
  localClientConfig,
  startEngine,
} from "cronfence/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";

const tables = [{ name: "results", key: { hash: "id" } }] as const;
const base = { name: "kept", schedule: cron("*/10 * * * *"), timeout: "5m" } as const;
const put = (id: string): Write => ({ Put: { TableName: "results", Item: { id } } });
const ticking = (more: Partial<JobOptions> = {}): Job =>
  defineJob({ ...base, ...more, tick: (tick) => [put(tick.id)] });
const namesOf = (job: Job, options: DrillOptions = {}) => drills(job, options).map(({ drill }) => drill);

// One that is there already, with a table that isn't ours.
let engine: Engine;
let client: DynamoDBClient;
beforeAll(async () => {
  engine = await startEngine();
  client = new DynamoDBClient(localClientConfig(engine.endpoint));
  await createTable(client, { name: "theirs", key: { hash: "id" } });
  await client.send(new PutItemCommand({ TableName: "theirs", Item: { id: { S: "a" } } }));
  vi.stubEnv("DYNAMODB_ENDPOINT", engine.endpoint);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  client.destroy();
  await engine.stop();
});

describe("A job gets the drills that fit it", () => {
  const always = [
    "undisturbed",
    "double trigger",
    "paused holder",
    "crash at every request, not applied",
    "crash at every request, applied",
    "lost reply at every request",
  ];
  it("by its shape, its zone and what it may destroy", () => {
    const later = ["timeout", "batch cap", "clock skew", "own clock", "thaw in a later invocation"];
    const plain = [...always, "missed window", "duplicate delivery", ...later, "dry run"];
    expect(namesOf(ticking())).toEqual(plain);
    expect(namesOf(ticking({ schedule: rate("1 hour") }))).toEqual(plain);
    const zoned = cron("30 2 * * *", { zone: "America/New_York" });
    expect(namesOf(ticking({ schedule: zoned, destructive: { max: 9 } }))).toEqual([
      ...plain.slice(0, -1),
      "spring clock change",
      "autumn clock change",
      "guard",
      "dry run",
    ]);
    expect(namesOf(ticking({ schedule: cron("30 2 * * *", { zone: "Asia/Tokyo" }) }))).toEqual(plain);
    const runs = defineJob({ ...base, run: () => {} });
    expect(namesOf(runs)).toEqual(plain.filter((name) => name !== "batch cap"));
    const byHand = defineJob({ name: "by-hand", timeout: "5m", run: () => {} });
    expect(namesOf(byHand)).toEqual([
      ...always,
      "timeout",
      "clock skew",
      "own clock",
      "thaw in a later invocation",
      "dry run",
    ]);
  });

  it("less those that it isn't to have, each with a name for the test and a sentence", () => {
    expect(namesOf(ticking(), { only: ["timeout", "dry run"], skip: ["dry run"] })).toEqual(["timeout"]);
    expect(drills(ticking(), { only: ["timeout"] })).toMatchObject([
      {
        name: "kept: timeout",
        text: "the job's code goes on past its deadline without looking at its signal",
      },
    ]);
  });
});

describe("What drills are told", () => {
  it("is checked at once, all of it", () => {
    const wrong = {
      tabels: [],
      tables: [{ name: "carts" }],
      seed: 1,
      now: "tomorrow",
      ticks: 1,
      points: 0,
      ignore: ["updatedAt"],
      unfenced: ["cart"],
      only: ["time-out"],
    } as unknown as DrillOptions;
    let message = "";
    try {
      drills(ticking({ dryRun: true }), wrong);
    } catch (error) {
      message = (error as Error).message;
    }
    for (const part of [
      'drills of job "kept": tabels is not an option; did you mean tables?',
      "seed must be a function",
      "tables must be a list of tables",
      'now is "tomorrow", and must be an instant',
      "ticks is 1, and must be a whole number from 2 to 20",
      "points is 0, and must be a whole number of at least 1",
      'ignore has "updatedAt", and must have attributes of tables, such as "carts.updatedAt"',
      "unfenced has cart is not a table; did you mean carts?",
      "time-out is not a drill; did you mean timeout?",
      "the job is configured as a dry run",
    ]) {
      expect(message).toContain(part);
    }
  });

  it("refuses a schedule that has too few ticks from then on", () => {
    const job = ticking({ schedule: cron("0 0 1 1 *") });
    expect(() => drills(job, { now: "2198-06-01", ticks: 5 })).toThrow(
      'drills of job "kept": its schedule has 1 ticks from 2198-06-01T00:00:00.000Z on, and 5 are needed',
    );
  });

  it("refuses a seed of a table that isn't defined", async () => {
    const [drill] = drills(ticking(), { tables, seed: () => ({ result: [{ id: "a" }] }) });
    await expect(drill?.run()).rejects.toThrow(
      'seed returned items for table "result", which tables doesn\'t define (results)',
    );
  });

  it("begins at the job's startAt, or at a time that is given", async () => {
    const seeded: number[] = [];
    const seed = (now: number) => void seeded.push(now);
    const run = (job: Job, options: DrillOptions = {}) =>
      drills(job, { tables, seed, only: ["undisturbed"], ...options })[0]?.run();
    await run(ticking({ startAt: "2031-05-01T10:05:00Z" }));
    await run(ticking(), { now: "2029-01-01T00:01:00Z", ticks: 2 });
    expect([...new Set(seeded)]).toEqual(["2031-05-01T10:10:00Z", "2029-01-01T00:10:00Z"].map(Date.parse));
  });
});

it("docs/testing.md has every drill and every option", () => {
  const text = readFileSync(new URL("../../../docs/testing.md", import.meta.url), "utf8");
  const zoned = ticking({ schedule: cron("30 2 * * *", { zone: "America/New_York" }), destructive: { max: 9 } });
  // The second of a pair is named by its end.
  const names = namesOf(zoned).map((name) => name.replace(/.*, applied$/, "…, applied"));
  expect(names.filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
  const options: Required<{ [Option in keyof DrillOptions]: true }> = {
    ...{ tables: true, seed: true, read: true, effects: true, now: true, ticks: true, ignore: true, unfenced: true },
    ...{ repeatable: true, writesNothing: true, only: true, skip: true, points: true },
  };
  expect(Object.keys(options).filter((option) => !new RegExp(`\`${option}[\`(]`).test(text))).toEqual([]);
});

describe("Drills", () => {
  it("don't need one another, take turns when they are started at once, and leave nothing behind", async () => {
    const before = { ...process.env };
    const seed = async (_now: number, by: DynamoDBClient) => {
      // Written by the seed itself, in place of being returned.
      await by.send(new PutItemCommand({ TableName: "results", Item: { id: { S: "seeded" } } }));
    };
    const only = ["missed window", "duplicate delivery", "timeout", "double trigger"] as const;
    await Promise.all(drills(ticking(), { tables, ticks: 2, seed, only }).map(({ run }) => run()));
    expect({ ...process.env }).toEqual(before);
    expect((await client.send(new ListTablesCommand({}))).TableNames).toEqual(["theirs"]);
    expect(await dumpTable(client, "theirs")).toEqual([{ id: "a" }]);
  });

  it("do what they say, as the records of the job's runs show", async () => {
    const impatient = new DynamoDBClient({ maxAttempts: 1 });
    const job = defineJob({
      ...base,
      overlap: "takeover",
      destructive: { max: 100 },
      source: fromAsyncIterable<number, number>({
        name: "numbers",
        items: (after) => [1, 2].filter((number) => number > (after ?? 0)),
        cursor: (number) => number,
      }),
      process: async (number) => {
        await impatient.send(new GetItemCommand({ TableName: "results", Key: { id: { S: "settings" } } }));
        return [put(String(number))];
      },
    });
    const outcomes = new Set<unknown>();
    const read = async (by: DynamoDBClient) => {
      const items = await dumpTable(by, "cronfence-drill");
      for (const { outcome, ticks } of items) {
        if (outcome !== undefined) outcomes.add(outcome);
        if ((ticks as { count?: number } | undefined)?.count === 2) outcomes.add("two ticks");
      }
      return { results: await dumpTable(by, "results") };
    };
    const said: Record<string, string[]> = {};
    for (const { drill, run } of drills(job, {
      tables,
      ticks: 2,
      points: 4,
      read,
      skip: ["undisturbed", "own clock"],
    })) {
      outcomes.clear();
      await run();
      said[drill] = [...outcomes].map(String).sort();
    }
    expect(said).toEqual({
      // What an undisturbed run comes to is read, too, the first time.
      "double trigger": ["lease_lost", "succeeded", "two ticks"],
      "paused holder": ["lease_lost", "succeeded"],
      "crash at every request, not applied": ["crashed", "succeeded"],
      "crash at every request, applied": ["crashed", "succeeded"],
      "lost reply at every request": ["failed", "succeeded"],
      "missed window": ["succeeded", "two ticks"],
      "duplicate delivery": ["succeeded"],
      timeout: ["succeeded", "timed_out"],
      "batch cap": ["capped", "succeeded"],
      "clock skew": ["lease_lost", "succeeded"],
      "thaw in a later invocation": ["lease_lost", "succeeded", "two ticks"],
      guard: ["guard_tripped", "succeeded", "two ticks"],
      "dry run": ["dry_run", "succeeded"],
    });
  });

  it("touch no table that was there before", async () => {
    const [drill] = drills(ticking(), { tables: [...tables, { name: "theirs", key: { hash: "id" } }] });
    await expect(drill?.run()).rejects.toMatchObject({
      code: "INVALID_OPTIONS",
      message: expect.stringContaining('table "theirs" exists already; drills make their own'),
    });
    expect((await client.send(new ListTablesCommand({}))).TableNames).toEqual(["theirs"]);
  });

  it("disturb a run at no more of its requests than they are told", async () => {
    const numbers = Array.from({ length: 6 }, (_, at) => at + 1);
    const job = defineJob({
      ...base,
      source: fromAsyncIterable<number, number>({
        name: "numbers",
        items: (after) => numbers.filter((number) => number > (after ?? 0)),
        cursor: (number) => number,
      }),
      process: async (number, run) => {
        await run.once(`effect ${number}`, () => {});
        return [put(String(number))];
      },
    });
    let trials = 0;
    const seed = () => void (trials += 1);
    const many = async (points: number) => {
      trials = 0;
      await drills(job, { tables, ticks: 2, seed, points, only: ["lost reply at every request"] })[0]?.run();
      return trials;
    };
    // Three undisturbed ones come first.
    expect(await many(1)).toBe(3 + 1);
    expect(await many(6)).toBe(3 + 6);
  });
});
