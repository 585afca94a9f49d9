/**
 * Code that outlives its run, and holders that were paused past their lease: nothing that they do changes anything, and
 * they are told so. Commits that nobody waits for, or whose outcome nobody knows, never make a success.
 */
import { GetItemCommand } from "@aws-sdk/client-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import { cron, defineJob, type JobOptions, type Run, type RunReport, runJob, type Write } from "cronfence";
import { type SettableClock, settableClock } from "cronfence/testing";
import { describe, expect, it } from "vitest";
import { budgetOn, freshName, useEngine } from "../fixture.ts";
import { type Machine, machineOn } from "./machine.ts";
import { brokenConnection, type Carry, passed, type WireRequest } from "./wire.ts";

const engine = useEngine("rows");
const minuteMs = 60_000;
const tick = Date.parse("2026-03-01T12:01:00Z");
const ttlMs = 30_000;
const skewMs = 10_000;

/** Waits between tries pass by themselves; deadlines and heartbeats don't. */
const clockAt = (time: number) => settableClock(time, { autoAdvance: { atMostMs: 2_000 } });

const jobNamed = (name: string, run: (run: Run<number>) => unknown, more: Partial<JobOptions> = {}) =>
  defineJob<number>({ name, schedule: cron("* * * * *"), timeout: "50s", ttl: ttlMs, skew: skewMs, ...more, run });

const start = (machine: Machine, job: ReturnType<typeof jobNamed>, at = tick): Promise<RunReport> =>
  runJob(job, { kind: "schedule", tick: at }, machine.deps);

/** Who wrote the row last, and how often it was written. */
const put = (id: string, by: string): Write => ({
  Update: {
    TableName: "rows",
    Key: { id },
    UpdateExpression: "SET #by = :by ADD #times :one",
    ExpressionAttributeNames: { "#by": "by", "#times": "times" },
    ExpressionAttributeValues: { ":by": by, ":one": 1 },
  },
});
const impossible = (id: string): Write => ({
  ConditionCheck: { TableName: "rows", Key: { id }, ConditionExpression: "attribute_exists(nothing)" },
});
const row = async (id: string): Promise<Record<string, unknown> | undefined> => {
  const { Item } = await engine.client.send(
    new GetItemCommand({ TableName: "rows", Key: marshall({ id }), ConsistentRead: true }),
  );
  return Item && unmarshall(Item);
};

const stateOf = (name: string) => engine.store.read(name, budgetOn(clockAt(tick)));
const recordsOf = async (name: string) =>
  (await engine.store.runs(name, { limit: 10 }, budgetOn(clockAt(tick)))).runs.toReversed();

const isFinish = ({ operation, body }: WireRequest) => operation === "TransactWriteItems" && body.includes('"run#');
const isCommit = (request: WireRequest) => request.operation === "TransactWriteItems" && !isFinish(request);

/** A point in somebody's code that a test can wait for, and hold. */
const point = () => {
  let arrive = () => {};
  let release = () => {};
  const arrived = new Promise<void>((resolve) => (arrive = resolve));
  const released = new Promise<void>((resolve) => (release = resolve));
  return {
    arrived,
    release,
    /** Called by the code that is held. */
    hold: () => {
      arrive();
      return released;
    },
  };
};

