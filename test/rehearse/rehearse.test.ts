/** Rehearsals on the local engine, compared with the effects that the job's ticks left in a table. */
import { cron, defineJob, type Job, type JobOptions, rate, type Schedule } from "cronfence";
import { dumpTable, type Rehearsal, rehearse } from "cronfence/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { freshName, useEngine } from "../fixture.ts";

const engine = useEngine("effects");
const minuteMs = 60_000;
const at = (time: string) => Date.parse(time);

type TickOptions = Partial<Omit<JobOptions, "name">> & {
  readonly catchUp?: "all" | "latest" | "none";
  readonly maxTicks?: number;
  readonly failOn?: (tick: number) => unknown;
};

/** A job whose ticks are counted in the table of effects. */
const counting = (schedule: Schedule, { failOn, ...options }: TickOptions = {}): Job =>
  defineJob({
    name: freshName(),
    schedule,
    timeout: "30s",
    ...options,
    tick: async (tick, run) => {
      await failOn?.(tick.at.getTime());
      return [
        {
          Update: {
            TableName: "effects",
            Key: { id: `${run.job} ${tick.id}` },
            UpdateExpression: "ADD #times :one",
            ExpressionAttributeNames: { "#times": "times" },
            ExpressionAttributeValues: { ":one": 1 },
          },
        },
      ];
    },
  });

const effectsOf = async ({ name }: Job): Promise<number> => {
  const items = (await dumpTable(engine.client, "effects")).filter(({ id }) => String(id).startsWith(`${name} `));
  expect(items.filter(({ times }) => times !== 1)).toEqual([]);
  return items.length;
};

const groups = ({ leftOut }: Rehearsal) =>
  leftOut.map(({ why, became, reason, count }) => [why, reason ?? became, count]);

const daily = cron("30 2 * * *", { zone: "Europe/Berlin" });
const year = { from: at("2026-01-01T00:00Z"), to: at("2027-01-01T00:00Z") };

