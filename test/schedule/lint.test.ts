import { describe, expect, it } from "vitest";
import { calendar, cron, lintSchedule, rate, withCalendar } from "../../src/schedule/index.ts";

const from = Date.parse("2026-01-01T00:00:00Z");
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const zone = "America/New_York";

describe("lint", () => {
  it("finds nothing wrong with an ordinary schedule", () => {
    const schedule = cron("7 4 * * *", { zone });
    expect(lintSchedule({ schedule, from, timeoutMs: 15 * minuteMs, name: "job" })).toEqual({
      errors: [],
      warnings: [],
    });
    expect(lintSchedule({ schedule: rate("1 hour"), from, timeoutMs: 59 * minuteMs })).toEqual({
      errors: [],
      warnings: [],
    });
  });

  it("refuses a timeout that isn't shorter than the shortest interval", () => {
    const schedule = cron("*/5 * * * *");
    const { errors } = lintSchedule({ schedule, from, timeoutMs: 5 * minuteMs, name: "expire-carts" });
    expect(errors).toEqual([
      "expire-carts: a timeout of 5m must be shorter than the shortest interval between ticks, 5m",
    ]);
    expect(lintSchedule({ schedule, from, timeoutMs: 5 * minuteMs - 1 }).errors).toEqual([]);
    expect(lintSchedule({ schedule, from }).errors).toEqual([]);
  });

  it("counts the days with clock changes", () => {
    const schedule = cron("30 2,4 * * *", { zone });
    const timeoutMs = 1.75 * hourMs;
    expect(lintSchedule({ schedule, from, timeoutMs }).errors.join()).toMatch(/1h 45m must be shorter.*, 1h 30m/);
    expect(lintSchedule({ schedule: cron("30 2,4 * * *"), from, timeoutMs }).errors).toEqual([]);
  });

  it("refuses a schedule that never fires again, its calendar counted in", () => {
    const past = cron("cron(7 9 1 1 ? 2020)");
    expect(lintSchedule({ schedule: past, from }).errors.join()).toMatch(/never fires after 2026-01-01/);
    const excepted = withCalendar(cron("cron(7 9 25 12 ? 2026)"), calendar(["2026-12-25"]));
    expect(lintSchedule({ schedule: excepted, from }).errors).toHaveLength(1);
    expect(lintSchedule({ schedule: cron("cron(7 9 25 12 ? 2026)"), from }).errors).toEqual([]);
  });

  it("warns of minute 0 without jitter or exact", () => {
    const schedule = cron("0 4 * * *");
    expect(lintSchedule({ schedule, from }).warnings.join()).toMatch(/starts at minute 0/);
    expect(lintSchedule({ schedule, from, jitterMs: 1 }).warnings).toEqual([]);
    expect(lintSchedule({ schedule, from, exact: true }).warnings).toEqual([]);
    expect(lintSchedule({ schedule: cron("*/15 4 * * *"), from }).warnings).toEqual([]);
  });

  it("warns of a time of day that clocks skip or repeat, and says what will happen", () => {
    const warning = (...made: Parameters<typeof cron>) =>
      lintSchedule({ schedule: cron(...made), from }).warnings.join();
    expect(warning("30 2 * * *", { zone })).toMatch(
      /02:30 in America\/New_York doesn't exist on 2026-03-08: it runs at the first instant after/,
    );
    expect(warning("30 2 * * *", { zone, gap: "skip" })).toMatch(/it is skipped/);
    expect(warning("30 1 * * *", { zone })).toMatch(
      /01:30 in America\/New_York occurs twice on 2026-11-01: it runs the first time only/,
    );
    expect(warning("30 1 * * *", { zone, overlap: "both" })).toMatch(/it runs both times/);
    expect(warning("*/5 2 * * *", { zone })).toMatch(/it is skipped/);
    expect(warning("30 2 * * *", { zone: "Asia/Tokyo" })).toBe("");
    expect(warning("30 * * * *", { zone })).toBe("");
    expect(warning("30 2 * 6 *", { zone })).toBe("");
  });

  it("warns of a zone for a host that runs in UTC", () => {
    const targets = ["eventbridge", "vercel", "cloudflare"];
    expect(lintSchedule({ schedule: cron("7 9 * * *", { zone }), from, targets }).warnings).toEqual([
      "vercel runs in UTC, so the zone America/New_York has no effect there",
      "cloudflare runs in UTC, so the zone America/New_York has no effect there",
    ]);
    expect(lintSchedule({ schedule: cron("7 9 * * *"), from, targets }).warnings).toEqual([]);
  });
});
