import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cron, type Schedule } from "../../src/schedule/index.ts";
import { dayMs } from "./oracle.ts";

const minute = (tick: number | undefined) =>
  tick === undefined ? undefined : `${new Date(tick).toISOString().slice(0, 16)}Z`;
const between = (schedule: Schedule, after: string, through: string) =>
  [...schedule.between(Date.parse(after), Date.parse(through))].map(minute);

describe("cases from public trackers", () => {
  it("case 16: a job inside the spring gap runs exactly once", () => {
    const schedule = cron("30 2 * * *", { zone: "America/New_York" });
    expect(between(schedule, "2025-03-09T05:00Z", "2025-03-10T05:00Z")).toEqual(["2025-03-09T07:00Z"]);
  });

  it("case 17: a job in the repeated hour runs once, an hourly one in every real hour", () => {
    const zone = "America/New_York";
    expect(between(cron("30 1 * * *", { zone }), "2025-11-02T04:00Z", "2025-11-03T04:00Z")).toEqual([
      "2025-11-02T05:30Z",
    ]);
    const hourly = between(cron("0 * * * *", { zone }), "2025-11-02T03:00Z", "2025-11-02T08:00Z");
    expect(hourly).toEqual([
      "2025-11-02T04:00Z",
      "2025-11-02T05:00Z",
      "2025-11-02T06:00Z",
      "2025-11-02T07:00Z",
      "2025-11-02T08:00Z",
    ]);
  });

  it("case 18: a midnight that doesn't exist is its day's first instant", () => {
    const schedule = cron("0 0 * * *", { zone: "America/Sao_Paulo" });
    expect(minute(schedule.next(Date.parse("2018-11-03T12:00Z")))).toBe("2018-11-04T03:00Z");
    expect(minute(schedule.previous(Date.parse("2018-11-04T12:00Z")))).toBe("2018-11-04T03:00Z");
  });

  it("case 19: ticks are counted from the last one done, not from now", () => {
    const schedule = cron("*/5 * * * *");
    expect(between(schedule, "2026-01-01T12:00Z", "2026-01-01T12:10Z")).toEqual([
      "2026-01-01T12:05Z",
      "2026-01-01T12:10Z",
    ]);
  });

  it("a gap that goes through midnight still has its one tick", () => {
    const schedule = cron("30 23 * * *", { zone: "America/Nuuk" });
    expect(between(schedule, "2024-03-30T12:00Z", "2024-03-31T12:00Z")).toEqual(["2024-03-31T01:00Z"]);
  });
});

describe("a schedule", () => {
  it("is strict about the instant it is asked from", () => {
    const schedule = cron("0 9 * * *");
    const nine = Date.parse("2026-01-01T09:00Z");
    expect(schedule.next(nine)).toBe(nine + dayMs);
    expect(schedule.next(nine - 1)).toBe(nine);
    expect(schedule.previous(nine)).toBe(nine - dayMs);
    expect(schedule.previous(nine + 1)).toBe(nine);
    expect([...schedule.between(nine, nine + dayMs)]).toEqual([nine + dayMs]);
    expect([...schedule.between(nine, nine)]).toEqual([]);
  });

  it("has an end where its years do, and none before 1970", () => {
    const schedule = cron("cron(0 9 1 1 ? 2027-2028)", { zone: "Asia/Tokyo" });
    expect(minute(schedule.next(Date.parse("2026-01-01")))).toBe("2027-01-01T00:00Z");
    expect(schedule.next(Date.parse("2028-06-01"))).toBeUndefined();
    expect(schedule.previous(Date.parse("2026-01-01"))).toBeUndefined();
    expect(minute(schedule.previous(Date.parse("2090-01-01")))).toBe("2028-01-01T00:00Z");
    expect(cron("0 9 * * *").previous(9 * 3_600_000)).toBeUndefined();
    expect(cron("* * * * *").next(Date.UTC(2200, 0, 1))).toBeUndefined();
  });

  it("takes both passes of the last repeated hour that its years allow", () => {
    const schedule = cron("cron(30 1 1 11 ? 2026)", { zone: "America/New_York", overlap: "both" });
    const ticks = ["2026-11-01T05:30Z", "2026-11-01T06:30Z"];
    expect(between(schedule, "2026-01-01", "2030-01-01")).toEqual(ticks);
    expect(minute(schedule.previous(Date.parse("2030-01-01")))).toBe(ticks[1]);
    expect(minute(schedule.previous(Date.parse(ticks[1]!)))).toBe(ticks[0]);
  });

  it("finds leap days years away, in both directions, in any zone", () => {
    fc.assert(
      fc.property(
        fc.constantFrom("UTC", "Europe/Berlin", "Pacific/Kiritimati", "Pacific/Niue"),
        fc.integer({ min: Date.UTC(1980), max: Date.UTC(2190) }),
        (zone, instant) => {
          const schedule = cron("0 12 29 2 *", { zone });
          const isLeap = (year: number) => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
          const next = new Date(schedule.next(instant)!);
          const previous = new Date(schedule.previous(instant)!);
          for (let year = previous.getUTCFullYear() + 1; year < next.getUTCFullYear(); year++)
            expect(isLeap(year)).toBe(false);
          expect([next, previous].map((date) => [isLeap(date.getUTCFullYear()), date.getUTCMonth()])).toEqual([
            [true, 1],
            [true, 1],
          ]);
          expect(next.getTime()).toBeGreaterThan(instant);
          expect(previous.getTime()).toBeLessThan(instant);
        },
      ),
    );
  });

  it("works out no more ticks than it is asked for", () => {
    const started = performance.now();
    const [first, second] = cron("* * * * *", { zone: "Europe/Berlin" }).between(Date.UTC(1990), Date.UTC(2190));
    expect(second! - first!).toBe(60_000);
    expect(performance.now() - started).toBeLessThan(1000);
  });

  it("says its shortest interval, days with clock changes included", () => {
    const from = Date.parse("2026-01-01");
    const shortest = (expression: string, zone: string, through?: number) =>
      cron(expression, { zone }).shortestInterval(from, through);
    expect(shortest("30 2 * * *", "UTC")).toBe(24 * 3_600_000);
    // Caught up at 03:00 on the day of the gap, and again at 02:30 next day.
    expect(shortest("30 2 * * *", "America/New_York")).toBe(23.5 * 3_600_000);
    expect(shortest("30 2,3 * * *", "America/New_York")).toBe(30 * 60_000);
    expect(shortest("30 */1 * * *", "Australia/Lord_Howe")).toBe(30 * 60_000);
    expect(shortest("0 0,23 * * MON", "UTC")).toBe(23 * 3_600_000);
    expect(shortest("0 9 1 1 *", "UTC", Date.parse("2026-12-31"))).toBeUndefined();
  });
});
