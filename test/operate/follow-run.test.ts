import { type ControlState, defineJob, type Job, runJob } from "cronfence";
import {
  deployedVersion,
  type Following,
  type FunctionInvoker,
  followRun,
  lambdaInvoker,
  startRun,
  waitForVersion,
} from "cronfence/operate";
import { settableClock } from "cronfence/testing";
import { describe, expect, it } from "vitest";
import { budgetOn, freshName, silentLog, useEngine } from "../fixture.ts";
import { gate } from "../gate.ts";

const engine = useEngine();
const start = "2026-03-01T12:00:00Z";
const minuteMs = 60_000;

/** A job whose function is `invoked`: what becomes of an event is up to the test. */
const setting = async (invoked: (requestId: string, event: { scheduledTime?: string }) => unknown = () => {}) => {
  const name = freshName();
  // Only the pauses between two looks pass by themselves.
  const clock = settableClock(start, { autoAdvance: true });
  await engine.store.create(name, clock.now() - minuteMs, budgetOn(clock));
  let starts = 0;
  const invoker: FunctionInvoker = {
    start: async (_, event) => {
      starts += 1;
      const requestId = `request-${starts}`;
      void invoked(requestId, event);
      return { requestId };
    },
    ask: async () => undefined,
  };
  const deps = { store: engine.store, clock, random: () => 0, invoker, functionName: "f" };
  /** A run, as the function would make it. */
  const run = (requestId: string, tick: number | undefined, work: () => unknown = () => {}) =>
    runJob(
      defineJob({ name, timeout: "5m", run: async () => void (await work()) }) as Job,
      { kind: "manual", requestId, ...(tick === undefined ? {} : { tick }) },
      { store: engine.store, clock, log: silentLog, version: "v7" },
    );
  const acquire = async (id: string, ttlMs = 10 * minuteMs, requestId = "another") => {
    const now = clock.now();
    const entry = { id, startedAt: now, trigger: "manual" as const, requestId };
    await engine.store.acquire({ job: name, owner: id, run: entry, now, ttlMs, skewMs: 0 }, budgetOn(clock));
  };
  const state = () => engine.store.read(name, budgetOn(clock)) as Promise<ControlState>;
  return { name, clock, deps, run, acquire, state, starts: () => starts };
};

