/** Who answers there: probes, and events that only one version may run. */
import middy from "@middy/core";
import { defineJob, type Job } from "cronfence";
import { fencedLease, type LambdaDeps, lambdaHandler } from "cronfence/lambda";
import { settableClock } from "cronfence/testing";
import { afterEach, describe, expect, it } from "vitest";
import { budgetOn, freshName, silentLog, useEngine } from "../fixture.ts";
import { invocation } from "./invocation.ts";

const engine = useEngine();
afterEach(() => engine.proxy.reset());

/** A job as a function of its own, and as an existing middy handler. */
const functions = {
  lambdaHandler: (name: string, ran: () => void, deps: LambdaDeps) =>
    lambdaHandler(defineJob({ name, timeout: "1m", run: ran }) as Job, deps),
  fencedLease: (name: string, ran: () => void, deps: LambdaDeps) =>
    middy()
      .use(fencedLease({ job: name, ...deps }))
      .handler(async () => ran()),
};

describe.each(Object.keys(functions) as (keyof typeof functions)[])("A function by %s", (kind) => {
  const setting = (version: string | undefined) => {
    const name = freshName();
    const clock = settableClock("2026-03-01T12:00:00Z");
    let runs = 0;
    const ran = () => {
      runs += 1;
    };
    const deps = { clock, log: silentLog, store: engine.faulty(), ...(version === undefined ? {} : { version }) };
    const handler = functions[kind](name, ran, deps) as (event: unknown, context: object) => Promise<unknown>;
    return { name, clock, runs: () => runs, invoke: (event: unknown) => handler(event, invocation(clock)) };
  };

  it("answers a probe with its name and version, and touches nothing", async () => {
    const { name, invoke, runs } = setting("v7");
    expect(await invoke({ probe: true })).toEqual({ job: name, version: "v7" });
    expect(engine.proxy.requests).toEqual([]);
    expect(runs()).toBe(0);
  });

  it("answers a probe without a version where it knows none", async () => {
    const { name, invoke } = setting(undefined);
    expect(await invoke({ probe: true })).toEqual({ job: name });
  });

  it.each([
    [{ probe: false }, /probe must be true/],
    [{ probe: true, dryRun: true }, /unknown field "dryRun"/],
  ])("refuses %j: a probe that asks for more isn't one", async (event, says) => {
    const { invoke, runs } = setting("v7");
    await expect(invoke(event)).rejects.toThrow(says);
    expect([runs(), engine.proxy.requests]).toEqual([0, []]);
  });

  it("runs an event that is for its version, and the record has it", async () => {
    const { name, clock, invoke, runs } = setting("v7");
    await invoke({ version: "v7" });
    expect(runs()).toBe(1);
    const page = await engine.store.runs(name, { limit: 5 }, budgetOn(clock));
    expect(page.runs).toMatchObject([{ outcome: "succeeded", version: "v7" }]);
  });

  it.each([
    ["another version", "v6", /the event is for version "v7", and this is "v6"; nothing was run/],
    ["no version", undefined, /this is a build without one/],
  ])("refuses an event for its successor while it is %s, before it takes the lease", async (_, version, says) => {
    const { name, clock, invoke, runs } = setting(version);
    await expect(invoke({ version: "v7" })).rejects.toMatchObject({
      code: "WRONG_VERSION",
      message: expect.stringMatching(says),
    });
    expect([runs(), engine.proxy.requests]).toEqual([0, []]);
    expect(await engine.store.read(name, budgetOn(clock))).toBeUndefined();
  });
});
