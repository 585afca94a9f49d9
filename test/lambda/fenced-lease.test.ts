import middy, { type MiddlewareObj } from "@middy/core";
import { cron, type Run } from "cronfence";
import { type FencedLeaseOptions, fencedLease } from "cronfence/lambda";
import { dumpTable, type SettableClock, settableClock } from "cronfence/testing";
import middy7 from "middy7";
import { afterEach, describe, expect, it } from "vitest";
import { budgetOn, controlTable, freshName, useEngine } from "../fixture.ts";
import { gate, never } from "../gate.ts";
import { type RecordedLog, recordedLog } from "../recorded-log.ts";
import { type InvocationOptions, invocation, scheduled } from "./invocation.ts";

const engine = useEngine("results");
afterEach(() => engine.proxy.reset());

const now = "2026-03-01T11:25:00Z";
const tick = "2026-03-01T11:20:00.000Z";
const nextTick = "2026-03-01T11:24:00.000Z";

const rowFor = (name: string, what: string) => ({ Put: { TableName: "results", Item: { id: `${name}/${what}` } } });

type Handler = (event: unknown, context: { run: Run }) => unknown;
type Other = MiddlewareObj;

// Middy 7 has the same shape of middlewares, and asks for Node 22 in name only.
describe.each([
  ["6", middy],
  ["7", middy7 as unknown as typeof middy],
])("fencedLease under middy %s", (_, middyOf) => {
  /** A middy function with the lease among other middlewares: those before it, and those after it. */
  const setting = (
    {
      outer = [],
      inner = [],
      plugin = {},
      ...options
    }: Partial<FencedLeaseOptions> & { outer?: Other[]; inner?: Other[]; plugin?: object },
    handle: Handler,
  ) => {
    const clock = (options.clock as SettableClock | undefined) ?? settableClock(now);
    const name = options.job ?? freshName();
    const recorded: RecordedLog = recordedLog();
    const lease = fencedLease({
      store: engine.store,
      log: recorded.log,
      random: () => 0,
      ...options,
      clock,
      job: name,
    });
    const handler = middyOf(plugin)
      .use([...outer, lease, ...inner])
      .handler(handle as never);
    return {
      name,
      clock,
      lines: recorded.lines,
      invoke: (invoked: InvocationOptions & { at?: string; event?: object } = {}): Promise<unknown> =>
        handler(invoked.event ?? scheduled(name, invoked.at ?? tick), invocation(clock, invoked) as never),
      state: () => engine.store.read(name, budgetOn(clock)),
      records: async () => (await engine.store.runs(name, { limit: 50 }, budgetOn(clock))).runs.toReversed(),
      results: async () =>
        (await dumpTable(engine.client, "results")).map(({ id }) => String(id)).filter((id) => id.startsWith(name)),
    };
  };

  const passing: Other = { before: () => {}, after: () => {}, onError: () => {} };

  describe("gives the handler its run", () => {
    it.each([
      ["first", [], [passing, passing]],
      ["in the middle", [passing], [passing]],
      ["last", [passing, passing], []],
      ["alone", [], []],
    ])("as %s middleware", async (_place, outer, inner) => {
      const { invoke, name, state, records, results } = setting({ outer, inner }, async (_event, { run }) => {
        await run.commit([rowFor(run.job, "a")], { watermark: 7 });
        return { carts: run.fence > 0 };
      });
      expect(await invoke()).toEqual({ carts: true });
      expect(await results()).toEqual([`${name}/a`]);
      expect(await records()).toMatchObject([{ outcome: "succeeded", commits: 1, watermarkAfter: 7 }]);
      expect(await state()).toMatchObject({ tick: Date.parse(tick), watermark: 7 });
      expect(await state()).not.toHaveProperty("owner");
    });

    it("which keeps its last writes for the end, so that two requests do", async () => {
      const { invoke } = setting({ store: engine.faulty() }, (_event, { run }) =>
        run.commitAtEnd([rowFor(run.job, "a")]),
      );
      await invoke();
      engine.proxy.reset();
      await invoke({ at: nextTick });
      expect(engine.proxy.requests.map(({ operation }) => operation)).toEqual(["UpdateItem", "TransactWriteItems"]);
    });

    it("for a schedule with the ticks that were missed before", async () => {
      const { invoke, name, clock, records } = setting({ schedule: cron("* * * * *") }, () => {});
      await engine.store.create(name, Date.parse("2026-03-01T11:20:30Z"), budgetOn(clock));
      await invoke({ at: nextTick });
      expect(await records()).toMatchObject([{ ticks: { count: 4 }, nextTick: Date.parse("2026-03-01T11:26:00Z") }]);
    });

    it("without lease or record, where the event asks for a dry run", async () => {
      let dry: boolean | undefined;
      const { invoke, state, results } = setting({}, async (_event, { run }) => {
        dry = run.dryRun;
        await run.commit([rowFor(run.job, "a")]);
        return "would have";
      });
      expect(await invoke({ event: { dryRun: true } })).toBe("would have");
      expect(dry).toBe(true);
      expect(await state()).toBeUndefined();
      expect(await results()).toEqual([]);
    });
  });

  it.each([[{ parked: "all" }], [{ parked: ["a"], dryRun: true }], [{ backfill: ["2026-02-01T00:00:00Z"] }]])(
    "refuses an event for work that the handler can't know of: %j",
    async (event) => {
      let calls = 0;
      const { invoke, lines, state } = setting({}, () => {
        calls += 1;
      });
      await expect(invoke({ event })).rejects.toMatchObject({ code: "INVALID_EVENT" });
      expect([calls, await state()]).toEqual([0, undefined]);
      expect(lines.at(-1)).toMatchObject({ message: "attempt ended: refused" });
    },
  );

  describe("passes the handler's answer through:", () => {
    it.each([[undefined], [null], [0], [""], [false], [Number.NaN], [[]], [{ statusCode: 200 }]])(
      "%j",
      async (value) => {
        const { invoke, records } = setting({}, () => value);
        expect(await invoke()).toBe(value);
        expect(await records()).toMatchObject([{ outcome: "succeeded" }]);
      },
    );

    it("what a later middleware makes of it", async () => {
      const inner: Other[] = [{ after: (request) => void (request.response = { body: request.response }) }];
      const { invoke, records } = setting({ inner }, () => "text");
      expect(await invoke()).toEqual({ body: "text" });
      expect(await records()).toMatchObject([{ outcome: "succeeded" }]);
    });
  });

  describe("answers with the report, and doesn't call the handler, when the tick", () => {
    it("is held, queued, done or paused", async () => {
      const working = gate();
      let calls = 0;
      const { invoke, name, clock } = setting({ startAnother: async () => {} }, async () => {
        calls += 1;
        await working.pass();
        return "done";
      });
      const first = invoke();
      await working.reached;
      expect(await invoke()).toMatchObject({ outcome: "held" });
      expect(await invoke({ at: nextTick })).toMatchObject({ outcome: "queued" });
      working.open();
      expect(await first).toBe("done");
      expect(await invoke({ at: nextTick })).toBe("done");
      expect(await invoke()).toMatchObject({ outcome: "duplicate" });
      await engine.store.pause(name, { by: "ada", why: "stocktaking", at: clock.now() }, budgetOn(clock));
      expect(await invoke({ event: {} })).toMatchObject({ outcome: "paused" });
      expect(calls).toBe(2);
    });
  });

  describe("fails the run when the handler", () => {
    it("throws, and lets the error through", async () => {
      const failure = new Error("the supplier is closed");
      const { invoke, records, state } = setting({ outer: [passing], inner: [passing] }, () => {
        throw failure;
      });
      await expect(invoke()).rejects.toBe(failure);
      expect(await records()).toMatchObject([{ outcome: "failed", error: { message: "the supplier is closed" } }]);
      expect(await state()).not.toHaveProperty("owner");
      expect(await state()).not.toHaveProperty("tick");
    });

    it("returns though a commit that it didn't wait for was rejected", async () => {
      const { invoke, records, name } = setting({}, (_event, { run }) => {
        const write = { ...rowFor(run.job, "a").Put, ConditionExpression: "attribute_exists(id)" };
        void run.commit([{ Put: write }]);
        return "all well";
      });
      await expect(invoke()).rejects.toMatchObject({ code: "WRITE_REJECTED" });
      expect(await records()).toMatchObject([{ job: name, outcome: "failed", error: { code: "WRITE_REJECTED" } }]);
    });
  });

  describe("ends the run when another middleware answers early:", () => {
    const answer = { from: "another middleware" };

    it("before it: there is no run", async () => {
      let calls = 0;
      const { invoke, state } = setting({ outer: [{ before: () => answer }] }, () => calls++);
      expect(await invoke()).toBe(answer);
      expect(calls).toBe(0);
      expect(await state()).toBeUndefined();
    });

    it("between it and the handler: the work wasn't done, so the run failed and the invocation throws", async () => {
      let calls = 0;
      const { invoke, records, state } = setting({ inner: [{ before: () => answer }] }, () => calls++);
      await expect(invoke()).rejects.toMatchObject({ code: "EARLY_ANSWER" });
      expect(calls).toBe(0);
      expect(await records()).toMatchObject([{ outcome: "failed", error: { code: "EARLY_ANSWER" } }]);
      expect(await state()).not.toHaveProperty("owner");
      expect(await state()).not.toHaveProperty("tick");
    });

    it.each([
      ["after the handler, before its own after", { inner: [{ after: () => answer }] }],
      ["after the handler, after its own after", { outer: [{ after: () => answer }] }],
    ])("%s: the run is as the handler left it", async (_when, others) => {
      const { invoke, records, state, results, name } = setting(others, (_event, { run }) => {
        run.commitAtEnd([rowFor(run.job, "a")]);
        return "the handler";
      });
      expect(await invoke()).toBe(answer);
      expect(await records()).toMatchObject([{ outcome: "succeeded", commits: 1 }]);
      expect(await state()).toMatchObject({ tick: Date.parse(tick) });
      expect(await state()).not.toHaveProperty("owner");
      expect(await results()).toEqual([`${name}/a`]);
    });

    it("after a handler whose unobserved commit was rejected: the invocation throws all the same", async () => {
      const { invoke, records } = setting({ inner: [{ after: () => answer }] }, (_event, { run }) => {
        void run.commit([{ Delete: { TableName: "no-such-table", Key: { id: "a" } } }]);
      });
      await expect(invoke()).rejects.toMatchObject({ code: expect.any(String) });
      expect(await records()).toMatchObject([{ outcome: "failed" }]);
    });

    it.each([
      ["before its own onError", { inner: [{ onError: () => answer }] }],
      ["after its own onError", { outer: [{ onError: () => answer }] }],
      [
        "by setting the response",
        { inner: [{ onError: (request: { response: unknown }) => void (request.response = answer) }] },
      ],
    ])("for an error, %s: the run failed, and the answer stands", async (_when, others) => {
      const { invoke, records, state } = setting(others, () => {
        throw new Error("the supplier is closed");
      });
      expect(await invoke()).toBe(answer);
      expect(await records()).toMatchObject([{ outcome: "failed", error: { message: "the supplier is closed" } }]);
      expect(await state()).not.toHaveProperty("owner");
      expect(await state()).not.toHaveProperty("tick");
    });

    it("for an error, with nothing: the error goes on, as without it", async () => {
      const inner: Other[] = [{ onError: (request) => void Object.assign(request, { earlyResponse: undefined }) }];
      const failure = new Error("the supplier is closed");
      const { invoke, records } = setting({ inner }, () => Promise.reject(failure));
      await expect(invoke()).rejects.toBe(failure);
      expect(await records()).toMatchObject([{ outcome: "failed" }]);
    });
  });

  describe("ends the run when another middleware throws", () => {
    const failure = new Error("the other middleware");
    const throwing = () => {
      throw failure;
    };

    it("before it: there is no run", async () => {
      const { invoke, state } = setting({ outer: [{ before: throwing }] }, () => {});
      await expect(invoke()).rejects.toBe(failure);
      expect(await state()).toBeUndefined();
    });

    it.each([
      ["between it and the handler", { inner: [{ before: throwing }] }],
      ["after the handler, before its own after", { inner: [{ after: throwing }] }],
    ])("%s: the run failed", async (_when, others) => {
      const { invoke, records, state } = setting(others, () => "done");
      await expect(invoke()).rejects.toBe(failure);
      expect(await records()).toMatchObject([{ outcome: "failed", error: { message: "the other middleware" } }]);
      expect(await state()).not.toHaveProperty("owner");
    });

    it("after its own after: the run had succeeded, and stays so", async () => {
      const { invoke, records } = setting({ outer: [{ after: throwing }] }, () => "done");
      await expect(invoke()).rejects.toBe(failure);
      expect(await records()).toMatchObject([{ outcome: "succeeded" }]);
      expect(await invoke()).toMatchObject({ outcome: "duplicate" });
    });

    it.each([
      ["before its own onError", { inner: [{ onError: throwing }] }],
      ["after its own onError", { outer: [{ onError: throwing }] }],
    ])("on an error, %s: the run failed by the first one", async (_when, others) => {
      const finish = engine.proxy.when("TransactWriteItems", {});
      const { invoke, records, state } = setting({ ...others, store: engine.faulty() }, () => {
        throw new Error("the supplier is closed");
      });
      await expect(invoke()).rejects.toBe(failure);
      await (await finish.hit).settled;
      expect(await records()).toMatchObject([{ outcome: "failed", error: { message: "the supplier is closed" } }]);
      expect(await state()).not.toHaveProperty("owner");
    });
  });

  describe("ends the run in time when the handler goes on and on:", () => {
    it("it is timed out and its lease back at the deadline, and the invocation throws once it is over", async () => {
      const working = gate();
      let late: Promise<void> | undefined;
      const { invoke, clock, records, state, lines, results } = setting(
        { store: engine.faulty() },
        async (_event, { run }) => {
          await working.pass();
          late = run.commit([rowFor(run.job, "late")]);
          late.catch(() => {});
          return "too late";
        },
      );
      const ended = engine.proxy.when("TransactWriteItems", {});
      const invoked = invoke({ leftMs: 3_000 });
      await working.reached;
      clock.advance(1_500);
      await (await ended.hit).settled;
      expect(await records()).toMatchObject([{ outcome: "timed_out", endedAt: Date.parse(now) + 1_500 }]);
      expect(await state()).not.toHaveProperty("owner");
      const requests = engine.proxy.requests.length;
      working.open();
      await expect(invoked).rejects.toMatchObject({ code: "RUN_TIMED_OUT" });
      await expect(late).rejects.toMatchObject({ code: "RUN_TIMED_OUT" });
      expect(engine.proxy.requests).toHaveLength(requests);
      expect(await results()).toEqual([]);
      expect(lines.filter(({ message }) => message.startsWith("attempt ended"))).toHaveLength(1);
    });

    it.each([
      ["a middleware's early answer", [{ after: () => "an answer" }]],
      [
        "a middleware that replaces the response",
        [{ after: (r: { response: unknown }) => void (r.response = "an answer") }],
      ],
    ])("%s doesn't hide that it was timed out", async (_what, inner) => {
      const working = gate();
      const { invoke, clock, records } = setting({ inner, timeout: "1s" }, () => working.pass());
      const invoked = invoke();
      await working.reached;
      clock.advance(1_000);
      working.open();
      await expect(invoked).rejects.toMatchObject({ code: "RUN_TIMED_OUT" });
      expect(await records()).toMatchObject([{ outcome: "timed_out" }]);
    });

    it("middy's own early timeout fails it with middy's error", async () => {
      const { invoke, records, state } = setting({ plugin: { timeoutEarlyInMillis: 59_999 } }, never);
      await expect(invoke({ leftMs: 60_000 })).rejects.toMatchObject({ name: "TimeoutError" });
      expect(await records()).toMatchObject([{ outcome: "failed", error: { name: "TimeoutError" } }]);
      expect(await state()).not.toHaveProperty("owner");
    });

    it("an interrupt ends it as interrupted", async () => {
      const stop = new AbortController();
      const working = gate();
      const { invoke, records } = setting({ interrupt: stop.signal }, async (_event, { run }) => {
        await new Promise((resolve) => {
          run.signal.addEventListener("abort", resolve);
          void working.pass();
        });
      });
      const invoked = invoke();
      await working.reached;
      stop.abort("SIGTERM");
      await expect(invoked).rejects.toMatchObject({ code: "RUN_INTERRUPTED" });
      expect(await records()).toMatchObject([{ outcome: "interrupted" }]);
    });
  });

  describe("keeps two invocations of one function apart:", () => {
    it("each has its own run and its own end", async () => {
      const working = gate();
      const seen: { id: string; fence: number }[] = [];
      const { invoke, records, results, name } = setting({ overlap: "takeover" }, async (_event, { run }) => {
        seen.push({ id: run.id, fence: run.fence });
        const first = seen.length === 1;
        if (first) await working.pass();
        await run.commit([rowFor(run.job, first ? "first" : "second")]);
        return first ? "first" : "second";
      });
      const first = invoke();
      await working.reached;
      expect(await invoke({ at: nextTick })).toBe("second");
      working.open();
      await expect(first).rejects.toMatchObject({ code: "LEASE_LOST", runId: seen[0]?.id });
      expect(seen[1]?.fence).toBe((seen[0]?.fence ?? 0) + 1);
      expect(await results()).toEqual([`${name}/second`]);
      const outcomes = Object.fromEntries((await records()).map(({ id, outcome }) => [id, outcome]));
      expect(outcomes).toEqual({ [seen[0]?.id ?? ""]: "lease_lost", [seen[1]?.id ?? ""]: "succeeded" });
    });

    it("an error in one doesn't reach the other", async () => {
      const held = gate();
      const shared = fencedLease({
        job: freshName(),
        store: engine.store,
        clock: settableClock(now),
        log: recordedLog().log,
      });
      const build = (handle: Handler) =>
        middyOf()
          .use(shared)
          .handler(handle as never);
      const failing = build(async () => {
        await held.pass();
        throw new Error("only this one");
      });
      const other = build(() => "never called");
      const clock = settableClock(now);
      const failed = failing({}, invocation(clock) as never);
      await held.reached;
      const reply = other({}, invocation(clock) as never);
      expect(await reply).toMatchObject({ outcome: "held" });
      held.open();
      await expect(failed).rejects.toThrow("only this one");
    });
  });

  describe("leaves a tick that was queued behind it to another invocation:", () => {
    it("the run is capped, and another is started for that tick once the lease is free", async () => {
      const working = gate();
      const started: unknown[] = [];
      const { invoke, name, records, state } = setting(
        {
          startAnother: async (job, at) => {
            started.push({ job, at, owner: (await state())?.owner });
          },
        },
        () => working.pass(),
      );
      const invoked = invoke();
      await working.reached;
      expect(await invoke({ at: nextTick })).toMatchObject({ outcome: "queued" });
      working.open();
      await invoked;
      expect(started).toEqual([{ job: name, at: Date.parse(nextTick), owner: undefined }]);
      expect(await records()).toMatchObject([{ outcome: "capped", backlog: expect.stringContaining(nextTick) }]);
      expect(await state()).toMatchObject({ tick: Date.parse(tick), pending: Date.parse(nextTick) });
      await invoke({ at: nextTick });
      expect(await state()).toMatchObject({ tick: Date.parse(nextTick) });
      expect(await state()).not.toHaveProperty("pending");
    });

    it("if none can be started, the tick stays owed and the log says so", async () => {
      const working = gate();
      const { invoke, lines, state } = setting({ startAnother: () => Promise.reject(new Error("not allowed")) }, () =>
        working.pass(),
      );
      const invoked = invoke();
      await working.reached;
      await invoke({ at: nextTick });
      working.open();
      await invoked;
      expect(await state()).toMatchObject({ pending: Date.parse(nextTick) });
      expect(lines.filter(({ level }) => level === "warn")).toMatchObject([{ error: { message: "not allowed" } }]);
    });
  });

  describe("logs", () => {
    it("one line at the start and one at the end of each attempt", async () => {
      const { invoke, lines, name } = setting({}, () => {});
      await invoke();
      await invoke();
      expect(lines.map(({ message, job }) => [message, job])).toEqual([
        ["attempt started", name],
        ["attempt ended: succeeded", name],
        ["attempt started", name],
        ["attempt ended: duplicate", name],
      ]);
    });

    it("the end of an attempt that couldn't get as far as a run", async () => {
      const { invoke, lines } = setting({ store: engine.faulty({ table: "no-such-table" }) }, () => {});
      await expect(invoke()).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
      expect(lines.map(({ message }) => message)).toEqual(["attempt started", "attempt ended: unrecorded"]);
    });

    it("an event that it refuses, and calls nothing", async () => {
      let calls = 0;
      const { invoke, lines } = setting({ store: engine.faulty() }, () => calls++);
      await expect(invoke({ event: { Records: [] } })).rejects.toMatchObject({ code: "INVALID_EVENT" });
      expect(calls).toBe(0);
      expect(engine.proxy.requests).toEqual([]);
      expect(lines.map(({ message }) => message)).toEqual(["attempt ended: refused"]);
    });
  });
});