describe("A run that was started", () => {
  it("is followed while it goes, and to its end", async () => {
    const held = gate();
    const here = await setting((requestId) => here.run(requestId, undefined, () => held.pass()));
    const started = await startRun(here.name, { reason: "a test" }, here.deps);
    expect(started).toMatchObject({ job: here.name, requestId: "request-1" });
    const seen: Following["kind"][] = [];
    const onLook = ({ kind }: Following) => {
      seen.push(kind);
      if (kind === "going") held.open();
    };
    const followed = await followRun(started, { onLook }, here.deps);
    expect(followed).toMatchObject({ kind: "ended", record: { requestId: "request-1", version: "v7" } });
    expect(seen).toContain("going");
  });

  it("isn't asked for where the function would refuse the event", async () => {
    let asked = 0;
    const here = await setting(() => void (asked += 1));
    const tick = here.clock.now();
    for (const [request, problem] of [
      [{ tick: Number.NaN }, "tick is NaN"],
      [{ tick: tick + 1 }, "must be one that has come"],
      [{ backfill: [] }, "1 to 1,000"],
      [{ backfill: Array(1_001).fill(tick) }, "1 to 1,000"],
      [{ backfill: [Number.POSITIVE_INFINITY] }, "Infinity"],
      [{ backfill: [tick], tick }, "exclude"],
      [{ reason: "a".repeat(2_049) }, "reason"],
    ] as const) {
      const refused = { code: "INVALID_OPTIONS", message: expect.stringContaining(problem) };
      await expect(startRun(here.name, request, here.deps), problem).rejects.toMatchObject(refused);
    }
    expect(asked).toBe(0);
  });

  it("has come to its end where another run has done its tick", async () => {
    const here = await setting();
    const tick = here.clock.now();
    const started = await startRun(here.name, { tick }, here.deps);
    const { run } = await here.run("somebody else's", tick);
    expect(await followRun(started, {}, here.deps)).toMatchObject({ kind: "covered", by: { id: run } });
  });

  it("came to nothing where the job was paused meanwhile, which leaves no record", async () => {
    const here = await setting();
    const started = await startRun(here.name, {}, here.deps);
    await engine.store.pause(here.name, { by: "ann", why: "stop", at: here.clock.now() }, budgetOn(here.clock));
    expect(await followRun(started, {}, here.deps)).toEqual({ kind: "paused", by: "ann", why: "stop" });
  });

  it("is given up on after a while in which nothing of it was seen", async () => {
    const here = await setting();
    const started = await startRun(here.name, {}, here.deps);
    expect(await followRun(started, { quietMs: minuteMs }, here.deps)).toMatchObject({
      kind: "given up",
      last: { kind: "unseen", queued: false },
    });
    expect(here.clock.now() - started.at).toBeLessThan(2 * minuteMs);
  });

  it("is waited for longer while another run holds the lease, and said to be queued where it is", async () => {
    const here = await setting();
    await here.acquire("holder");
    const tick = here.clock.now();
    const started = await startRun(here.name, { tick }, here.deps);
    await engine.store.queue(here.name, tick, await here.state(), budgetOn(here.clock));
    const seen: Following[] = [];
    const onLook = (following: Following) => seen.push(following);
    const options = { quietMs: minuteMs, withinMs: 5 * minuteMs, onLook };
    expect(await followRun(started, options, here.deps)).toMatchObject({ kind: "given up" });
    expect(here.clock.now() - started.at).toBeGreaterThanOrEqual(5 * minuteMs);
    expect(seen.at(-1)).toMatchObject({ kind: "unseen", queued: true, holder: { id: "holder" } });
  });

  it("is followed no longer than that, and goes on", async () => {
    const here = await setting();
    const started = await startRun(here.name, {}, here.deps);
    await here.acquire("slow", 10 * minuteMs, started.requestId);
    expect(await followRun(started, { withinMs: minuteMs }, here.deps)).toMatchObject({
      kind: "given up",
      last: { kind: "going", run: { id: "slow" } },
    });
    expect((await here.state()).owner).toBeDefined();
  });
});

describe("A start is refused, and nothing is invoked,", () => {
  it("while another run holds the lease, unless it is for a tick, which can be queued", async () => {
    const here = await setting();
    await here.acquire("holder");
    await expect(startRun(here.name, {}, here.deps)).rejects.toMatchObject({
      code: "ACT_REFUSED",
      message: expect.stringMatching(/run holder holds the lease until 2026-03-01T12:10/),
    });
    expect(here.starts()).toBe(0);
    await startRun(here.name, { tick: here.clock.now() }, here.deps);
    expect(here.starts()).toBe(1);
  });

  it("not because of a lease that is over: the run takes it", async () => {
    const here = await setting();
    await here.acquire("dead", 30_000);
    here.clock.advance(minuteMs);
    await startRun(here.name, {}, here.deps);
    expect(here.starts()).toBe(1);
  });

  it("for a tick that is settled, or hasn't come", async () => {
    const here = await setting();
    const tick = here.clock.now();
    await here.run("before", tick);
    await expect(startRun(here.name, { tick }, here.deps)).rejects.toThrow(/is settled already/);
    await expect(startRun(here.name, { tick: tick + minuteMs * 60 }, here.deps)).rejects.toThrow(
      /must be one that has come/,
    );
    expect(here.starts()).toBe(0);
  });

  it("while the job is paused, but not after the pause is over", async () => {
    const here = await setting();
    const at = here.clock.now();
    await engine.store.pause(here.name, { by: "ann", why: "x", at, until: at + minuteMs }, budgetOn(here.clock));
    await expect(startRun(here.name, {}, here.deps)).rejects.toThrow(
      /is paused until .* by ann \(x\); resume it first/,
    );
    here.clock.advance(minuteMs);
    await startRun(here.name, {}, here.deps);
    expect(here.starts()).toBe(1);
  });
});

