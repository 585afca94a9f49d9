import { type ControlStore, defineJob, hasCode, NotDoneError, type Run, type RunReport, runJob } from "cronfence";
import { dumpTable, settableClock } from "cronfence/testing";
import { afterEach, describe, expect, it } from "vitest";
import { budgetOn, controlTable, freshName, silentLog, useEngine } from "../fixture.ts";

const engine = useEngine();
afterEach(() => engine.proxy.reset());

const setting = (work: (run: Run) => unknown, options: Record<string, unknown> = {}) => {
  const clock = settableClock();
  const name = freshName();
  const job = defineJob({ name, timeout: "1m", run: work, ...options });
  const store = engine.faulty({ requestTimeoutMs: 5_000 });
  const deps = { store, clock, log: silentLog, random: () => 0 };
  return {
    name,
    clock,
    job,
    go: (): Promise<RunReport> => runJob(job, { kind: "manual" }, deps),
    /** A run that dies: nothing it sends after `point` arrives. */
    dieAt: async (effects: () => number) => {
      engine.proxy.when(() => effects() > 0, "drop");
      // The run's own budget ends on the settable clock, which nobody moves: it is left behind, as a dead process is.
      const dead = runJob(job, { kind: "manual" }, deps).catch(() => {});
      while (effects() === 0) await new Promise((resolve) => setImmediate(resolve));
      clock.advance(45_000);
      clock.advance(45_000);
      await dead;
      engine.proxy.reset();
    },
    once: (key: string) => engine.store.readOnce(name, key, budgetOn(clock)),
  };
};

describe("An effect outside DynamoDB", () => {
  it("is called once, and its result is remembered for later runs", async () => {
    const calls: string[] = [];
    const results: unknown[] = [];
    const { go, name } = setting(async (run) => {
      results.push(
        await run.once("invoice-1", async ({ idempotencyKey }) => {
          calls.push(idempotencyKey);
          return { number: 7 };
        }),
      );
    });
    expect((await go()).outcome).toBe("succeeded");
    expect((await go()).outcome).toBe("succeeded");
    expect(calls).toEqual([`${name}/invoice-1`]);
    expect(results).toEqual([{ number: 7 }, { number: 7 }]);
  });

  it("is handed the run's fence", async () => {
    let handed = 0;
    let own = 0;
    const { go } = setting(async (run) => {
      own = run.fence;
      await run.once("e", async ({ fence }) => {
        handed = fence;
      });
    });
    await go();
    expect(handed).toBe(own);
  });

  it("has its intent on record before it is called", async () => {
    let before: unknown;
    const here = setting(async (run) => {
      await run.once("e", async () => {
        before = await here.once("e");
      });
    });
    await here.go();
    expect(before).toMatchObject({ state: "intended" });
    expect(await here.once("e")).toMatchObject({ state: "done" });
  });

  it("isn't called at all when its intent can't be recorded, because the lease is lost", async () => {
    let calls = 0;
    const here = setting(async (run) => {
      await engine.store.cancel(here.name, { by: "test", why: "test" }, here.clock.now(), budgetOn(here.clock));
      await run.once("e", async () => {
        calls += 1;
      });
    });
    expect((await here.go()).outcome).toBe("cancelled");
    expect(calls).toBe(0);
  });

  it("isn't called in a dry run", async () => {
    let calls = 0;
    const { go, once } = setting(
      async (run) => {
        expect(await run.once("e", async () => ++calls)).toBeUndefined();
      },
      { dryRun: true },
    );
    expect((await go()).outcome).toBe("dry_run");
    expect(calls).toBe(0);
    expect(await once("e")).toBeUndefined();
  });

  it.each([
    ["", "1 to 900 bytes"],
    ["x".repeat(901), "901 bytes long"],
    [7, "a number"],
  ])("refuses the key %o before anything is written", async (key, problem) => {
    const { go, name } = setting((run) => run.once(key as string, async () => {}));
    const report = await go();
    expect(report.error?.message).toContain(problem);
    expect(
      (await dumpTable(engine.client, controlTable)).filter(
        ({ sk, pk }) => pk === `job#${name}` && String(sk).startsWith("once"),
      ),
    ).toEqual([]);
  });

  it("whose result isn't JSON fails the run, and stays open", async () => {
    const { go, once } = setting((run) => run.once("e", async () => new Date() as never));
    const report = await go();
    expect(report.error?.message).toContain("isn't JSON");
    expect(await once("e")).toMatchObject({ state: "intended" });
  });
});

