/** What is logged of an attempt, however it ends, and what never is. */
import { Writable } from "node:stream";
import {
  cron,
  defineJob,
  type Job,
  type Logger,
  type Run,
  type RunDeps,
  type RunReport,
  runJob,
  type Tick,
  type Trigger,
} from "cronfence";
import type { Source } from "cronfence/sources";
import { settableClock } from "cronfence/testing";
import { pino } from "pino";
import { afterEach, describe, expect, it, vi } from "vitest";
import { budgetOn, freshName, useEngine } from "../fixture.ts";
import { gate, never } from "../gate.ts";
import { type LogLine, recordedLog } from "../recorded-log.ts";

const engine = useEngine("results");
afterEach(() => {
  engine.proxy.reset();
  vi.unstubAllEnvs();
});

const instant = (time: string) => Date.parse(`2026-03-01T${time}:00Z`);
const iso = (time: string) => new Date(instant(time)).toISOString();
const secret = "4242-4242-4242-4242";

const setting = (options: Record<string, unknown>, deps: RunDeps = {}, name = freshName()) => {
  const clock = deps.clock === undefined ? settableClock(instant("11:25")) : deps.clock;
  const { log, lines, text } = recordedLog();
  const job = defineJob({ schedule: cron("*/10 * * * *"), timeout: "5m", ...options, name } as Parameters<
    typeof defineJob
  >[0]) as Job;
  const tick = (time: string, trigger: Partial<Trigger> = {}): Promise<RunReport> =>
    runJob(
      job,
      { kind: "schedule", tick: instant(time), requestId: "request-1", attempt: 2, ...trigger },
      { store: engine.store, clock, log, random: () => 0, version: "v42", ...deps },
    );
  return { clock: clock as ReturnType<typeof settableClock>, name, lines, text, tick };
};

/** Each way in which an attempt can end, with the report that it came to. */
const endings: Record<string, () => Promise<{ lines: readonly LogLine[]; report: RunReport }>> = {
  succeeded: async () => {
    const { tick, lines } = setting({ run: (run: Run) => run.commitAtEnd([], { items: 3 }) });
    return { report: await tick("11:20"), lines };
  },
  capped: async () => {
    const { tick, lines } = setting({ run: (run: Run) => run.capped("3 carts") });
    return { report: await tick("11:20"), lines };
  },
  failed: async () => {
    const { tick, lines } = setting({ run: () => Promise.reject(new Error("closed")) });
    return { report: await tick("11:20"), lines };
  },
  timed_out: async () => {
    const working = gate();
    const { tick, lines, clock } = setting({ run: () => working.pass() });
    const running = tick("11:20");
    await working.reached;
    clock.advance(300_000);
    return { report: await running, lines };
  },
  lease_lost: async () => {
    const working = gate();
    const { tick, lines, clock, name } = setting({
      run: async (run: Run) => {
        await working.pass();
        await run.commit([]);
      },
    });
    const running = tick("11:10");
    await working.reached;
    await setting({ overlap: "takeover", run: () => {} }, { clock }, name).tick("11:20", { requestId: "request-2" });
    working.open();
    return { report: await running, lines };
  },
  interrupted: async () => {
    const { tick, lines } = setting({ run: never }, { interrupt: AbortSignal.abort("SIGTERM") });
    return { report: await tick("11:20"), lines };
  },
  cancelled: async () => {
    const working = gate();
    const { tick, lines, clock, name } = setting({ run: () => working.pass() });
    const running = tick("11:20");
    await working.reached;
    await engine.store.cancel(name, { by: "ada", why: "wrong day" }, clock.now(), budgetOn(clock));
    working.open();
    return { report: await running, lines };
  },
  dry_run: async () => {
    const { tick, lines } = setting({ dryRun: true, run: (run: Run) => run.commit([]) });
    return { report: await tick("11:20"), lines };
  },
  held: async () => {
    const working = gate();
    const { tick, clock, name } = setting({ run: () => working.pass() });
    const running = tick("11:20");
    await working.reached;
    const other = setting({ run: () => {} }, { clock }, name);
    const report = await other.tick("11:20", { requestId: "request-2" });
    working.open();
    await running;
    return { report, lines: other.lines };
  },
  queued: async () => {
    const working = gate();
    const { tick, clock, name } = setting({ run: () => working.pass() });
    const running = tick("11:10");
    await working.reached;
    const other = setting({ run: () => {} }, { clock }, name);
    const report = await other.tick("11:20", { requestId: "request-2" });
    working.open();
    await running;
    return { report, lines: other.lines };
  },
  duplicate: async () => {
    const { tick, clock, name } = setting({ run: () => {} });
    await tick("11:20");
    const other = setting({ run: () => {} }, { clock }, name);
    return { report: await other.tick("11:20"), lines: other.lines };
  },
  paused: async () => {
    const { tick, lines, clock, name } = setting({ run: () => {} });
    await engine.store.pause(name, { by: "ada", why: "stocktaking", at: clock.now() }, budgetOn(clock));
    return { report: await tick("11:20"), lines };
  },
};

