/** Commits that nobody waits for, or whose outcome nobody knows: they never make a success of a run that isn't one. */
import type { Run } from "cronfence";
import { describe, expect, it } from "vitest";
import { brokenConnection, type WireRequest } from "../../src/testing/wire.ts";
import { freshName, useEngine } from "../fixture.ts";
import { type Machine, machineOn } from "./machine.ts";
import {
  clockAt,
  impossible,
  isCommit,
  isFinish,
  jobNamed,
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
    const clock = clockAt(tick);
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
