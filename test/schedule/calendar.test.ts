import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Calendar, calendar, cron, rate, withCalendar } from "../../src/schedule/index.ts";
import { dayMs } from "./oracle.ts";

const minute = (tick: number | undefined) =>
  tick === undefined ? undefined : `${new Date(tick).toISOString().slice(0, 16)}Z`;
const at = (text: string) => Date.parse(text);

describe("a calendar", () => {
  it("removes dates and ranges of dates, as they are in the schedule's zone", () => {
    const schedule = withCalendar(
      cron("30 23 * * *", { zone: "America/New_York" }),
      calendar(["2026-12-25", { on: "2026-12-31..2027-01-01", reason: "new year" }]),
    );
    // 23:30 on the 24th in New York is the 25th in UTC, and is not removed.
    expect([...schedule.between(at("2026-12-24T12:00Z"), at("2026-12-28T00:00Z"))].map(minute)).toEqual([
      "2026-12-25T04:30Z",
      "2026-12-27T04:30Z",
    ]);
    expect([...schedule.removed(at("2026-12-24T12:00Z"), at("2027-01-03T00:00Z"))]).toEqual([
      { tick: at("2026-12-26T04:30Z"), reason: "2026-12-25" },
      { tick: at("2027-01-01T04:30Z"), reason: "new year" },
      { tick: at("2027-01-02T04:30Z"), reason: "new year" },
    ]);
    expect(minute(schedule.next(at("2026-12-31T05:00Z")))).toBe("2027-01-03T04:30Z");
    expect(minute(schedule.previous(at("2027-01-03T04:30Z")))).toBe("2026-12-31T04:30Z");
  });

  it("takes a tick that was caught up after midnight as of the day on which it runs", () => {
    const base = cron("30 23 * * *", { zone: "America/Nuuk" });
    expect(withCalendar(base, calendar(["2024-03-31"])).next(at("2024-03-30T23:00Z"))).toBe(at("2024-04-02T00:30Z"));
    expect(minute(withCalendar(base, calendar(["2024-03-30"])).next(at("2024-03-30T23:00Z")))).toBe(
      "2024-03-31T01:00Z",
    );
  });

  it("removes what falls into a freeze, its start included and its end not", () => {
    const freeze = { from: "2026-11-26T00:00:00-05:00", to: at("2026-11-30T05:00Z"), reason: "holiday sales" };
    const schedule = withCalendar(cron("0 * * * *"), calendar([freeze]));
    expect(minute(schedule.next(at("2026-11-26T04:00Z")))).toBe("2026-11-30T05:00Z");
    expect(minute(schedule.previous(at("2026-11-30T05:00Z")))).toBe("2026-11-26T04:00Z");
    const removed = [...schedule.removed(at("2026-11-26T04:00Z"), at("2026-11-30T05:00Z"))];
    expect(removed).toHaveLength(96);
    expect(removed[0]).toEqual({ tick: at("2026-11-26T05:00Z"), reason: "holiday sales" });
  });

  it("jumps over a long freeze instead of walking through it", () => {
    const schedule = withCalendar(
      cron("* * * * *"),
      calendar([{ from: at("2026-01-01T00:00Z"), to: at("2126-01-01T00:00Z") }]),
    );
    const started = performance.now();
    expect(minute(schedule.next(at("2026-01-01T00:00Z")))).toBe("2126-01-01T00:00Z");
    expect(minute(schedule.previous(at("2126-01-01T00:00Z")))).toBe("2025-12-31T23:59Z");
    expect(performance.now() - started).toBeLessThan(500);
  });

  it("leaves a schedule whose every tick it removes without any", () => {
    const schedule = withCalendar(cron("cron(0 9 25 12 ? 2026)"), calendar(["2026-12-25"]));
    expect(schedule.next(0)).toBeUndefined();
    expect(schedule.previous(at("2030-01-01"))).toBeUndefined();
  });

  it("applies to rates, with dates in UTC, and keeps what the schedule says of itself", () => {
    const schedule = withCalendar(rate("12 hours"), calendar(["2026-12-25"]));
    expect([...schedule.between(at("2026-12-24T00:00Z"), at("2026-12-26T00:00Z"))].map(minute)).toEqual([
      "2026-12-24T12:00Z",
      "2026-12-26T00:00Z",
    ]);
    expect([schedule.source, schedule.kind, schedule.shortestInterval(0)]).toEqual(["12 hours", "rate", dayMs / 2]);
  });

  it("can be made of others; the first reason for a day stands", () => {
    const national = calendar([{ on: "2026-12-25", reason: "Christmas" }, "2026-12-26"]);
    const all: Calendar = calendar([national, { on: "2026-12-24..2026-12-25", reason: "closed" }]);
    expect([...all.days].map(([day, reason]) => [new Date(day).toISOString().slice(0, 10), reason])).toEqual([
      ["2026-12-25", "Christmas"],
      ["2026-12-26", "2026-12-26"],
      ["2026-12-24", "closed"],
    ]);
  });

  it("names everything in it that can't be read", () => {
    const wrong = () =>
      calendar([
        "2026-02-30",
        "2026-12-27..2026-12-24",
        "25.12.2026",
        { from: "2026-12-24T18:00", to: 0 },
        { from: 5, to: 5 },
      ]);
    expect(wrong).toThrow(
      /"2026-02-30" isn't a date.*ends before it begins.*"25.12.2026" isn't a date.*isn't an instant.*is empty/,
    );
  });

  it("splits a schedule's ticks into kept and removed, whatever its exceptions, forwards and backwards", () => {
    const day = fc
      .integer({ min: 0, max: 60 })
      .map((offset) => new Date(at("2026-03-01") + offset * dayMs).toISOString().slice(0, 10));
    const freeze = fc
      .tuple(fc.integer({ min: 0, max: 60 * dayMs }), fc.integer({ min: 1, max: 20 * dayMs }))
      .map(([from, length]) => ({ from: at("2026-03-01") + from, to: at("2026-03-01") + from + length }));
    const expression = fc.constantFrom("*/17 * * * *", "30 2 * * *", "0 0 * * 1", "45 */5 * * *");
    fc.assert(
      fc.property(expression, fc.array(fc.oneof(day, freeze), { maxLength: 8 }), (source, exceptions) => {
        const base = cron(source, { zone: "Europe/Berlin" });
        const excepted = withCalendar(base, calendar(exceptions));
        const [from, to] = [at("2026-02-15"), at("2026-06-01")];
        const kept = [...excepted.between(from, to)];
        const removed = [...excepted.removed(from, to)].map(({ tick }) => tick);
        expect([...kept, ...removed].sort((a, b) => a - b)).toEqual([...base.between(from, to)]);
        const isRemoved = (tick: number) =>
          exceptions.some((each) =>
            typeof each === "string"
              ? new Intl.DateTimeFormat("sv-SE", { timeZone: "Europe/Berlin" }).format(tick) === each
              : tick >= each.from && tick < each.to,
          );
        for (const tick of kept.slice(0, 50)) expect(isRemoved(tick)).toBe(false);
        for (const tick of removed.slice(0, 50)) expect(isRemoved(tick)).toBe(true);
        const backwards: number[] = [];
        for (let tick = excepted.previous(to + 1); tick !== undefined && tick > from; tick = excepted.previous(tick))
          backwards.unshift(tick);
        expect(backwards).toEqual(kept);
      }),
      { numRuns: 60 },
    );
  });
});