describe("code that outlives its run in the same process", () => {
  it("sends nothing after a timeout, whatever it tries, while the next run works and after it", async () => {
    const name = freshName();
    const clock = clockAt(tick);
    const machine = machineOn(engine.endpoint, clock);
    const paused = point();
    let zombie: Run<number> | undefined;
    const job = jobNamed(name, async (run) => {
      if (zombie === undefined) {
        zombie = run;
        await run.commit([put(name, "first")], { watermark: 1 });
        // Doesn't look at its signal.
        await paused.hold();
        return;
      }
      const before = machine.requests.length;
      const refused = { code: "RUN_TIMED_OUT" };
      await expect(zombie.commit([put(name, "zombie")], { watermark: 99 })).rejects.toMatchObject(refused);
      await expect(zombie.commit([])).rejects.toMatchObject(refused);
      expect(() => zombie?.commitAtEnd([put(name, "zombie")])).toThrow(expect.objectContaining(refused));
      expect(machine.requests.length).toBe(before);
      await run.commit([put(name, "second")], { watermark: 2 });
      // Its heartbeats would be due by now; the only one that goes out is the second run's.
      await clock.advanceAsync(ttlMs / 3 + 1);
      expect(machine.requests.slice(before).map(({ operation }) => operation)).toEqual([
        "TransactWriteItems",
        "UpdateItem",
      ]);
    });
    const first = start(machine, job);
    await paused.arrived;
    await clock.advanceAsync(50_000);
    expect(await first).toMatchObject({ outcome: "timed_out", commits: 1 });
    expect(zombie?.signal.aborted).toBe(true);
    expect(clock.timers).toBe(0);

    expect(await start(machine, job)).toMatchObject({ outcome: "succeeded", commits: 1 });
    const sent = machine.requests.length;
    paused.release();
    await expect(zombie?.commit([put(name, "zombie")])).rejects.toMatchObject({ code: "RUN_TIMED_OUT" });
    await clock.advanceAsync(10 * minuteMs);
    expect(machine.requests.length).toBe(sent);
    expect(await row(name)).toMatchObject({ by: "second", times: 2 });
    expect(await stateOf(name)).toMatchObject({ watermark: 2, tick });
    expect(await recordsOf(name)).toMatchObject([
      { outcome: "timed_out", commits: 1 },
      { outcome: "succeeded", commits: 1 },
    ]);
  });

  it.each<[string, (run: Run<number>) => unknown, string]>([
    ["succeeded", () => {}, "succeeded"],
    ["stopped at a bound of its own", (run) => run.capped(), "capped"],
    [
      "failed",
      () => {
        throw new Error("no luck");
      },
      "failed",
    ],
  ])("is refused once the run has %s: a commit, a last batch, an unawaited commit", async (_, end, outcome) => {
    const name = freshName();
    const clock = clockAt(tick);
    const machine = machineOn(engine.endpoint, clock);
    let outlived: Run<number> | undefined;
    const report = await start(
      machine,
      jobNamed(name, (run) => {
        outlived = run;
        return end(run);
      }),
    );
    expect(report.outcome).toBe(outcome);
    const sent = machine.requests.length;
    const refused = { code: "RUN_ENDED", name: "RunEndedError", job: name, runId: report.run };
    await expect(outlived?.commit([put(name, "zombie")])).rejects.toMatchObject(refused);
    expect(() => outlived?.commitAtEnd([put(name, "zombie")])).toThrow(expect.objectContaining(refused));
    // One that nobody looks at ends the process no more than it is sent.
    void outlived?.commit([put(name, "zombie")]);
    await clock.advanceAsync(10 * minuteMs);
    expect(clock.timers).toBe(0);
    expect(machine.requests.length).toBe(sent);
    expect(await row(name)).toBeUndefined();
  });

  it("is refused while the run's end is still on its way: no commit slips in between", async () => {
    const name = freshName();
    const clock = clockAt(tick);
    const ending = point();
    const machine = machineOn(engine.endpoint, clock, async (request) => {
      if (isFinish(request)) await ending.hold();
      return request.apply();
    });
    let outlived: Run<number> | undefined;
    const run = start(
      machine,
      jobNamed(name, (live) => {
        outlived = live;
      }),
    );
    await ending.arrived;
    const late = outlived?.commit([put(name, "zombie")]);
    // It would be kept, and never be sent.
    expect(() => outlived?.commitAtEnd([put(name, "zombie")])).toThrow("the run's end is on its way");
    ending.release();
    expect(await run).toMatchObject({ outcome: "succeeded", commits: 0 });
    await expect(late).rejects.toMatchObject({ code: "RUN_ENDED" });
    expect(machine.requests.filter(isCommit)).toEqual([]);
    expect(await row(name)).toBeUndefined();
  });
});

