import { describe, expect, it } from "vitest";
import { calendar, cron, rate, withCalendar } from "../../src/schedule/index.ts";
import { remarkOn } from "../../src/schedule/remarks.ts";
import { explain } from "../../src/schedule/words.ts";

describe("a schedule in words", () => {
  const words: Readonly<Record<string, string>> = {
    "* * * * *": "every minute",
    "*/5 * * * *": "every 5 minutes",
    "*/7 * * * *": "at 0, 7, 14, 21, 28, 35, 42, 49 and 56 minutes past the hour",
    "5 * * * *": "at 5 minutes past the hour",
    "0 * * * *": "on the hour",
    "* 2 * * *": "every minute from 02:00 to 02:59",
    "0 */2 * * *": "on the hour of every 2nd hour",
    "15 1-23/2 * * *": "at 15 minutes past the hour of every 2nd hour from 01",
    "*/5 9-17 * * 1-5": "every 5 minutes in the hours 09 to 17, on Monday to Friday",
    "30 2 * * *": "at 02:30",
    "30 */4 * * *": "at 00:30, 04:30, 08:30, 12:30, 16:30 and 20:30",
    "0 9 * * 6,0": "at 09:00, on Saturday and Sunday",
    "0 6 13 * FRI": "at 06:00, on day 13 of the month and also on Friday",
    "0 9 */10 * MON,WED": "at 09:00, on day 1, 11, 21 and 31 of the month if it is Monday or Wednesday",
    "0 9 1-7 * *": "at 09:00, on day 1 to 7 of the month",
    "0 9 L * *": "at 09:00, on the last day of the month",
    "cron(0 9 LW * ? *)": "at 09:00, on the last weekday (Monday to Friday) of the month",
    "cron(0 9 15W * ? *)": "at 09:00, on the weekday (Monday to Friday) nearest to day 15 of the month",
    "0 9 * * 0L": "at 09:00, on the last Sunday of the month",
    "0 9 * * MON#1,MON#3": "at 09:00, on the 1st Monday of the month and the 3rd Monday of the month",
    "0 9 * JAN,jul MON": "at 09:00, on Monday, in January and July",
    "cron(0 9 1 1 ? 2027-2028)": "at 09:00, on day 1 of the month, in January, in 2027 and 2028",
  };
  for (const [expression, text] of Object.entries(words)) {
    it(`${expression} is "${text}"`, () => {
      expect(explain(cron(expression))).toBe(`${text}, UTC`);
    });
  }

  it("names its zone, and the policies that aren't the default", () => {
    const zone = "Europe/Berlin";
    expect(explain(cron("30 2 * * *", { zone }))).toBe("at 02:30, Europe/Berlin time");
    expect(explain(cron("30 2 * * *", { zone, gap: "skip", overlap: "both" }))).toBe(
      "at 02:30, Europe/Berlin time; left out on a day whose clocks skip it; both times on a day whose clocks repeat it",
    );
    expect(explain(cron("30 * * * *", { zone, gap: "skip" }))).not.toContain("left out");
  });

  it("has words for rates and calendars", () => {
    expect(explain(rate("rate(1 day)"))).toBe("every day, counted from a fixed instant");
    expect(explain(withCalendar(rate("5 minutes"), calendar([])))).toBe(
      "every 5 minutes, counted from a fixed instant, except what its calendar removes",
    );
  });
});

describe("a remark on a tick", () => {
  const zone = "America/New_York";
  const at = (text: string) => Date.parse(text);

  it("tells of the gap that a tick was caught up after", () => {
    const schedule = cron("30 2 * * *", { zone });
    expect(remarkOn(schedule, at("2026-03-08T07:00Z"))).toMatch(/go forward from 02:00 to 03:00/);
    expect(remarkOn(schedule, at("2026-03-07T07:30Z"))).toBeUndefined();
    expect(remarkOn(cron("0 * * * *", { zone }), at("2026-03-08T07:00Z"))).toBeUndefined();
    // These are due at 03:00 and 03:30 anyway.
    expect(remarkOn(cron("0 3 * * *", { zone }), at("2026-03-08T07:00Z"))).toBeUndefined();
    expect(remarkOn(cron("30 2,3 * * *", { zone }), at("2026-03-08T07:30Z"))).toBeUndefined();
  });

  it("tells which of two passes a tick is in", () => {
    const hourly = cron("0 * * * *", { zone });
    const remarks = [...hourly.between(at("2026-11-01T03:30Z"), at("2026-11-01T07:30Z"))].map(
      (tick) => remarkOn(hourly, tick)?.match(/first|second/)?.[0],
    );
    expect(remarks).toEqual([undefined, "first", "second", undefined]);
  });

  it("has nothing to say of UTC and of rates", () => {
    expect(remarkOn(cron("0 * * * *"), at("2026-11-01T06:00Z"))).toBeUndefined();
    expect(remarkOn(rate("1 hour"), at("2026-11-01T06:00Z"))).toBeUndefined();
  });
});