describe("An effect that a run died over (case 15)", () => {
  it("isn't called again by default: the run fails until a person says that it was done", async () => {
    let calls = 0;
    const here = setting(async (run) => {
      await run.once("payment", async () => {
        calls += 1;
      });
    });
    await here.dieAt(() => calls);
    expect(calls).toBe(1);
    const blocked = await here.go();
    expect(blocked.outcome).toBe("failed");
    expect(hasCode(blocked.thrown, "EFFECT_UNKNOWN")).toBe(true);
    await engine.store.releaseOnce(
      here.name,
      "payment",
      "done",
      { by: "ann", why: "seen at the bank" },
      here.clock.now(),
      budgetOn(here.clock),
    );
    expect((await here.go()).outcome).toBe("succeeded");
    expect(calls).toBe(1);
  });

  it("is called again once a person says that it wasn't done", async () => {
    let calls = 0;
    const here = setting(async (run) => {
      await run.once("payment", async () => {
        calls += 1;
      });
    });
    await here.dieAt(() => calls);
    await engine.store.releaseOnce(
      here.name,
      "payment",
      "not done",
      { by: "ann", why: "no entry" },
      here.clock.now(),
      budgetOn(here.clock),
    );
    expect((await here.go()).outcome).toBe("succeeded");
    expect(calls).toBe(2);
    const acts = (await dumpTable(engine.client, controlTable)).filter(
      ({ pk, sk }) => pk === `job#${here.name}` && String(sk).startsWith("act#"),
    );
    expect(acts).toMatchObject([{ kind: "release", by: "ann", why: "no entry", key: "payment", verdict: "not done" }]);
  });

  it('is called again with onUnknown "retry", under the same idempotency key', async () => {
    const keys: string[] = [];
    const here = setting(
      async (run) => {
        await run.once("payment", async ({ idempotencyKey }) => {
          keys.push(idempotencyKey);
        });
      },
      { onUnknown: "retry" },
    );
    await here.dieAt(() => keys.length);
    expect((await here.go()).outcome).toBe("succeeded");
    expect(keys).toEqual([`${here.name}/payment`, `${here.name}/payment`]);
  });

  it("is called again under the idempotency key that it was begun with, whatever the job is called by now", async () => {
    const keys: string[] = [];
    let fails = true;
    const work = async (run: Run) => {
      await run.once("payment", async ({ idempotencyKey }) => {
        keys.push(idempotencyKey);
        if (keys.length > 1 && fails) throw new Error("no reply");
      });
    };
    const here = setting(work, { onUnknown: "retry" });
    await here.dieAt(() => keys.length);
    const moved = freshName();
    const act = { by: "ann", why: "renamed", cancel: true };
    await engine.store.move(here.name, moved, act, here.clock.now(), budgetOn(here.clock));
    const job = defineJob({ name: moved, timeout: "1m", run: work, onUnknown: "retry" });
    const deps = { store: engine.store, clock: here.clock, log: silentLog };
    expect((await runJob(job, { kind: "manual" }, deps)).outcome).toBe("failed");
    fails = false;
    expect((await runJob(job, { kind: "manual" }, deps)).outcome).toBe("succeeded");
    expect(keys).toEqual(Array(3).fill(`${here.name}/payment`));
  });

  it("is looked up by a function, which may find it done and give its result", async () => {
    let calls = 0;
    const results: unknown[] = [];
    const here = setting(
      async (run) => {
        results.push(
          await run.once("payment", async () => {
            calls += 1;
            return "made now";
          }),
        );
      },
      { onUnknown: async ({ key }: { key: string }) => ({ done: true, result: `found ${key}` }) },
    );
    await here.dieAt(() => calls);
    expect((await here.go()).outcome).toBe("succeeded");
    expect((await here.go()).outcome).toBe("succeeded");
    expect(calls).toBe(1);
    expect(results).toEqual(["found payment", "found payment"]);
  });

  it("is called again when the function finds that it wasn't done", async () => {
    let calls = 0;
    const here = setting(
      async (run) => {
        await run.once("payment", async () => {
          calls += 1;
        });
      },
      { onUnknown: async () => ({ done: false }) },
    );
    await here.dieAt(() => calls);
    expect((await here.go()).outcome).toBe("succeeded");
    expect(calls).toBe(2);
  });

  it("that threw is open too, unless it says that it certainly wasn't done", async () => {
    let calls = 0;
    const here = setting(async (run) => {
      await run.once("a", async () => {
        calls += 1;
        if (calls === 1) throw new NotDoneError("the address was refused");
        throw new Error("connection reset");
      });
    });
    expect((await here.go()).error?.code).toBe("NOT_DONE");
    expect(await here.once("a")).toBeUndefined();
    expect((await here.go()).error?.message).toBe("connection reset");
    expect(await here.once("a")).toMatchObject({ state: "intended" });
    expect((await here.go()).error?.code).toBe("EFFECT_UNKNOWN");
    expect(calls).toBe(2);
  });

  it("can't be released when nothing is open", async () => {
    const here = setting(() => {});
    await expect(
      engine.store.releaseOnce(here.name, "nothing", "done", { by: "a", why: "b" }, 0, budgetOn(here.clock)),
    ).rejects.toThrow("is open");
  });

  it("is released as this person says or not at all, where another one says the opposite and a request is lost", async () => {
    let calls = 0;
    const here = setting(async (run) => {
      await run.once("payment", async () => {
        calls += 1;
      });
    });
    await here.dieAt(() => calls);
    const clock = settableClock(undefined, { autoAdvance: true });
    const release = (store: ControlStore, verdict: "done" | "not done") =>
      store.releaseOnce(here.name, "payment", verdict, { by: "ann", why: "asked" }, 0, budgetOn(clock));
    engine.proxy.next("TransactWriteItems", [{ before: () => release(engine.store, "not done") }, "drop"]);
    await expect(release(engine.faulty(), "done")).rejects.toThrow("is open");
    expect(await here.once("payment")).toBeUndefined();
  });

  it("isn't released by a request that is repeated late, once it has been begun anew", async () => {
    let calls = 0;
    const here = setting(async (run) => {
      await run.once("payment", async () => {
        calls += 1;
      });
    });
    await here.dieAt(() => calls);
    const rule = engine.proxy.next("TransactWriteItems", "strip-token");
    const act = { by: "ann", why: "the bank knows nothing of it" };
    await engine.faulty().releaseOnce(here.name, "payment", "not done", act, 0, budgetOn(here.clock));
    calls = 0;
    await here.dieAt(() => calls);
    await engine.proxy.replay(await rule.hit);
    expect(await here.once("payment")).toMatchObject({ state: "intended" });
  });
});
