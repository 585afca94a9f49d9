/** A run that goes on longer than its lease keeps it, whatever becomes of its commits. */
import { cron, defineJob, type Run, runJob } from "cronfence";
import { settableClock } from "cronfence/testing";
import { expect, it } from "vitest";
import { budgetOn, freshName, silentLog, useEngine } from "../fixture.ts";

const engine = useEngine("rows");
const tick = Date.parse("2026-03-01T12:00:00Z");
const ttlMs = 30_000;

const insert = (id: string) => ({
  Put: { TableName: "rows", Item: { id }, ConditionExpression: "attribute_not_exists(id)" },
});

/** How long the lease lasts yet when the run has made commits for two minutes, one each `everyMs`. */
const leaseLeftAfter = async (
  everyMs: number,
  commit: (run: Run) => Promise<unknown>,
  options: { dryRun?: boolean } = {},
): Promise<number> => {
  const clock = settableClock(tick);
  const name = freshName();
  let leftMs = Number.NaN;
  const job = defineJob({
    name,
    schedule: cron("0 * * * *"),
    timeout: "10m",
    ttl: ttlMs,
    ...options,
    run: async (run) => {
      await run.commit([insert(name)]);
      for (let at = 0; at < 120_000; at += everyMs) {
        clock.advance(everyMs);
        // Behind a renewal that came due: both take turns.
        await commit(run);
      }
      const state = await engine.store.read(name, budgetOn(clock));
      leftMs = (state?.leaseUntil ?? 0) - clock.now();
    },
  });
  const report = await runJob(job, { kind: "schedule", tick }, { store: engine.store, clock, log: silentLog });
  expect(report.outcome).toBe(options.dryRun ? "dry_run" : "succeeded");
  return leftMs;
};

it("is renewed by its commits", async () => {
  expect(await leaseLeftAfter(5_000, (run) => run.commit([]))).toBe(ttlMs);
});

it("is renewed while all that the run commits is rejected, and so renews nothing", async () => {
  const rejected = (run: Run) =>
    expect(run.commit([insert(run.job)])).rejects.toMatchObject({ code: "WRITE_REJECTED" });
  expect(await leaseLeftAfter(5_000, rejected)).toBeGreaterThanOrEqual(ttlMs / 2);
});

it("is renewed in a dry run, whose commits aren't sent", async () => {
  expect(await leaseLeftAfter(5_000, (run) => run.commit([]), { dryRun: true })).toBeGreaterThanOrEqual(ttlMs / 2);
});