describe("a holder that was paused past its lease", () => {
  /** A holds fence f and is paused in its code; B's clock is past A's lease. */
  const scene = async (work: (run: Run<number>, name: string) => unknown, carry: Carry = passed) => {
    const name = freshName();
    const paused = point();
    const clocks = { a: clockAt(tick), b: clockAt(tick + ttlMs + skewMs + 1) };
    const a = machineOn(engine.endpoint, clocks.a, carry);
    const b = machineOn(engine.endpoint, clocks.b);
    let run: Run<number> | undefined;
    const reportOfA = start(
      a,
      jobNamed(name, async (held) => {
        run = held;
        await paused.hold();
        return work(held, name);
      }),
    );
    await paused.arrived;
    return { name, paused, clocks, a, b, reportOfA, runOfA: run as Run<number> };
  };

  it("case 7: its commit changes nothing, it ends as lease_lost, and its successor's result stands", async () => {
    const outcomes: unknown[] = [];
    const { name, paused, b, reportOfA, runOfA } = await scene(async (run, row) => {
      await run.commit([put(row, "A")], { watermark: 1 }).catch((error) => outcomes.push(error));
      // Nor does the next one reach the network.
      await run.commit([put(row, "A")], { watermark: 2 });
    });
    const reportOfB = await start(
      b,
      jobNamed(name, (run) => run.commit([put(name, "B")], { watermark: 10 })),
    );
    expect(reportOfB).toMatchObject({ outcome: "succeeded", fence: runOfA.fence + 1 });
    const before = [await stateOf(name), (await recordsOf(name))[1]];
    paused.release();
    expect(await reportOfA).toMatchObject({ outcome: "lease_lost", fence: runOfA.fence, commits: 0 });
    expect(outcomes).toMatchObject([{ code: "LEASE_LOST", lastCommit: "not applied", fence: runOfA.fence }]);
    expect(runOfA.signal.aborted).toBe(true);
    expect(await row(name)).toMatchObject({ by: "B", times: 1 });
    expect([await stateOf(name), (await recordsOf(name))[1]]).toEqual(before);
    expect(await recordsOf(name)).toMatchObject([
      { outcome: "lease_lost", commits: 0 },
      { outcome: "succeeded", commits: 1 },
    ]);
  });

  it("case 7: its commit is refused while its successor holds the lease, which has made as many commits as it had", async () => {
    const { name, paused, b, reportOfA } = await scene((run, row) => run.commit([put(row, "A")], { watermark: 1 }));
    const busy = point();
    const reportOfB = start(
      b,
      jobNamed(name, async (run) => {
        await busy.hold();
        await run.commit([put(name, "B")], { watermark: 10 });
      }),
    );
    await busy.arrived;
    const before = await stateOf(name);
    paused.release();
    expect(await reportOfA).toMatchObject({ outcome: "lease_lost", commits: 0 });
    expect(await stateOf(name)).toEqual(before);
    expect(await row(name)).toBeUndefined();
    busy.release();
    expect(await reportOfB).toMatchObject({ outcome: "succeeded", commits: 1 });
    expect(await row(name)).toMatchObject({ by: "B", times: 1 });
  });

  it("case 7: a commit that it had sent before, and that arrives now, changes nothing either", async () => {
    const sending = point();
    const { name, paused, b, reportOfA } = await scene(
      (run, row) => run.commit([put(row, "A")]),
      async (request) => {
        if (isCommit(request)) await sending.hold();
        return request.apply();
      },
    );
    paused.release();
    await sending.arrived;
    await start(
      b,
      jobNamed(name, (run) => run.commit([put(name, "B")])),
    );
    sending.release();
    expect(await reportOfA).toMatchObject({ outcome: "lease_lost", commits: 0 });
    expect(await row(name)).toMatchObject({ by: "B", times: 1 });
  });

  it.each([
    ["knows it by its token", true],
    ["ignores tokens", false],
  ])("counts a commit that was applied before its lease was lost, on a server that %s", async (_, token) => {
    const applied = point();
    const told: unknown[] = [];
    let sent = 0;
    const { name, paused, b, reportOfA } = await scene(
      (run, row) => run.commit([put(row, "A")], { watermark: 1, items: 7 }).catch((error) => told.push(error)),
      async (request) => {
        const reply = await request.apply({ token });
        if (!isCommit(request) || sent++ > 0) return reply;
        await applied.hold();
        throw brokenConnection();
      },
    );
    paused.release();
    await applied.arrived;
    const work = (run: Run<number>) => run.commit([put(name, "B")], { watermark: (run.watermark ?? 0) + 1 });
    expect(await start(b, jobNamed(name, work))).toMatchObject({ outcome: "succeeded", commits: 1 });
    applied.release();
    expect(await reportOfA).toMatchObject({ outcome: "lease_lost", commits: 1, items: 7 });
    // Success means that it was applied, not that the lease is still held.
    expect(told).toMatchObject(token ? [] : [{ code: "LEASE_LOST", lastCommit: "applied" }]);
    expect(await row(name)).toMatchObject({ by: "B", times: 2 });
    expect(await recordsOf(name)).toMatchObject([{ outcome: "lease_lost", commits: 1, items: 7 }, {}]);
    expect(await stateOf(name)).toMatchObject({ watermark: 2 });
  });

  it("case 8: its late release doesn't free its successor's lease", async () => {
    const { name, paused, clocks, b, reportOfA } = await scene(() => {});
    const busy = point();
    const reportOfB = start(
      b,
      jobNamed(name, () => busy.hold()),
    );
    await busy.arrived;
    const before = await stateOf(name);
    paused.release();
    expect(await reportOfA).toMatchObject({ outcome: "lease_lost" });
    expect(await stateOf(name)).toEqual(before);

    const c = machineOn(engine.endpoint, clocks.b);
    const another = jobNamed(name, () => expect.unreachable(), { overlap: "skip" });
    expect(await start(c, another, tick + minuteMs)).toMatchObject({
      outcome: "held",
      holder: { run: before?.run?.id },
    });
    busy.release();
    expect(await reportOfB).toMatchObject({ outcome: "succeeded" });
  });

  it("case 9: its late completion leaves its successor's record and the job's tick alone", async () => {
    const { name, paused, clocks, b, reportOfA } = await scene((run, row) => run.commitAtEnd([put(row, "A")]));
    const work = (run: Run<number>) => run.commitAtEnd([put(name, "B")], { watermark: 5 });
    expect(await start(b, jobNamed(name, work))).toMatchObject({ outcome: "succeeded" });
    clocks.b.advance(minuteMs);
    expect(await start(b, jobNamed(name, work), tick + minuteMs)).toMatchObject({ outcome: "succeeded" });
    const before = { state: await stateOf(name), records: (await recordsOf(name)).slice(1) };
    paused.release();
    expect(await reportOfA).toMatchObject({ outcome: "lease_lost", commits: 0, items: 0 });
    expect({ state: await stateOf(name), records: (await recordsOf(name)).slice(1) }).toEqual(before);
    expect(await row(name)).toMatchObject({ by: "B", times: 2 });
    expect(await recordsOf(name)).toMatchObject([{ outcome: "lease_lost" }, {}, {}]);
  });

  it("learns from its late renewal that the lease is lost, and doesn't prolong its successor's", async () => {
    const { name, paused, clocks, a, b, reportOfA, runOfA } = await scene(() => {});
    const busy = point();
    const reportOfB = start(
      b,
      jobNamed(name, () => busy.hold()),
    );
    await busy.arrived;
    const before = await stateOf(name);
    const aborted = new Promise((resolve) => runOfA.signal.addEventListener("abort", resolve, { once: true }));
    clocks.a.advance(ttlMs / 3);
    await aborted;
    expect(runOfA.signal.reason).toMatchObject({ code: "LEASE_LOST", lastCommit: "none" });
    // The run ends without waiting for the paused code.
    expect(await reportOfA).toMatchObject({ outcome: "lease_lost" });
    const sent = a.requests.length;
    await expect(runOfA.commit([put(name, "A")])).rejects.toMatchObject({ code: "LEASE_LOST" });
    paused.release();
    expect(a.requests.length).toBe(sent);
    expect(await stateOf(name)).toEqual(before);
    busy.release();
    expect(await reportOfB).toMatchObject({ outcome: "succeeded" });
  });
});

