/**
 * Code that outlives its run, holders that were paused past their lease, and runs that must stop: nothing that they do
 * afterwards changes anything, and they are told so.
 */
import { type Run, runJob } from "cronfence";
import { describe, expect, it } from "vitest";
import { brokenConnection, type Carry, passed } from "../../src/testing/wire.ts";
import { freshName, useEngine } from "../fixture.ts";
import { machineOn } from "./machine.ts";
import {
  clockAt,
  isCommit,
  isFinish,
  jobNamed,
  minuteMs,
  point,
  put,
  skewMs,
  start,
  tablesOf,
  tick,
  ttlMs,
} from "./scene.ts";

const engine = useEngine("rows");
const { row, stateOf, recordsOf } = tablesOf(engine);

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

  it("counts a commit that its record as crashed counts, also where it couldn't read that", async () => {
    const applied = point();
    const told: unknown[] = [];
    let sent = 0;
    const { name, paused, b, reportOfA } = await scene(
      (run, row) => run.commit([put(row, "A")], { watermark: 1, items: 7 }).catch((error) => told.push(error)),
      async (request) => {
        if (request.operation === "GetItem") throw accessDenied();
        const reply = await request.apply({ token: false });
        if (!isCommit(request) || sent++ > 0) return reply;
        await applied.hold();
        throw brokenConnection();
      },
    );
    paused.release();
    await applied.arrived;
    await start(
      b,
      jobNamed(name, (run) => run.commit([put(name, "B")])),
    );
    expect(await recordsOf(name)).toMatchObject([{ outcome: "crashed", commits: 1, items: 7 }, {}]);
    applied.release();
    expect(await reportOfA).toMatchObject({ outcome: "lease_lost", commits: 1, items: 7 });
    expect(told).toMatchObject([{ code: "LEASE_LOST", lastCommit: "unknown" }]);
    expect(await recordsOf(name)).toMatchObject([
      { outcome: "lease_lost", commits: 1, items: 7, watermarkAfter: 1 },
      {},
    ]);
  });

  it("counts a commit in doubt that was applied, also where a renewal is what tells that the lease is lost", async () => {
    const applied = point();
    const givenUp = point();
    const told: unknown[] = [];
    let sent = 0;
    const { name, paused, clocks, reportOfA } = await scene(
      async (run, row) => {
        await run.commit([put(row, "A")], { watermark: 1, items: 7 }).catch((error) => told.push(error));
        await givenUp.hold();
      },
      async (request) => {
        if (!isCommit(request)) return request.apply();
        if (sent++ === 0) {
          await request.apply();
          await applied.hold();
        }
        throw brokenConnection();
      },
    );
    paused.release();
    await applied.arrived;
    const recording = point();
    const b = machineOn(engine.endpoint, clocks.b, async (request) => {
      if (request.operation === "PutItem") await recording.hold();
      return request.apply();
    });
    const reportOfB = start(
      b,
      jobNamed(name, () => {}),
    );
    await recording.arrived;
    applied.release();
    await givenUp.arrived;
    // The heartbeat is overdue, and the deadline hasn't come.
    clocks.a.advance(0);
    expect(await reportOfA).toMatchObject({ outcome: "lease_lost", commits: 1, items: 7 });
    expect(told).toMatchObject([{ code: "OUTCOME_UNKNOWN" }]);
    recording.release();
    expect(await reportOfB).toMatchObject({ outcome: "succeeded" });
    expect(await recordsOf(name)).toMatchObject([
      { outcome: "lease_lost", commits: 1, items: 7, watermarkAfter: 1 },
      {},
    ]);
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

const accessDenied = (): Error =>
  Object.assign(new Error("not allowed"), { name: "AccessDeniedException", $metadata: { httpStatusCode: 400 } });
