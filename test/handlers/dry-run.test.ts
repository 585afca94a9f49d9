/** A dry run of any handler's job leaves the database as it was, byte for byte. */
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { type Job, runJob } from "cronfence";
import { createTable, dumpTable, settableClock } from "cronfence/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { loadJobModules } from "../../src/local/job-modules.ts";
import { putAll } from "../../src/local/put-all.ts";
import { budgetOn, controlTable, silentLog, useEngine } from "../fixture.ts";
import { stubAws } from "./local-aws.ts";

const engine = useEngine();
// At the end of a day on which every job has been due.
const now = Date.parse("2026-03-02T23:59:00Z");
const clock = settableClock(now);
const modules = await loadJobModules(fileURLToPath(new URL("../../handlers", import.meta.url)));
const tables = modules.flatMap(({ local }) => local.tables);

beforeAll(async () => {
  stubAws({ AWS_ENDPOINT_URL_DYNAMODB: engine.endpoint, CRONFENCE_TABLE: controlTable });
  for (const table of tables) await createTable(engine.client, table);
  for (const { job, local } of modules) {
    for (const [table, items] of Object.entries(local.seed?.(now - 1_800_000) ?? {}))
      await putAll(engine.client, table, items);
    await engine.store.create(job.name, now - 86_400_000, budgetOn(clock));
  }
});
afterAll(() => {
  vi.unstubAllEnvs();
});

const dumpAll = async (...more: string[]) => {
  const dump: Record<string, unknown> = {};
  for (const name of [...tables.map(({ name }) => name), ...more]) dump[name] = await dumpTable(engine.client, name);
  return dump;
};
const run = (job: Job, dryRun: boolean) => {
  const tick = [...(job.schedule?.between(now - 86_400_000, now) ?? [])].at(-1) as number;
  const trigger = { kind: "schedule", tick, ...(dryRun ? { dryRun } : {}) } as const;
  return runJob(job, trigger, { store: engine.store, clock, log: silentLog });
};
const marks = async ({ name }: Job) => {
  const { watermark, tick, tickPart } = (await engine.store.read(name, budgetOn(clock))) ?? {};
  return { watermark, tick, tickPart };
};

it.each(["daily-report", "expire-carts", "purge-sessions"])("%s has something to write", async (name) => {
  const job = modules.find((module) => module.job.name === name)?.job as Job;
  expect((await run(job, true)).wouldWrite).toBeGreaterThan(0);
});

describe.each(modules.map(({ job }) => ({ name: job.name, job })))("$name", ({ job }) => {
  it("changes nothing at all where one run is asked to be dry, not even the control table", async () => {
    const before = await dumpAll(controlTable);
    expect(await run(job, true)).toMatchObject({ outcome: "dry_run", commits: expect.any(Number) });
    expect(await dumpAll(controlTable)).toEqual(before);
  });

  it("changes nobody's table, no watermark and no tick where the job is defined to be dry; the run is recorded", async () => {
    const before = [await dumpAll(), await marks(job)];
    const report = await run({ ...job, dryRun: true }, false);
    expect(report).toMatchObject({ outcome: "dry_run" });
    expect([await dumpAll(), await marks(job)]).toEqual(before);
    expect((await engine.store.runs(job.name, { limit: 1 }, budgetOn(clock))).runs).toMatchObject([
      { id: report.run, outcome: "dry_run" },
    ]);
  });

  it("would write what a real run then writes, and the next dry run finds that done", async () => {
    const dry = await run(job, true);
    const before = await dumpAll();
    const real = await run(job, false);
    expect(real).toMatchObject({ outcome: "succeeded", items: dry.items });
    expect(!isDeepStrictEqual(await dumpAll(), before)).toBe((dry.wouldWrite ?? 0) > 0);
    const after = await dumpAll(controlTable);
    await run(job, true);
    expect(await dumpAll(controlTable)).toEqual(after);
  });
});