const areRuns = ["succeeded", "capped", "failed", "timed_out", "lease_lost", "interrupted", "cancelled", "dry_run"];

describe("An attempt is logged with one line when it starts and one when it ends:", () => {
  it.each(Object.keys(endings))("%s", async (outcome) => {
    const { lines, report } = (await endings[outcome]?.())!;
    expect(report.outcome).toBe(outcome);
    const started = lines.filter(({ message }) => message === "attempt started");
    const ended = lines.filter(({ message }) => message.startsWith("attempt ended"));
    expect(started).toHaveLength(1);
    expect(ended).toHaveLength(1);
    expect(lines[0]).toBe(started[0]);
    expect(lines.at(-1)).toBe(ended[0]);

    const always = { job: report.job, run: expect.any(String), tick: report.tick, version: "v42" };
    expect(started[0]).toMatchObject({ ...always, level: "info", trigger: "schedule", attempt: 2 });
    expect(started[0]?.requestId).toMatch(/^request-[12]$/);
    expect(ended[0]).toMatchObject({
      ...always,
      run: started[0]?.run,
      message: `attempt ended: ${outcome}`,
      outcome,
      items: report.items,
      commits: report.commits,
      durationMs: report.durationMs,
      nextTick: report.nextTick,
    });
    expect(report.nextTick).toMatch(/^2026-03-01T11:[345]0:00.000Z$/);
    if (areRuns.includes(outcome)) expect(ended[0]).toMatchObject({ run: report.run, fence: report.fence });
    const failure = report.error !== undefined;
    expect(ended[0]?.level).toBe(failure ? "error" : "info");
    if (failure) expect(ended[0]?.error).toEqual(report.error);
  });

  it("a try that finds its own invocation's crashed predecessor", async () => {
    const working = gate();
    const { tick, clock, name } = setting({ run: () => working.pass() });
    const running = tick("11:20");
    await working.reached;
    const other = setting({ run: () => {} }, { clock }, name);
    await expect(other.tick("11:20")).rejects.toMatchObject({ code: "PREDECESSOR_UNFINISHED" });
    expect(other.lines).toMatchObject([
      { message: "attempt started" },
      {
        message: "attempt ended: unrecorded",
        level: "error",
        error: { code: "PREDECESSOR_UNFINISHED" },
        durationMs: 0,
      },
    ]);
    working.open();
    await running;
  });

  it("one that can't find out whether its end was recorded", async () => {
    const store = engine.faulty();
    const clock = settableClock(instant("11:25"), { autoAdvance: { atMostMs: 2_000 } });
    const { tick, lines } = setting({ timeout: "30s", run: () => {} }, { store, clock, random: () => 1 });
    engine.proxy.when("TransactWriteItems", "500-before");
    await expect(tick("11:20")).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    expect(lines.map(({ message }) => message)).toEqual(["attempt started", "attempt ended: unrecorded"]);
    expect(lines[1]).toMatchObject({ level: "error", error: { code: "OUTCOME_UNKNOWN" } });
  });

  it("one that goes round for a queued tick", async () => {
    const working = gate();
    const { tick, lines } = setting({ run: () => working.pass() });
    const running = tick("11:10");
    await working.reached;
    await tick("11:20", { requestId: "request-2" });
    working.open();
    await running;
    expect(lines.map(({ message, tick: of }) => [message, of])).toEqual([
      ["attempt started", iso("11:10")],
      ["attempt started", iso("11:20")],
      ["attempt ended: queued", iso("11:20")],
      ["attempt ended: succeeded", iso("11:10")],
    ]);
  });
});

describe("The log names the version that runs", () => {
  it("as given, or from the environment, or not at all", async () => {
    vi.stubEnv("CRONFENCE_VERSION", "from-the-environment");
    const job = (name: string) => defineJob({ name, timeout: "1m", run: () => {} });
    const versions: unknown[] = [];
    for (const deps of [{ version: "given" }, {}]) {
      const { log, lines } = recordedLog();
      const clock = settableClock(instant("11:25"));
      const report = await runJob(job(freshName()), { kind: "manual" }, { store: engine.store, clock, log, ...deps });
      versions.push([report.version, ...lines.map(({ version }) => version)]);
    }
    expect(versions).toEqual([
      ["given", "given", "given"],
      ["from-the-environment", "from-the-environment", "from-the-environment"],
    ]);
    vi.stubEnv("CRONFENCE_VERSION", undefined);
    const { log, lines } = recordedLog();
    const clock = settableClock(instant("11:25"));
    const report = await runJob(job(freshName()), { kind: "manual" }, { store: engine.store, clock, log });
    expect([report, ...lines].some((line) => "version" in line)).toBe(false);
  });
});

