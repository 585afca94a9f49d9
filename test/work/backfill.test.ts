import { cron, defineJob, type Job, type Run, runJob, type Tick } from "cronfence";
import { dumpTable, settableClock } from "cronfence/testing";
import { describe, expect, it } from "vitest";
import { budgetOn, freshName, silentLog, useEngine } from "../fixture.ts";

const engine = useEngine("results");
const at = (time: string) => Date.parse(`2026-03-01T${time}:00Z`);

/** An hourly job that was first known at 11:30, and has done the tick of 12:00. */
const setting = async (options: Record<string, unknown> = {}) => {
  const name = freshName();
  const clock = settableClock(at("11:30"));
  const calls: string[] = [];
  const job = defineJob({
    name,
    schedule: cron("0 * * * *"),
    timeout: "10m",
    tick: (tick: Tick) => {
      calls.push(tick.id.slice(11, 16));
      // A second time is seen by the count.
      return [
        {
          Update: {
            TableName: "results",
            Key: { id: `${name}/${tick.id.slice(11, 16)}` },
            UpdateExpression: "ADD times :one",
            ExpressionAttributeValues: { ":one": 1 },
          },
        },
      ];
    },
    ...options,
  } as unknown as Parameters<typeof defineJob>[0]) as Job;
  const deps = { store: engine.store, clock, log: silentLog };
  await engine.store.create(name, clock.now(), budgetOn(clock));
  clock.set(at("12:00"));
  await runJob(job, { kind: "schedule", tick: at("12:00") }, deps);
  calls.length = 0;
  return {
    name,
    clock,
    calls,
    backfill: (...ticks: readonly string[]) => {
      clock.advance(1_000);
      return runJob(job, { kind: "manual", backfill: ticks.map(at) }, deps);
    },
    dryRun: (...ticks: readonly string[]) =>
      runJob(job, { kind: "manual", backfill: ticks.map(at), dryRun: true }, deps),
    state: () => engine.store.read(name, budgetOn(clock)),
    newest: async () => (await engine.store.runs(name, { limit: 1 }, budgetOn(clock))).runs[0],
    results: async () =>
      Object.fromEntries(
        (await dumpTable(engine.client, "results"))
          .filter(({ id }) => String(id).startsWith(`${name}/`))
          .map(({ id, times }) => [String(id).split("/")[1], times])
          .sort(),
      ),
  };
};

describe("A backfill", () => {
  it("does settled ticks, oldest first, and moves neither the last completed tick nor the watermark", async () => {
    const { backfill, calls, results, state, newest } = await setting();
    expect(await backfill("11:00", "09:00", "10:00")).toMatchObject({ outcome: "succeeded", items: 3, commits: 3 });
    expect(calls).toEqual(["09:00", "10:00", "11:00"]);
    expect(await results()).toEqual({ "09:00": 1, "10:00": 1, "11:00": 1, "12:00": 1 });
    expect((await state())?.tick).toBe(at("12:00"));
    expect(await newest()).toMatchObject({ backfilled: { from: at("09:00"), through: at("11:00"), count: 3 } });
    expect(await newest()).not.toHaveProperty("ticks");
  });

  it("does each tick once, however often it is asked for", async () => {
    const { backfill, results, calls } = await setting();
    await backfill("10:00");
    expect(await backfill("10:00", "10:00", "11:00")).toMatchObject({ outcome: "succeeded", items: 1 });
    expect(calls).toEqual(["10:00", "11:00"]);
    expect(await results()).toMatchObject({ "10:00": 1, "11:00": 1 });
  });

  it("goes on after a failure where it stopped", async () => {
    let broken = true;
    const { backfill, newest, results } = await setting({
      tick: (tick: Tick, run: Run) => {
        if (broken && tick.id.includes("10:00")) throw new Error("closed");
        return [{ Put: { TableName: "results", Item: { id: `${run.job}/${tick.id.slice(11, 16)}`, times: 1 } } }];
      },
    });
    expect(await backfill("09:00", "10:00", "11:00")).toMatchObject({ outcome: "failed", commits: 1 });
    broken = false;
    expect(await backfill("09:00", "10:00", "11:00")).toMatchObject({ outcome: "succeeded", commits: 2 });
    expect(await newest()).toMatchObject({ backfilled: { from: at("10:00"), through: at("11:00"), count: 2 } });
    expect(await results()).toEqual({ "09:00": 1, "10:00": 1, "11:00": 1, "12:00": 1 });
  });

  it("stops in time, and says what is left", async () => {
    let slow = () => {};
    const { backfill, clock } = await setting({
      tick: () => {
        slow();
        return [];
      },
    });
    slow = () => clock.advance(9 * 60_000);
    expect(await backfill("09:00", "10:00", "11:00")).toMatchObject({ outcome: "capped", backlog: "2 of 3 ticks" });
  });

  it("of a tick that is still owed is refused: a run would do it again", async () => {
    const { backfill, calls, results } = await setting();
    expect(await backfill("11:00", "13:00")).toMatchObject({
      outcome: "failed",
      error: { code: "BACKFILL_REFUSED", message: expect.stringContaining("2026-03-01T13:00:00.000Z isn't settled") },
    });
    expect([calls, await results()]).toEqual([[], { "12:00": 1 }]);
  });

  it("is refused where a tick moves a watermark, or is too large for one transaction", async () => {
    const moving = await setting({ tick: (tick: Tick) => ({ writes: [], watermark: tick.id }) });
    expect(await moving.backfill("11:00")).toMatchObject({ outcome: "failed", error: { code: "BACKFILL_REFUSED" } });
    expect((await moving.state())?.watermark).toBe("2026-03-01T12:00:00.000Z");
    const put = (id: number) => ({ Put: { TableName: "results", Item: { id: `large/${id}` } } });
    const large = await setting({ tick: () => Array.from({ length: 99 }, (_, id) => put(id)) });
    expect(await large.backfill("11:00")).toMatchObject({
      error: { message: expect.stringContaining("has 99 writes, and at most 98 fit") },
    });
  });

  it("is for jobs with a tick function", async () => {
    const { backfill } = await setting({ tick: undefined, run: () => {} });
    expect(await backfill("11:00")).toMatchObject({
      outcome: "failed",
      error: { message: expect.stringContaining("for jobs with a tick function") },
    });
  });

  it("writes nothing in a dry run, so that it can still be done", async () => {
    const { backfill, dryRun, results } = await setting();
    expect(await dryRun("11:00")).toMatchObject({ outcome: "dry_run", wouldWrite: 2 });
    expect(await results()).toEqual({ "12:00": 1 });
    expect(await backfill("11:00")).toMatchObject({ outcome: "succeeded", items: 1 });
  });
});
