/** Whatever is on record, the command shows it in its place on a terminal, and says no more than it means to. */
import { defineJob, dynamoStore, type Job, runJob } from "cronfence";
import { fromAsyncIterable } from "cronfence/sources";
import { settableClock } from "cronfence/testing";
import { describe, expect, it } from "vitest";
import { explained } from "../../src/cli/explain-error.ts";
import { cleaned } from "../../src/cli/paint.ts";
import { reported } from "../../src/cli/run-words.ts";
import { cronfence } from "../cli/command.ts";
import { environment } from "../cli/operated.ts";
import { budgetOn, controlTable, freshName, silentLog, useEngine } from "../fixture.ts";
import { hostileTexts } from "./hostile.ts";

const engine = useEngine("results");
const clock = settableClock("2026-01-01T00:00:00Z");
const forged = "\r\nforged\u001b[2J\u001b]0;x\u0007\u009b31m\u2028\u202e";

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const raw = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/;

/** A job whose items, error and pause all name what is hostile. */
const hostileJob = async (): Promise<{ name: string; run: string }> => {
  const name = freshName();
  const store = dynamoStore({ client: engine.client, table: controlTable });
  const texts = [...hostileTexts.filter((text) => text !== ""), `key${forged}`].sort();
  const job = defineJob({
    name,
    timeout: "1m",
    onItemError: "park",
    maxAttempts: 1,
    maxParked: texts.length,
    source: fromAsyncIterable<string>({ name: "hostile", items: () => texts, cursor: (text) => text }),
    process: (text: string) => {
      throw new Error(`no: ${text}`);
    },
  }) as Job;
  const deps = { store, clock, log: silentLog };
  await runJob(job, { kind: "manual" }, deps);
  const failing = defineJob({
    name,
    timeout: "1m",
    run: () => {
      throw new Error(`failed${forged}`);
    },
  });
  const { run } = await runJob(failing as Job, { kind: "manual" }, { ...deps, version: `v${forged}` });
  await store.pause(name, { by: `ann${forged}`, why: `because${forged}`, at: clock.now() }, budgetOn(clock));
  return { name, run: run as string };
};

describe("what the command prints", () => {
  it("holds no control character and no line of its own from what is on record", async () => {
    const { name, run } = await hostileJob();
    const env = environment(engine.endpoint);
    const [parked, json, show, runs, missing] = await Promise.all([
      cronfence("/", ["parked", name], env),
      cronfence("/", ["parked", name, "--json"], env),
      cronfence("/", ["show", run, "--job", name], env),
      cronfence("/", ["runs", name], env),
      cronfence("/", ["show", "none", "--job", `x${forged}`], env),
    ]);
    for (const { stdout, stderr } of [parked, json, show, runs, missing]) {
      expect(stdout + stderr).not.toMatch(raw);
      expect(stdout + stderr).not.toMatch(/^forged/m);
    }
    expect([parked, json, show, runs, missing].map(({ code }) => code)).toEqual([0, 0, 0, 0, 1]);
    expect(parked.stdout).toContain("key\\u000d\\u000aforged");
    expect(show.stdout).toContain("failed\\u000d\\u000aforged");
    expect(show.stdout).toMatch(/^version +v\\u000d\\u000aforged/m);
    expect(JSON.parse(json.stdout).items.map(({ key }: { key: string }) => key)).toContain(`key${forged}`);
  });

  it("keeps a hostile error within the sentence that tells of it", () => {
    const around = { endpoint: undefined, region: undefined, profile: undefined, table: "jobs" };
    expect(explained(new Error(`a${forged}`), around)).toMatch(/^a forged[^\n]*$/);
    const report = { job: "a", run: "r", outcome: "failed", items: 0, commits: 0, durationMs: 1 } as const;
    const said = reported({ ...report, error: { name: "Error", message: forged }, backlog: forged } as never);
    expect(said).not.toMatch(raw);
    expect(said.split("\n")).toHaveLength(2);
  });

  it("keeps line breaks and colours of the command's own, and nothing else", () => {
    expect(cleaned("a\n\u001b[32mok\u001b[39m")).toBe("a\n\u001b[32mok\u001b[39m");
    expect(cleaned("\u001b[8mhidden\u001b[2J\r\t\u009b")).toBe("\\u001b[8mhidden\\u001b[2J\\u000d\\u0009\\u009b");
  });
});
