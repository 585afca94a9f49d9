/** What a job's definition says of its function. */
import { defineJob } from "cronfence";
import { watchdog } from "cronfence/watchdog";
import { describe, expect, it } from "vitest";
import { functionSettings } from "../../infra/service.ts";
import { dailyReport, deployed, expireCarts, sampleService, settings, sweep } from "./sample-service.ts";

const settingsOf = (job: typeof dailyReport, service = sampleService) => functionSettings(deployed(job), service);

describe("A function", () => {
  it("has the job's memory and description, and its timeout with what a run needs to end well", () => {
    expect(settingsOf(dailyReport)).toMatchObject({ MemorySize: 1_024, Timeout: 305 });
    expect(settingsOf(expireCarts)).toMatchObject({
      Description: "Carts that nobody ordered in time expire",
      MemorySize: 512,
    });
    expect(settingsOf(defineJob({ name: "a", timeout: 1_500, run: () => {} })).Timeout).toBe(7);
    expect(settingsOf(dailyReport)).not.toHaveProperty("Description");
  });

  it("may invoke itself for longer than Lambda lets others only where a backlog's chain is long", () => {
    const loopOf = (maxChain?: number) => {
      const work = { ...sweep.work, ...(maxChain === undefined ? { onBacklog: "wait" } : { maxChain }) };
      return settingsOf({ ...sweep, work } as typeof sweep).RecursiveLoop;
    };
    expect([loopOf(20), loopOf(11), loopOf(10), loopOf()]).toEqual(["Allow", "Allow", undefined, undefined]);
    expect(settingsOf(dailyReport)).not.toHaveProperty("RecursiveLoop");
  });

  it("has a role of its own, and a log group that is there before it", () => {
    expect(settingsOf(dailyReport)).toMatchObject({
      Role: { "Fn::GetAtt": ["JobdailyUnderscorereportRole", "Arn"] },
      DependsOn: ["JobdailyUnderscorereportLogGroup"],
    });
  });

  it("finds the control table, the service and the version in its environment, beside what it was given", () => {
    const environment = { STAGE: "prod", REPORTS_BUCKET: "overridden" };
    const { Environment } = settingsOf(dailyReport, { ...sampleService, settings: { ...settings, environment } });
    expect(Environment.Variables).toEqual({
      STAGE: "prod",
      REPORTS_BUCKET: "reports",
      CRONFENCE_TABLE: "shop-prod-cronfence",
      CRONFENCE_SERVICE: "shop-prod",
      CRONFENCE_VERSION: "1a2b3c4",
    });
  });

  it("of a watchdog that heals also finds the jobs' functions", () => {
    const variablesOf = (job: typeof dailyReport) => settingsOf(job).Environment.Variables;
    const healer = watchdog({ jobs: [], heal: true, start: async () => {} });
    expect(variablesOf(healer).CRONFENCE_FUNCTION_NAME).toBe("shop-prod-{job}");
    expect(variablesOf(watchdog({ jobs: [] }))).not.toHaveProperty("CRONFENCE_FUNCTION_NAME");
  });
});