describe("A function's version", () => {
  const answering = (...answers: unknown[]) => ({
    functionName: "shop-dev-a",
    clock: settableClock(start, { autoAdvance: true }),
    invoker: {
      start: async () => ({ requestId: "r" }),
      ask: async () => {
        const answer = answers.length > 1 ? answers.shift() : answers[0];
        if (answer instanceof Error) throw answer;
        return answer;
      },
    },
  });
  const failing = (errorType: string) => Object.assign(new Error("no"), { code: "FUNCTION_FAILED", errorType });

  it("is waited for, and each other answer is told", async () => {
    const told: unknown[] = [];
    const deps = answering({ job: "a", version: "old" }, failing("InvalidEventError"), { job: "a", version: "new" });
    await waitForVersion("a", "new", { ...deps, withinMs: minuteMs, onAnswer: (version) => told.push(version) });
    expect(told).toEqual(["old", undefined]);
  });

  it("isn't waited for for ever", async () => {
    const deps = answering({ job: "a", version: "old" });
    await expect(waitForVersion("a", "new", { ...deps, withinMs: minuteMs })).rejects.toMatchObject({
      code: "VERSION_NOT_SEEN",
      message: 'job "a": function shop-dev-a answers as version old, and not as new; nothing was run',
    });
    expect(deps.clock.now()).toBeLessThanOrEqual(Date.parse(start) + minuteMs);
  });

  it("is none's where the function isn't the job's, and an error of its own is passed on", async () => {
    await expect(deployedVersion("a", answering({ job: "b", version: "1" }))).rejects.toThrow(/isn't job "a" but "b"/);
    await expect(deployedVersion("a", answering("hello"))).rejects.toThrow(/isn't job "a"; nothing was run/);
    await expect(deployedVersion("a", answering(failing("TypeError")))).rejects.toThrow("no");
    expect(await deployedVersion("a", answering({ job: "a" }))).toBeUndefined();
  });
});

describe("An invocation", () => {
  const client = (send: (command: { input: Record<string, unknown> }) => unknown) => ({
    send: async (command: never) => send(command) as unknown,
  });
  const answer = (payload: unknown, more: object = {}) => ({
    $metadata: { requestId: "r-1" },
    Payload: new TextEncoder().encode(payload === undefined ? "" : JSON.stringify(payload)),
    ...more,
  });

  it("hands the event over once, asynchronously", async () => {
    const sent: Record<string, unknown>[] = [];
    const invoker = lambdaInvoker(
      client(({ input }) => {
        sent.push(input);
        return answer(undefined);
      }),
    );
    expect(await invoker.start("f", { a: 1 })).toEqual({ requestId: "r-1" });
    expect(sent).toEqual([{ FunctionName: "f", InvocationType: "Event", Payload: '{"a":1}' }]);
  });

  it.each([
    ["a reset", Object.assign(new Error("socket hang up"), { code: "ECONNRESET" }), "INVOCATION_UNKNOWN"],
    ["a 500", Object.assign(new Error("x"), { $metadata: { httpStatusCode: 500 } }), "INVOCATION_UNKNOWN"],
    ["a refusal", Object.assign(new Error("x"), { $metadata: { httpStatusCode: 403 } }), "NOT_INVOKED"],
    ["a refused connection", Object.assign(new Error("x"), { code: "ECONNREFUSED" }), "NOT_INVOKED"],
  ])(
    "that ends in %s is sent once, and said to be unknown only where it may have been taken",
    async (_, error, code) => {
      let sends = 0;
      const invoker = lambdaInvoker(
        client(() => {
          sends += 1;
          throw error;
        }),
      );
      await expect(invoker.start("f", {})).rejects.toMatchObject({ code, cause: error });
      expect(sends).toBe(1);
    },
  );

  it("that is waited for gives the function's answer, or what it threw", async () => {
    const thrown = { errorType: "TypeError", errorMessage: "x is not a function" };
    expect(await lambdaInvoker(client(() => answer({ ok: true }))).ask("f", {}, 1_000)).toEqual({ ok: true });
    expect(await lambdaInvoker(client(() => answer(undefined))).ask("f", {}, 1_000)).toBeUndefined();
    await expect(
      lambdaInvoker(client(() => answer(thrown, { FunctionError: "Unhandled" }))).ask("f", {}, 1_000),
    ).rejects.toMatchObject({ code: "FUNCTION_FAILED", errorType: "TypeError" });
  });
});
