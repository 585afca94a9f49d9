/** Jobs that are right pass, whatever goes wrong; what an exploration prints can be read, and played again. */
import { cron, defineJob, type Run, type RunRecord } from "cronfence";
import { fromAsyncIterable } from "cronfence/sources";
import { explore } from "cronfence/testing";
import { describe, expect, it } from "vitest";
import { job as dailyReport, local as reports } from "../../../handlers/daily-report.ts";
import { cartExpiring, local as carts, job as expireCarts } from "../../../handlers/expire-carts.ts";
import { budgetOf, count, every5, found, runJob, tables, tickJob } from "./scene.ts";

describe("An exploration finds nothing in", () => {
  it("a tick job", async () => {
    const { byFaults, complete } = await explore(tickJob, { tables, budget: budgetOf(60) });
    expect([byFaults[0], complete]).toEqual([1, expect.any(Number)]);
  });

  it("a job that commits piece by piece, with three runners", async () => {
    const { schedules } = await explore(runJob, { tables, runners: 3, budget: budgetOf(30), randomSeed: 3 });
    expect(schedules).toBe(budgetOf(30));
  });

  it("carts that expire, by the index that they are found in", async () => {
    const seed = (now: number) => ({ carts: [0, 1, 2].map((n) => cartExpiring(now - 60_000 + n, `cart-${n}`)) });
    const options = { tables: carts.tables, seed, ticks: 1, budget: budgetOf(30) };
    expect((await explore(expireCarts, options)).schedules).toBe(options.budget);
  });

  it("a source that leaves a backlog to runs of its own", async () => {
    const numbers = fromAsyncIterable<number, number>({
      name: "numbers",
      items: async function* (after = 0) {
        for (let number = after + 1; number <= 5; number += 1) yield number;
      },
      cursor: (number) => number,
      pageSize: 2,
    });
    const job = defineJob<number>({
      ...every5,
      name: "backlog",
      limit: { items: 2 },
      onBacklog: "continue",
      source: numbers,
      process: (number) => [count(`number ${number}`)],
    });
    const { timeline } = await explore(job, { tables, ticks: 1, budget: budgetOf(25) });
    expect(timeline.join("\n")).toContain("starts for a backlog");
  });

  it("reports for which a client of the job's own reads", async () => {
    const seed = (now: number) => ({ sales: reports.seed(now).sales.slice(0, 5) });
    const options = { tables: reports.tables, seed, ticks: 1, budget: budgetOf(30) };
    expect((await explore(dailyReport, options)).schedules).toBe(options.budget);
  });
});

describe("A schedule", () => {
  it("is the same history each time, to the letter", async () => {
    const replay = "late@tick1 arrives-late@A.2 paused-before@B.2 wakes@C.2";
    const { timeline } = await explore(runJob, { tables, replay });
    expect((await explore(runJob, { tables, replay })).timeline).toEqual(timeline);
    expect(timeline.slice(0, 6)).toEqual([
      "01-12 12:00:00.000  tick1  late: is delivered together with the next tick",
      "01-12 12:05:00.000  A      starts for tick 2026-01-12T12:00:00.000Z",
      expect.stringMatching(/A\.1 {4}UpdateItem control: granted fence \d+$/),
      "01-12 12:05:00.001  A.2    TransactWriteItems control, counts: held up; arrives-late: its sender hears that the connection broke; it arrives after the sender's next request",
      "01-12 12:05:00.001  B      starts for tick 2026-01-12T12:05:00.000Z",
      "01-12 12:05:00.001  B.1    UpdateItem control: refused, ConditionalCheckFailedException",
    ]);
  });

  it("passes in simulated time, by the job's own code, too", async () => {
    const times: string[] = [];
    const job = defineJob({
      ...every5,
      name: "sleeper",
      tick: async () => {
        times.push(new Date().toISOString());
        await new Promise((resolve) => setTimeout(resolve, 45_000));
        times.push(new Date(Date.now()).toISOString(), String(Math.random()));
        return [];
      },
    });
    await explore(job, { replay: "undisturbed" });
    // The last of three plays, of which two tell what differs by chance.
    expect(times.slice(-9, -6)).toEqual(["2026-01-12T12:00:00.000Z", "2026-01-12T12:00:45.000Z", times[2]]);
    expect(times[2]).toMatch(/^0\.\d+$/);
    expect(Date.now()).not.toBe(new Date("2026-01-12T12:00:45.000Z").getTime());
  });

  it("is explored in the same order for the same seed, and in another one for another", async () => {
    const histories = async (randomSeed: number) => {
      const seen: string[] = [];
      const check = ({ records }: { readonly records: readonly RunRecord[] }) => {
        seen.push(records.map(({ outcome, startedAt, endedAt }) => `${outcome} ${startedAt} ${endedAt}`).join(", "));
      };
      await explore(tickJob, { tables, ticks: 1, budget: 12, randomSeed, check });
      return seen;
    };
    const first = await histories(1);
    expect(first).toHaveLength(12);
    expect(await histories(1)).toEqual(first);
    expect(await histories(2)).not.toEqual(first);
  });
});

