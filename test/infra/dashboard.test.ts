/** A service's dashboard. */
import { describe, expect, it } from "vitest";
import { dashboardResources } from "../../infra/dashboard.ts";
import { serviceAlarmResources } from "../../infra/service-alarms.ts";
import type { Template } from "./cfn-template.ts";
import { resolved } from "./resolved.ts";
import { deployed, rebuild, sampleService, settings } from "./sample-service.ts";

const bodyOf = (service = sampleService): Template => {
  const { CronfenceDashboard } = dashboardResources(service, serviceAlarmResources(service));
  return JSON.parse(resolved(CronfenceDashboard?.Properties.DashboardBody, { Resources: {} }));
};
const titled = (body: Template, title: string) =>
  body.widgets.find(({ properties }: Template) => properties.title.startsWith(title))?.properties;

describe("A dashboard", () => {
  const body = bodyOf();

  it("shows what is in alarm, late, failing, slow, worked off and given up, without one widget over another", () => {
    expect(body.widgets.map(({ properties }: Template) => properties.title)).toEqual([
      "Alarms",
      "Overdue (seconds)",
      "Failures in a row",
      "Duration (milliseconds)",
      "Errors",
      "Items",
      "Dead letters",
    ]);
    const cells = body.widgets.flatMap(({ x, y, width, height }: Template) =>
      Array.from({ length: width * height }, (_, at) => `${x + (at % width)},${y + Math.floor(at / width)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    for (const { x, width } of body.widgets) expect(x + width).toBeLessThanOrEqual(24);
  });

  it("shows of each job what there is: lateness with a schedule, items where a run sends metrics", () => {
    const jobsIn = (title: string) => titled(body, title).metrics.map((metric: Template) => metric.at(-1).label);
    expect(jobsIn("Overdue")).toEqual(["expire-carts", "daily_report", "sweep"]);
    expect(jobsIn("Failures")).toEqual(["expire-carts", "daily_report", "rebuild", "sweep"]);
    expect(jobsIn("Duration")).toEqual(["expire-carts", "daily_report", "rebuild", "sweep", "watchdog"]);
    expect(titled(body, "Items").metrics).toEqual([
      ["cronfence", "Items", "service", "shop-prod", "job", "daily_report", { label: "daily_report" }],
    ]);
    const emf = { ...sampleService, settings: { ...settings, environment: { CRONFENCE_METRICS: "emf" } } };
    expect(titled(bodyOf(emf), "Items").metrics).toHaveLength(5);
  });

  it("leaves out what a service has none of, names the Region, and isn't made where it isn't wanted", () => {
    const small = bodyOf({ jobs: [deployed(rebuild)], settings });
    expect(titled(small, "Overdue")).toBeUndefined();
    expect(titled(small, "Dead letters")).toMatchObject({
      region: "eu-central-1",
      metrics: [expect.arrayContaining(["shop-prod-dead-letters"])],
    });
    expect(titled(body, "Alarms").alarms).toContain(
      "arn:aws:cloudwatch:eu-central-1:123456789012:alarm:shop-prod-expire-carts-overdue",
    );
    const unwanted = { ...sampleService, settings: { ...settings, dashboard: false } };
    expect(dashboardResources(unwanted, {})).toEqual({});
  });
});