describe("a run that must stop", () => {
  it("case 14: gives the lease back and is recorded as timed_out before the end, though its code never settles", async () => {
    const name = freshName();
    const clock = clockAt(tick);
    const machine = machineOn(engine.endpoint, clock);
    const busy = point();
    const job = jobNamed(name, () => busy.hold());
    const invocationMs = 10_000;
    const report = runJob(
      job,
      { kind: "schedule", tick },
      { ...machine.deps, remainingMs: () => tick + invocationMs - clock.now() },
    );
    await busy.arrived;
    expect(await stateOf(name)).toMatchObject({ owner: expect.any(String) });
    // Two request timeouts and some more before the platform would end it.
    await clock.advanceAsync(invocationMs - 2 * machine.store.requestTimeoutMs - 250);
    expect(await report).toMatchObject({ outcome: "timed_out", error: { code: "RUN_TIMED_OUT" } });
    expect(clock.now()).toBeLessThan(tick + invocationMs - 2 * machine.store.requestTimeoutMs);
    const state = await stateOf(name);
    for (const gone of ["owner", "leaseUntil", "run", "tick"]) expect(state).not.toHaveProperty(gone);
    expect(await recordsOf(name)).toMatchObject([{ outcome: "timed_out", endedAt: clock.now() }]);
  });

  it("waits for a commit that is under way at the deadline, and counts it", async () => {
    const name = freshName();
    const clock = clockAt(tick);
    const sending = point();
    const machine = machineOn(engine.endpoint, clock, async (request) => {
      if (isCommit(request)) await sending.hold();
      return request.apply();
    });
    const report = start(
      machine,
      jobNamed(name, async (run) => {
        await run.commit([put(name, "A")], { watermark: 1 });
        await run.commit([put(name, "A")], { watermark: 2 });
      }),
    );
    await sending.arrived;
    await clock.advanceAsync(50_000);
    expect(machine.requests.filter(isFinish)).toEqual([]);
    sending.release();
    expect(await report).toMatchObject({ outcome: "timed_out", commits: 1 });
    expect(await row(name)).toMatchObject({ times: 1 });
    expect(await stateOf(name)).toMatchObject({ watermark: 1 });
  });
});