describe("Options that can't be are refused, each by name", () => {
  const refusal = async (options: object) => (await explore(tickJob, options).catch((error) => error)).message;

  it.each([
    [{ budgets: 3 }, "budgets is not an option; did you mean budget?"],
    [{ runners: 5 }, "runners is 5, and must be a whole number from 2 to 4"],
    [{ ticks: 0 }, "ticks is 0, and must be a whole number from 1 to 10"],
    [{ budget: 0.5 }, "budget is 0.5, and must be a whole number from 1 to"],
    [{ faults: 4 }, "faults is 4, and must be a whole number from 0 to 3"],
    [{ now: "noon" }, 'now is "noon", and must be an instant'],
    [{ read: "rows" }, "read must be a function"],
    [{ replay: "lost-reply@A3" }, '"lost-reply@A3" isn\'t a fault and its step'],
    [{ replay: "lost@A.3" }, '"lost@A.3" isn\'t a fault and its step'],
  ])("%j", async (options, message) => {
    expect(await refusal(options)).toContain(message);
  });

  it("and so is a job that is never due", async () => {
    await expect(explore(defineJob({ name: "by-hand", timeout: "1m", run: () => {} }))).rejects.toThrow(
      'exploration of job "by-hand": the job has no schedule, so nothing is ever due',
    );
    const once = defineJob({ ...every5, name: "once", schedule: cron("cron(0 12 12 1 ? 2030)"), tick: () => [] });
    await expect(explore(once, { ticks: 1, now: "2030-01-01" })).rejects.toThrow("the job is due only 1 times");
  });
});

it("a job for which nothing is due is refused: whatever went wrong, it would hold", async () => {
  const idle = defineJob({ ...every5, name: "idle", tick: () => [] });
  const nothing = expect.stringContaining("seed something that is due");
  await expect(explore(idle, { tables, budget: 5 })).rejects.toMatchObject({
    code: "INVALID_OPTIONS",
    message: nothing,
  });
  expect((await explore(idle, { tables, budget: 5, check: () => {} })).schedules).toBe(5);
});

describe("Chance", () => {
  it("is left out where it is in values", async () => {
    const tick = () => ["a", "b"].map((id) => ({ Put: { TableName: "counts", Item: { id, by: Math.random() } } }));
    const job = defineJob({ ...every5, name: "lots", tick });
    expect((await explore(job, { tables, ticks: 1, budget: 8 })).schedules).toBe(8);
  });

  it("in keys is refused: a run that is repeated leaves another row", async () => {
    const run = async ({ commit }: Run) => {
      await commit([count(`row ${Math.random()}`)]);
      await commit([count("x")]);
    };
    const job = defineJob({ ...every5, name: "keys", run });
    await expect(explore(job, { tables, ticks: 1, budget: 8 })).rejects.toMatchObject({
      code: "INVALID_OPTIONS",
      message: expect.stringContaining("a key that is made by chance"),
    });
  });
});

it("a job that fails where nothing goes wrong is reported as that", async () => {
  const job = defineJob({
    ...every5,
    name: "failing",
    tick: () => {
      throw new Error("no such report");
    },
  });
  const error = await found(job, {});
  expect(error.message).toContain('job "failing" breaks a rule though nothing goes wrong');
  expect(error.broken).toContain("no such report");
});

it("a check of the user's own fails with what it throws", async () => {
  const check = ({ records }: { readonly records: readonly unknown[] }) => {
    if (records.length > 3) throw new Error("too many runs");
  };
  const error = await found(tickJob, { tables, check, budget: 40 });
  expect(error.broken).toBe("the check holds: too many runs");
});

it("counts what a row has become", async () => {
  const { timeline } = await explore(defineJob({ ...every5, name: "one", tick: () => [count("a")] }), {
    tables,
    replay: "undisturbed",
    read: () => ({}),
  });
  expect(timeline.join("\n")).toContain("TransactWriteItems control, run, counts: lease given back");
});