describe("a rehearsal", () => {
  it("case 16: runs a year of a daily job, with every tick done once, also those that EventBridge left out", async () => {
    const job = counting(daily, { jitter: "5m" });
    const outages = [{ from: at("2026-08-01T00:00Z"), to: at("2026-08-06T00:00Z") }];
    const rehearsal = await rehearse({ job, ...year, outages, duplicates: 0.2, endpoint: engine.endpoint });
    expect(rehearsal).toMatchObject({ job: job.name, ok: true, ticks: { all: 365, done: 365, owed: 0, doubled: 0 } });
    expect(groups(rehearsal)).toEqual([
      ["clock change", "done by a later run", 1],
      ["outage", "done by a later run", 5],
    ]);
    expect(rehearsal.leftOut[0]?.first).toBe(at("2026-03-29T01:00Z"));
    expect(rehearsal.leftOut[1]).toMatchObject({ first: at("2026-08-01T00:30Z"), last: at("2026-08-05T00:30Z") });
    const { deliveries, attempts, runs } = rehearsal;
    expect(runs).toEqual({ succeeded: 359 });
    expect(deliveries.all).toBe(359 + deliveries.duplicates);
    expect(deliveries.duplicates).toBeGreaterThan(40);
    expect((attempts.duplicate ?? 0) + (attempts.held ?? 0)).toBe(deliveries.duplicates);
    expect(await effectsOf(job)).toBe(365);
  });

  it("says what a job leaves out by its own definition, and why", async () => {
    const span = { from: at("2026-03-20T00:00Z"), to: at("2026-04-20T00:00Z") };
    const outages = [{ from: at("2026-04-01T00:00Z"), to: at("2026-04-06T00:00Z") }];
    const options = { ...span, outages, duplicates: 0, endpoint: engine.endpoint };
    const latest = await rehearse({ job: counting(daily, { catchUp: "latest" }), ...options });
    expect(latest.ticks).toMatchObject({ all: 31, done: 25, skipped: { catchUp: 6 }, owed: 0 });
    expect(groups(latest)).toEqual([
      ["clock change", "catchUp", 1],
      ["outage", "catchUp", 5],
    ]);
    const except = ["2026-04-05..2026-04-10", { on: "2026-04-15", reason: "a holiday" }];
    const missed = await rehearse({ job: counting(daily, { startWithin: "2h", except }), ...options });
    expect(groups(missed)).toEqual([
      ["clock change", "startWithin", 1],
      ["outage", "startWithin", 4],
      ["the job's definition", "calendar", 7],
    ]);
    expect(missed.ok).toBe(true);
  });

  it("tries a run that fails again, and counts what it couldn't do as owed", async () => {
    const failing = new Map<number, number>();
    const job = counting(rate("1 hour"), {
      failOn: (tick) => {
        const before = failing.get(tick) ?? 0;
        failing.set(tick, before + 1);
        const hour = new Date(tick).getUTCHours();
        if (hour === 3 && before < 2) throw new Error(`no answer at ${new Date(tick).toISOString()}`);
        if (hour === 22) throw new Error("always");
      },
    });
    const span = { from: at("2026-05-01T00:00Z"), to: at("2026-05-02T00:00Z") };
    const rehearsal = await rehearse({ job, ...span, duplicates: 0, endpoint: engine.endpoint });
    expect(rehearsal).toMatchObject({
      ok: true,
      ticks: { all: 24, done: 22, owed: 2 },
      deliveries: { all: 24 + 2 + 2 + 2, retries: 6 },
      runs: { failed: 2 + 3 + 3, succeeded: 22 },
      errors: [
        { message: "always", count: 6, firstTick: at("2026-05-01T22:00Z") },
        { message: "no answer at 2026-05-01T03:00:00.000Z", count: 2, firstTick: at("2026-05-01T03:00Z") },
      ],
    });
    expect(groups(rehearsal)).toEqual([["not done by its own run", "owed", 2]]);
    expect(await effectsOf(job)).toBe(22);
  });

  it("works off a backlog by maxTicks, and owes the rest at the end", async () => {
    const job = counting(rate("1 hour"), { maxTicks: 3, startAt: "2026-04-30T00:00:00Z" });
    const span = { from: at("2026-05-01T00:00Z"), to: at("2026-05-01T10:00Z") };
    const rehearsal = await rehearse({ job, ...span, duplicates: 0, endpoint: engine.endpoint });
    // 24 from before and 10 new ones, and 10 runs of 3.
    expect(rehearsal.ticks).toMatchObject({ all: 34, done: 30, owed: 4 });
    expect(groups(rehearsal)).toEqual([
      ["before the start", "done by a later run", 24],
      ["not done by its own run", "done by a later run", 6],
      ["not done by its own run", "owed", 4],
    ]);
    expect(rehearsal.runs).toEqual({ capped: 10 });
  });

  it("comes to the same for the same seed", async () => {
    const job = counting(cron("*/5 * * * *"), { jitter: "4m" });
    const span = { from: at("2026-05-01T00:00Z"), to: at("2026-05-01T03:00Z") };
    const run = async (seed: number) => {
      const { wallMs, attempts, ...rest } = await rehearse({
        job: { ...job, name: freshName() },
        ...span,
        seed,
        duplicates: 0.3,
        endpoint: engine.endpoint,
      });
      return { ...rest, job: "", seed: 0 };
    };
    expect(await run(5)).toEqual(await run(5));
    expect(await run(5)).not.toEqual(await run(6));
  });

  it("runs a job that never touches DynamoDB, at the time of each delivery", async () => {
    const times: (string | undefined)[] = [];
    const job = defineJob({
      name: freshName(),
      schedule: cron("0 12 * * *", { zone: "UTC" }),
      timeout: "1m",
      run: (run) => {
        times.push(run.tick?.id);
      },
    });
    const span = { from: at("2026-05-01T00:00Z"), to: at("2026-05-04T00:00Z") };
    const { ticks, ok } = await rehearse({ job, ...span, duplicates: 1, endpoint: engine.endpoint });
    expect([ok, ticks.done]).toEqual([true, 3]);
    expect(times).toEqual(["2026-05-01T12:00:00.000Z", "2026-05-02T12:00:00.000Z", "2026-05-03T12:00:00.000Z"]);
  });

  it("makes and fills the tables that the job's module names, and takes them away again", async () => {
    const name = `stock-${freshName()}`;
    const job = defineJob({
      name: freshName(),
      schedule: rate("1 hour"),
      timeout: "1m",
      tick: () => [
        {
          Update: {
            TableName: name,
            Key: { id: "apples" },
            UpdateExpression: "ADD pieces :less",
            ConditionExpression: "pieces > :none",
            ExpressionAttributeValues: { ":less": -1, ":none": 0 },
          },
        },
      ],
    });
    const local = {
      tables: [{ name, key: { hash: "id" } }],
      seed: (now: number) => ({ [name]: [{ id: "apples", pieces: 2, madeAt: now }] }),
    };
    const span = { from: at("2026-05-01T00:00Z"), to: at("2026-05-01T04:00Z") };
    const options = { job, ...span, local, duplicates: 0, endpoint: engine.endpoint };
    const { ticks, errors } = await rehearse(options);
    expect(ticks).toMatchObject({ all: 4, done: 2, owed: 2 });
    expect(errors[0]?.message).toMatch(/write 0: ConditionalCheckFailed/);
    await expect(dumpTable(engine.client, name)).rejects.toThrow(/not found|non-existent/i);
    // Another one starts from the beginning.
    expect((await rehearse(options)).ticks.done).toBe(2);
    await expect(
      rehearse({ ...options, local: { tables: [{ name: "effects", key: { hash: "id" } }] } }),
    ).rejects.toThrow(/table "effects" exists already/);
  });

  it("refuses what can't be rehearsed, naming everything that is wrong", async () => {
    const { schedule: _, ...unscheduled } = counting(daily, { dryRun: true });
    await expect(
      rehearse({ job: unscheduled, from: year.to, to: year.from, duplicates: 2, outages: [{ from: 2, to: 1 }] }),
    ).rejects.toMatchObject({
      code: "INVALID_OPTIONS",
      problems: [
        expect.stringMatching(/no schedule/),
        expect.stringMatching(/dry run/),
        expect.stringMatching(/from must be earlier/),
        expect.stringMatching(/outage/),
        expect.stringMatching(/duplicates is 2/),
      ],
    });
  });

  it("accounts for every tick of random jobs in random trouble, and agrees with what their ticks wrote", async () => {
    const troubles = fc.record({
      schedule: fc.constantFrom(
        rate("7 minutes"),
        cron("*/10 * * * *", { zone: "Europe/Berlin" }),
        cron("10,30,50 1-4 * * *", { zone: "America/New_York" }),
        cron("20 0-6 * * *", { zone: "Australia/Lord_Howe" }),
      ),
      day: fc.constantFrom("2026-03-08", "2026-11-01", "2026-04-05", "2026-10-04", "2026-03-29"),
      options: fc.record(
        {
          catchUp: fc.constantFrom("all", "latest", "none"),
          maxTicks: fc.integer({ min: 1, max: 5 }),
          startWithin: fc.constantFrom("5m", "2h"),
          overlap: fc.constantFrom("queue", "skip", "takeover"),
          jitter: fc.constantFrom("3m", "40m"),
          except: fc.constantFrom(["2026-11-01"], [{ from: "2026-03-08T07:00:00Z", to: "2026-03-08T09:00:00Z" }]),
        },
        { requiredKeys: [] },
      ),
      failing: fc.integer({ min: 0, max: 6 }),
      outage: fc.integer({ min: 0, max: 12 }),
      duplicates: fc.constantFrom(0, 0.3, 1),
      seed: fc.integer({ min: 1, max: 1_000 }),
    });
    await fc.assert(
      fc.asyncProperty(troubles, async ({ schedule, day, options, failing, outage, duplicates, seed }) => {
        let call = 0;
        const job = counting(schedule, {
          ...(options as TickOptions),
          failOn: () => {
            call += 1;
            if (failing > 0 && call % (failing + 1) === 0) throw new Error("trouble");
          },
        });
        const from = at(`${day}T00:00:00Z`);
        const span = { from, to: from + 16 * 60 * minuteMs };
        const outages =
          outage === 0 ? [] : [{ from: from + outage * 60 * minuteMs, to: from + (outage + 2) * 60 * minuteMs }];
        const rehearsal = await rehearse({ job, ...span, outages, duplicates, seed, endpoint: engine.endpoint });
        expect(rehearsal.ok).toBe(true);
        expect(await effectsOf(job)).toBe(rehearsal.ticks.done);
      }),
      { numRuns: 12 },
    );
  });
});