describe("commits that nobody waits for", () => {
  it("make the run fail when one of them fails, and leave the tick owed", async () => {
    const name = freshName();
    const machine = machineOn(engine.endpoint, clockAt(tick));
    const report = await start(
      machine,
      jobNamed(name, async (run) => {
        void run.commit([put(name, "A"), impossible(`${name} nothing`)]);
      }),
    );
    expect(report).toMatchObject({ outcome: "failed", commits: 0, error: { code: "WRITE_REJECTED" } });
    expect(await row(name)).toBeUndefined();
    expect(await stateOf(name)).not.toHaveProperty("tick");
    expect(await recordsOf(name)).toMatchObject([{ outcome: "failed", error: { code: "WRITE_REJECTED" } }]);
  });

  it("make the run fail when one of them is refused before it is sent", async () => {
    const name = freshName();
    const machine = machineOn(engine.endpoint, clockAt(tick));
    const tooMany = Array.from({ length: 100 }, (_, i) => put(`${name} ${i}`, "A"));
    const report = await start(
      machine,
      jobNamed(name, (run) => {
        void run.commit(tooMany);
        void run.commit([put(name, "A")]);
      }),
    );
    expect(report).toMatchObject({ outcome: "failed", commits: 1, error: { code: "COMMIT_REFUSED" } });
    expect(await stateOf(name)).not.toHaveProperty("tick");
  });

  it("don't when somebody has looked at the failure", async () => {
    const name = freshName();
    const machine = machineOn(engine.endpoint, clockAt(tick));
    const seen: unknown[] = [];
    const report = await start(
      machine,
      jobNamed(name, (run) => {
        run.commit([impossible(`${name} nothing`)]).catch((error) => seen.push(error));
        void run.commit([put(name, "A")]);
      }),
    );
    expect(report).toMatchObject({ outcome: "succeeded", commits: 1 });
    expect(seen).toMatchObject([{ code: "WRITE_REJECTED" }]);
    expect(await row(name)).toMatchObject({ times: 1 });
  });

  it.each<[string, (run: Run<number>) => unknown]>([
    ["rejected", (run) => run.commit([impossible(`${run.job} nothing`)], { watermark: 1 })],
    ["refused before it was sent", (run) => run.commit(Array.from({ length: 100 }, () => put(run.job, "A")))],
  ])("take no watermark past one that was %s: what was asked for behind it isn't sent", async (_, first) => {
    const name = freshName();
    const machine = machineOn(engine.endpoint, clockAt(tick));
    const outcomes: unknown[] = [];
    const report = await start(
      machine,
      jobNamed(name, async (run) => {
        const asked = [first(run), run.commit([put(name, "A")], { watermark: 2 }), run.commit([put(name, "B")])];
        for (const { status, reason } of (await Promise.allSettled(asked)) as PromiseRejectedResult[]) {
          outcomes.push(status === "rejected" ? reason.code : status);
        }
        // Whoever has looked may go on.
        await run.commit([put(name, "C")], { watermark: 3 });
      }),
    );
    const [code] = outcomes;
    expect(outcomes).toEqual([code, code, "fulfilled"]);
    expect(report).toMatchObject({ outcome: "succeeded", commits: 2 });
    expect(await row(name)).toMatchObject({ by: "C", times: 2 });
    expect(await stateOf(name)).toMatchObject({ watermark: 3 });
  });

  it("take no watermark past one that failed a while ago, which nobody has looked at yet", async () => {
    const name = freshName();
    const machine = machineOn(engine.endpoint, clockAt(tick));
    const report = await start(
      machine,
      jobNamed(name, async (run) => {
        void run.commit([impossible(`${name} nothing`)], { watermark: 1 });
        await run.commit([put(name, "A")]);
        void run.commit([put(name, "B")], { watermark: 2 });
      }),
    );
    expect(report).toMatchObject({ outcome: "failed", commits: 1, error: { code: "WRITE_REJECTED" } });
    expect(await row(name)).toMatchObject({ by: "A", times: 1 });
    expect(await stateOf(name)).not.toHaveProperty("watermark");
  });

  it("are waited for, however slow, before the run ends", async () => {
    const name = freshName();
    const clock = clockAt(tick);
    const sending = point();
    const machine = machineOn(engine.endpoint, clock, async (request) => {
      if (isCommit(request)) await sending.hold();
      return request.apply();
    });
    const report = start(
      machine,
      jobNamed(name, (run) => {
        void run.commit([put(name, "A")], { watermark: 1 });
      }),
    );
    await sending.arrived;
    await clock.advanceAsync(1_000);
    expect(machine.requests.filter(isFinish)).toEqual([]);
    sending.release();
    expect(await report).toMatchObject({ outcome: "succeeded", commits: 1 });
    expect(await row(name)).toMatchObject({ times: 1 });
    expect(await stateOf(name)).toMatchObject({ watermark: 1, tick });
  });

  it("go out one at a time in the order they were asked for, and don't conflict with each other", async () => {
    const name = freshName();
    const sending = point();
    let open = 0;
    const order: unknown[] = [];
    const machine = machineOn(engine.endpoint, clockAt(tick), async (request) => {
      if (!isCommit(request)) return request.apply();
      open += 1;
      expect(open).toBe(1);
      order.push(JSON.parse(request.body).TransactItems[1].Update.ExpressionAttributeValues[":by"].S);
      if (order.length === 1) await sending.hold();
      const reply = await request.apply();
      open -= 1;
      return reply;
    });
    const report = start(
      machine,
      jobNamed(name, (run) => Promise.all([1, 2, 3, 4].map((n) => run.commit([put(name, `${n}`)], { watermark: n })))),
    );
    await sending.arrived;
    expect(machine.requests.filter(isCommit)).toHaveLength(1);
    sending.release();
    expect(await report).toMatchObject({ outcome: "succeeded", commits: 4 });
    expect(order).toEqual(["1", "2", "3", "4"]);
    expect(await row(name)).toMatchObject({ by: "4", times: 4 });
    expect(await stateOf(name)).toMatchObject({ watermark: 4 });
  });
});