describe("The job's own lines", () => {
  it("carry the job, the run, its fence and its tick", async () => {
    const { tick, lines, name } = setting({ run: (run: Run) => run.log.info({ carts: 3 }, "carts found") });
    const report = await tick("11:20");
    expect(lines).toContainEqual({
      level: "info",
      message: "carts found",
      carts: 3,
      job: name,
      run: report.run,
      fence: report.fence,
      tick: iso("11:20"),
      version: "v42",
    });
  });

  it("go through pino as they are", async () => {
    const printed: string[] = [];
    const stream = new Writable({
      write: (chunk, _, done) => {
        printed.push(String(chunk));
        done();
      },
    });
    const log = pino({ base: null }, stream) satisfies Logger;
    const { tick } = setting({ run: (run: Run) => run.log.info({ carts: 3 }, "carts found") }, { log });
    await tick("11:20");
    expect(printed.map((line) => JSON.parse(line).msg)).toEqual([
      "attempt started",
      "carts found",
      "attempt ended: succeeded",
    ]);
  });
});

describe("Nothing of what a job works on is logged:", () => {
  const put = (id: string) => ({ Put: { TableName: "results", Item: { id, card: secret } } });

  it.each([
    [
      "run",
      {
        run: async (run: Run) => {
          await run.commit([put(`${run.id}/1`)], { watermark: { secret } });
          run.commitAtEnd([put(`${run.id}/2`)], { watermark: { secret, more: 1 } });
        },
      },
    ],
    ["tick", { tick: (_: Tick, run: Run) => ({ writes: [put(run.id)], watermark: secret }) }],
    [
      "source",
      {
        source: pageOf([{ cursor: { secret, at: 1 }, item: { card: secret } }]),
        process: (item: { card: string }, run: Run) => [put(`${run.id}/${item.card}`)],
      },
    ],
  ])("neither item nor watermark of a %s job", async (_, work) => {
    const { tick, text, name, clock } = setting(work);
    expect(await tick("11:10", { reason: secret })).toMatchObject({ outcome: "succeeded" });
    expect(await tick("11:20", { reason: secret })).toMatchObject({ outcome: "succeeded" });
    const state = await engine.store.read(name, budgetOn(clock));
    expect(JSON.stringify(state?.watermark)).toContain(secret);
    expect(text()).not.toContain(secret);
  });

  it("nor when it fails, is refused, is held, or its replies are lost", async () => {
    const store = engine.faulty();
    const clock = settableClock(instant("11:25"), { autoAdvance: { atMostMs: 2_000 } });
    const write = put("taken");
    const taken = {
      Put: {
        ...write.Put,
        ConditionExpression: "attribute_not_exists(id)",
        ReturnValuesOnConditionCheckFailure: "ALL_OLD" as const,
      },
    };
    const rejected = setting({ run: (run: Run) => run.commit([taken], { watermark: secret }) }, { store, clock });
    await rejected.tick("11:10");
    expect(await rejected.tick("11:20")).toMatchObject({ outcome: "failed", error: { code: "WRITE_REJECTED" } });
    const tooLarge = { Put: { TableName: "results", Item: { id: "large", text: secret.repeat(30_000) } } };
    const refused = setting({ run: (run: Run) => run.commit([tooLarge]) }, { store, clock });
    expect(await refused.tick("11:20")).toMatchObject({ outcome: "failed", error: { code: "COMMIT_REFUSED" } });
    engine.proxy.when("TransactWriteItems", "lost-reply", { times: 3 });
    const lossy = setting({ run: (run: Run) => run.commit([put("lossy")], { watermark: secret }) }, { store, clock });
    expect(await lossy.tick("11:20")).toMatchObject({ outcome: "succeeded" });
    const held = setting({ run: () => {} }, { store, clock }, lossy.name);
    expect(await held.tick("11:20")).toMatchObject({ outcome: "duplicate" });
    for (const { text } of [rejected, refused, lossy, held]) expect(text()).not.toContain(secret);
  });
});

/** A source of one page. */
function pageOf<Item>(items: readonly { item: Item; cursor: Record<string, string | number> }[]): Source<Item> {
  return {
    name: "one page",
    read: async ({ after }) => ({ items: after === undefined ? items : [], done: true }),
  };
}
