/** The tick job in a named zone. */
import { runJob } from "cronfence";
import { createTable, dumpTable, settableClock } from "cronfence/testing";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { putAll } from "../../src/local/put-all.ts";
import { budgetOn, silentLog, useEngine } from "../fixture.ts";
import { stubAws } from "./local-aws.ts";

const engine = useEngine();
let report: typeof import("../../handlers/daily-report.ts");
beforeAll(async () => {
  stubAws({ AWS_ENDPOINT_URL_DYNAMODB: engine.endpoint });
  report = await import("../../handlers/daily-report.ts");
  for (const table of report.local.tables) await createTable(engine.client, table);
});
afterAll(() => {
  vi.unstubAllEnvs();
});

const go = (at: string, now = at) =>
  runJob(
    report.job,
    { kind: "schedule", tick: Date.parse(at) },
    { store: engine.store, clock: settableClock(now), log: silentLog },
  );
const reports = async () =>
  Object.fromEntries((await dumpTable(engine.client, "reports")).map(({ day, ...figures }) => [day, figures]));
const sale = (day: string, id: string, cents: number) => putAll(engine.client, "sales", [{ day, id, cents }]);

it("reports the day before by the wall clock in Berlin, also after the night in which it is set forward", async () => {
  await sale("2026-03-28", "a", 100);
  await sale("2026-03-28", "b", 250);
  await sale("2026-03-29", "c", 40);
  await engine.store.create("daily-report", Date.parse("2026-03-28T20:00:00Z"), budgetOn(settableClock()));
  const due = report.job.schedule?.between(Date.parse("2026-03-28T20:00:00Z"), Date.parse("2026-03-30T20:00:00Z"));
  expect([...(due ?? [])]).toEqual([Date.parse("2026-03-29T04:30:00Z"), Date.parse("2026-03-30T04:30:00Z")]);
  expect(await go("2026-03-29T04:30:00Z")).toMatchObject({ outcome: "succeeded" });
  expect(await reports()).toEqual({ "2026-03-28": { sales: 2, cents: 350, tick: "2026-03-29T04:30:00.000Z" } });
});

it("makes up for mornings that were missed, each with its own day's figures", async () => {
  await sale("2026-03-30", "d", 7);
  expect(await go("2026-04-01T04:30:00Z")).toMatchObject({ outcome: "succeeded", ticks: { count: 3 } });
  expect(await reports()).toMatchObject({
    "2026-03-29": { sales: 1, cents: 40, tick: "2026-03-30T04:30:00.000Z" },
    "2026-03-30": { sales: 1, cents: 7, tick: "2026-03-31T04:30:00.000Z" },
    "2026-03-31": { sales: 0, cents: 0, tick: "2026-04-01T04:30:00.000Z" },
  });
});

it("leaves the rest of a long outage to the next runs", async () => {
  expect(await go("2026-04-12T04:30:00Z")).toMatchObject({ outcome: "capped" });
  expect(Object.keys(await reports())).toHaveLength(4 + 7);
  expect(await go("2026-04-13T04:30:00Z")).toMatchObject({ outcome: "succeeded" });
  expect(Object.keys(await reports())).toHaveLength(4 + 12);
});

it("has no warnings, and seeds what it reports", () => {
  expect(report.job.warnings).toEqual([]);
  expect(report.local.seed(Date.parse("2026-03-01T12:00:00Z")).sales[0]?.day).toBe("2026-03-01");
});