describe("a commit whose outcome is unknown", () => {
  /** Every try of the first commit is lost until the run gives up on it; what it sends afterwards goes through. */
  const scene = (more: { onFinish?: (first: WireRequest) => Promise<unknown> } = {}) => {
    const name = freshName();
    const clock = clockAt(tick);
    let first: WireRequest | undefined;
    const machine = machineOn(engine.endpoint, clock, async (request) => {
      if (isCommit(request)) {
        first ??= request;
        if (request.body === first.body) throw brokenConnection();
      }
      if (isFinish(request) && first) await more.onFinish?.(first);
      return request.apply();
    });
    return { name, clock, machine, lostCommit: () => first as WireRequest };
  };

  /** Swallows the error, tries to go on, and returns as if all was well. */
  const swallowing = (errors: unknown[]) => async (run: Run<number>) => {
    await run.commit([put(run.job, "first")], { watermark: 1 }).catch((error) => errors.push(error));
    await run.commit([put(run.job, "second")], { watermark: 2 }).catch((error) => errors.push(error));
    run.commitAtEnd([put(run.job, "last")], { watermark: 3 });
  };

  const expectBlocked = (errors: unknown[], { machine, lostCommit }: ReturnType<typeof scene>) => {
    expect(errors).toMatchObject([{ code: "OUTCOME_UNKNOWN" }, { code: "OUTCOME_UNKNOWN" }]);
    const bodies = new Set(machine.requests.filter(isCommit).map(({ body }) => body));
    expect(bodies).toEqual(new Set([lostCommit().body]));
  };

  it("blocks all others, and the run fails when it was never applied, though its code swallowed the error", async () => {
    const { name, machine, clock, lostCommit } = scene();
    const errors: unknown[] = [];
    const report = await start(machine, jobNamed(name, swallowing(errors)));
    expectBlocked(errors, { name, machine, clock, lostCommit });
    expect(report).toMatchObject({ outcome: "failed", commits: 0, items: 0, error: { code: "OUTCOME_UNKNOWN" } });
    // Its place in the sequence is gone: arriving now it changes nothing.
    expect((await lostCommit().apply({ token: false })).statusCode).toBe(400);
    expect(await row(name)).toBeUndefined();
    const state = await stateOf(name);
    for (const absent of ["owner", "watermark", "tick"]) expect(state).not.toHaveProperty(absent);
    expect(await recordsOf(name)).toMatchObject([{ outcome: "failed", commits: 0 }]);
  });

  it("is counted when it arrives before the end after all, and the run still isn't a success", async () => {
    const { name, machine, clock, lostCommit } = scene({
      onFinish: async (first) => {
        if (first.accepted === 0) expect((await first.apply()).statusCode).toBe(200);
      },
    });
    const errors: unknown[] = [];
    const report = await start(machine, jobNamed(name, swallowing(errors)));
    expectBlocked(errors, { name, machine, clock, lostCommit });
    expect(report).toMatchObject({ outcome: "failed", commits: 1, items: 1 });
    expect(await row(name)).toMatchObject({ by: "first", times: 1 });
    const state = await stateOf(name);
    expect(state).toMatchObject({ watermark: 1 });
    expect(state).not.toHaveProperty("tick");
    expect(await recordsOf(name)).toMatchObject([{ outcome: "failed", commits: 1, items: 1, watermarkAfter: 1 }]);
  });

  it("lets the next run resume behind it when it was applied, and repeat it when it wasn't", async () => {
    for (const arrives of [true, false]) {
      const { name, machine, clock } = scene({
        onFinish: async (first) => (arrives && first.accepted === 0 ? first.apply() : undefined),
      });
      const job = jobNamed(name, async (run) => {
        for (let step = (run.watermark ?? 0) + 1; step <= 3; step += 1) {
          await run.commit([put(`${name} ${step}`, run.id)], { watermark: step });
        }
      });
      expect(await start(machine, job)).toMatchObject({ outcome: "failed", commits: arrives ? 1 : 0 });
      const next = machineOn(engine.endpoint, clock);
      expect(await start(next, job)).toMatchObject({ outcome: "succeeded", commits: arrives ? 2 : 3 });
      for (const step of [1, 2, 3]) expect(await row(`${name} ${step}`)).toMatchObject({ times: 1 });
    }
  });

  describe("that DynamoDB then rejects", () => {
    /** Rejected, and the first answer is lost: an empty commit must take its place, or it could still be applied later. */
    const rejectedInDoubt = async (run: Run<number>) =>
      run.commit([put(run.job, "first"), impossible(`${run.job} nothing`)]).catch((error) => {
        if (error.code !== "WRITE_REJECTED") throw error;
      });

    it("isn't counted, nor is the empty commit that took its place: not even by a successor, when the run dies", async () => {
      const name = freshName();
      const clock = clockAt(tick);
      const commits: WireRequest[] = [];
      const machine: Machine = machineOn(engine.endpoint, clock, async (request) => {
        const reply = await request.apply();
        if (isCommit(request)) commits.push(request);
        if (commits.length === 1 && isCommit(request)) throw brokenConnection();
        return reply;
      });
      const working = point();
      void start(
        machine,
        jobNamed(name, async (run) => {
          await rejectedInDoubt(run);
          await run.commit([put(name, "second")], { watermark: 1, items: 5 });
          await working.hold();
        }),
      );
      await working.arrived;
      // Lost, rejected, the empty one, and the second.
      expect(commits.map(({ accepted }) => accepted)).toEqual([0, 0, 1, 1]);
      machine.kill();
      clock.advance(ttlMs + skewMs + 1);
      const next = jobNamed(name, (run) => run.commit([put(name, "third")], { watermark: (run.watermark ?? 0) + 1 }));
      expect(await start(machineOn(engine.endpoint, clock), next)).toMatchObject({ outcome: "succeeded" });
      expect(await recordsOf(name)).toMatchObject([{ outcome: "crashed", commits: 1, items: 5 }, { commits: 1 }]);
      expect(await row(name)).toMatchObject({ by: "third", times: 2 });
    });

    it("isn't counted when the empty commit's outcome is unknown, too, and turns up at the end", async () => {
      const name = freshName();
      const clock = clockAt(tick);
      const bodies: string[] = [];
      let empty: WireRequest | undefined;
      const machine = machineOn(engine.endpoint, clock, async (request) => {
        if (isFinish(request)) await empty?.apply();
        if (!isCommit(request)) return request.apply();
        if (!bodies.includes(request.body)) bodies.push(request.body);
        if (bodies.length === 2) empty ??= request;
        const reply = request === empty || bodies.length === 2 ? undefined : await request.apply();
        const isFirstTry = bodies.length === 1 && machine.requests.filter(isCommit).length === 1;
        if (reply === undefined || isFirstTry) throw brokenConnection();
        return reply;
      });
      const report = await start(machine, jobNamed(name, rejectedInDoubt));
      expect(empty?.accepted).toBeGreaterThan(0);
      expect(report).toMatchObject({ outcome: "failed", commits: 0, items: 0, error: { code: "OUTCOME_UNKNOWN" } });
      expect(await recordsOf(name)).toMatchObject([{ outcome: "failed", commits: 0, items: 0 }]);
      expect(await row(name)).toBeUndefined();
    });
  });

  it("makes an attempt without a report when the end's outcome is unknown too, and a retry finds out", async () => {
    const name = freshName();
    const clock: SettableClock = clockAt(tick);
    const machine = machineOn(engine.endpoint, clock, async (request) => {
      if (!isFinish(request)) return request.apply();
      if (request.accepted === 0) await request.apply();
      throw brokenConnection();
    });
    const job = jobNamed(name, (run) => run.commitAtEnd([put(name, "A")], { watermark: 1 }));
    await expect(start(machine, job)).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN", operation: "finish" });
    expect(await start(machineOn(engine.endpoint, clock), job)).toMatchObject({ outcome: "duplicate" });
    expect(await row(name)).toMatchObject({ times: 1 });
    expect(await recordsOf(name)).toMatchObject([{ outcome: "succeeded", commits: 1 }]);
  });
});
