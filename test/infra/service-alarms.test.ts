/** Which alarms a service has. */
import { defineJob } from "cronfence";
import { watchdog } from "cronfence/watchdog";
import { describe, expect, it } from "vitest";
import { serviceAlarmResources } from "../../infra/service-alarms.ts";
import { deployed, expireCarts, healer, sampleService, settings } from "./sample-service.ts";

describe("A service's alarms", () => {
  const alarms = serviceAlarmResources(sampleService);
  const names = Object.values(alarms).map(({ Properties }) => Properties.AlarmName);

  it("are each job's, the watchdog's and the dead letters', but none of a job that wants none", () => {
    expect(names.sort()).toEqual([
      "shop-prod-daily_report-failures",
      "shop-prod-daily_report-overdue",
      "shop-prod-dead-letters",
      "shop-prod-expire-carts-capped",
      "shop-prod-expire-carts-failures",
      "shop-prod-expire-carts-overdue",
      "shop-prod-sweep-capped",
      "shop-prod-sweep-failures",
      "shop-prod-sweep-overdue",
      "shop-prod-watchdog-absent",
    ]);
  });

  it("say what to do first, and page the topic when they begin and when they end", () => {
    for (const { Properties } of Object.values(alarms)) {
      expect(Properties.AlarmDescription).toContain("First: ");
      expect(Properties.AlarmActions).toEqual([{ Ref: "CronfenceAlarmTopic" }]);
      expect(Properties.OKActions).toEqual([{ Ref: "CronfenceAlarmTopic" }]);
    }
  });

  it("stand on the metrics that the watchdog sends, as the service that it reports for", () => {
    const dimensionOf = (dog: typeof healer) => {
      const found = serviceAlarmResources({ jobs: [deployed(expireCarts), deployed(dog)], settings });
      return ["JobexpireDashcartsOverdueAlarm", "JobwatchdogAbsentAlarm"].map(
        (id) => found[id]?.Properties.Dimensions[0]?.Value,
      );
    };
    expect(dimensionOf(healer)).toEqual(["shop-prod", "shop-prod"]);
    expect(dimensionOf(watchdog({ jobs: [expireCarts], service: "shop" }))).toEqual(["shop", "shop"]);
  });

  it("follow how often the watchdog looks", () => {
    const often = watchdog({ jobs: [], every: "1m" });
    const { JobwatchdogAbsentAlarm } = serviceAlarmResources({ jobs: [deployed(often)], settings });
    expect(JobwatchdogAbsentAlarm?.Properties.EvaluationPeriods).toBe(4);
    expect(alarms.JobwatchdogAbsentAlarm?.Properties.EvaluationPeriods).toBe(12);
  });

  it("are only the dead letters' where no watchdog is, since the others could never go off", () => {
    const alone = serviceAlarmResources({
      jobs: [deployed(defineJob({ name: "a", timeout: "1m", run: () => {} }))],
      settings,
    });
    expect(Object.keys(alone)).toEqual(["deadDashlettersDeadLettersAlarm"]);
  });
});
