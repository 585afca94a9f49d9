import { describe, expect, it } from "vitest";
import { cronfence, fixture, jobSource, projectOf } from "./command.ts";

const project = () => projectOf({ "handlers/report.ts": jobSource("report") });
const january = ["--from", "2026-01-01", "--to", "2026-02-01", "--alarms"];

describe("cronfence rehearse --alarms", () => {
  it("says that nobody is paged where every tick is delivered", async () => {
    const { code, stdout } = await cronfence(await project(), ["rehearse", "report", ...january]);
    expect(code).toBe(0);
    expect(stdout).toContain("nobody is paged");
    expect(stdout).toContain("31 ticks done");
  });

  it("says when a tick that nobody delivers pages, and when that is over", async () => {
    const args = ["rehearse", "report", ...january, "--missed", "2026-01-15T06:17Z", "--json"];
    const { code, stdout } = await cronfence(await project(), args);
    expect(code).toBe(0);
    const { pages, done } = JSON.parse(stdout);
    expect(pages).toMatchObject([{ alarm: "overdue", job: "report" }]);
    expect(pages[0].at).toBeGreaterThan(Date.parse("2026-01-15T06:17Z"));
    expect(pages[0].at).toBeLessThan(Date.parse("2026-01-15T07:00Z"));
    expect(pages[0].clearedAt).toBeGreaterThan(Date.parse("2026-01-16T06:17Z"));
    expect(done).toBe(31);
  });

  it("is what --missed is for", async () => {
    const args = ["rehearse", "report", "--from", "2026-01-01", "--to", "2026-01-02", "--missed", "2026-01-01T06:17Z"];
    const { code, stderr } = await cronfence(await project(), args);
    expect(code).not.toBe(0);
    expect(stderr).toContain("--missed is for --alarms");
  });
});

describe("cronfence check", () => {
  it("counts the metrics and alarms that each job adds to the bill", async () => {
    const { stdout } = await cronfence(fixture("good"), ["check", "--json"]);
    const { costs, jobs } = JSON.parse(stdout);
    expect(costs).toHaveLength(jobs);
    for (const cost of costs) expect(cost.alarms).toContain("failures");
  });
});