describe("fencedLease's options", () => {
  const problemsOf = (options: unknown): readonly string[] => {
    try {
      fencedLease(options as FencedLeaseOptions);
      return [];
    } catch (error) {
      return (error as { problems: readonly string[] }).problems;
    }
  };

  it("are refused all at once, each with its value and what is allowed", () => {
    expect(problemsOf({ job: "a b", ttl: "soon", skew: -1, timeout: 0, overlap: "wait", tabel: "jobs" })).toEqual([
      "tabel is not an option; did you mean table?",
      'job is "a b", and must be a name of letters, digits, - and _, at most 64 characters',
      'ttl is "soon", and must be a duration such as "30s" or a number of milliseconds, more than 0',
      'skew is -1, and must be a duration such as "30s" or a number of milliseconds, more than 0',
      'timeout is 0, and must be a duration such as "30s" or a number of milliseconds, more than 0',
      'overlap is "wait", and must be "queue", "skip" or "takeover"',
    ]);
  });

  it("are refused where they would only fail in a run", () => {
    expect(problemsOf({ job: "a", schedule: "*/5 * * * *", onUnknown: "Retry" })).toEqual([
      'schedule is "*/5 * * * *", and must be a schedule made by cron(…) or rate(…)',
      'onUnknown is "Retry", and must be "retry", "block" or a function that finds out',
    ]);
    expect(problemsOf({ job: "a", table: true })).toEqual([expect.stringContaining("table is true")]);
  });

  it("name the table or the store, not both", () => {
    expect(problemsOf({ job: "a", table: controlTable, store: engine.store })).toEqual([
      "table and store exclude each other: a store has its table",
    ]);
  });

  it.each([[undefined], [null], [{}]])("must name the job: %j", (options) => {
    expect(problemsOf(options)).toHaveLength(1);
    expect(problemsOf(options)[0]).toMatch(/^job is /);
  });

  it("name a table of their own", async () => {
    const lease = fencedLease({ job: "a", table: "no-such-table" });
    expect(Object.keys(lease).sort()).toEqual(["after", "before", "onError"]);
    expect(problemsOf({ job: "a", table: "x" })).toEqual([expect.stringContaining("DynamoDB table name")]);
  });
});
