import { describe, expect, it } from "vitest";
import { InvalidScheduleError } from "../../src/errors.ts";
import { cron, rate, type Schedule } from "../../src/schedule/index.ts";
import dialects from "./dialect-vectors.json" with { type: "json" };

const refusal = (make: () => unknown): InvalidScheduleError => {
  try {
    make();
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidScheduleError);
    return error as InvalidScheduleError;
  }
  throw new Error("wasn't refused");
};

/** Each with the piece that the error must point at (its first character, or the end) and what it must say. */
const refused: ReadonlyArray<readonly [expression: string, at: string | number, says: RegExp]> = [
  ["", 0, /0 fields.* five/],
  ["0 9 * *", 7, /4 fields.* five: minute hour/],
  ["0 0 9 * * *", 0, /seconds are not supported/],
  ["0 9 * * * 2026 7 8", "2026", /8 fields/],
  ["@daily", 0, /write the five fields/],
  ["60 9 * * *", "60", /minute: 60 is outside 0-59/],
  ["0 24 * * *", "24", /hour: 24 is outside 0-23/],
  ["0 9 0 * *", "0 *", /day-of-month: 0 is outside 1-31/],
  ["0 9 1 13 *", "13", /month: 13 is outside 1-12/],
  ["0 9 * * 8", "8", /day-of-week: 8 is outside 0-7/],
  ["0 22-2 * * *", "22-2", /hour: reversed range 22-2; write 22-23,0-2/],
  ["0 9 * * SAT-TUE", "SAT-TUE", /write SAT,SUN-TUE/],
  ["0 9 * NOV-FEB *", "NOV-FEB", /write NOV-DEC,JAN-FEB/],
  ["0 9 * * 7-2", "7-2", /write SUN-2/],
  ["0 9 5- * *", " * *", /a range is written as from-to/],
  ["0 9 -5 * *", "-5", /a range is written as from-to/],
  ["0 9 1-2-3 * *", "-3", /isn't a range/],
  ["0 1,,2 * * *", ",2", /a value is missing/],
  ["*/0 * * * *", "0", /never moves on/],
  ["*/ * * * *", " * * * *", /a step is missing/],
  ["*/90 * * * *", "90", /write rate\(90 minutes\)/],
  ["*/2/3 * * * *", "/3", /more than one \//],
  ["0 9 ? * MON", "?", /write \*/],
  ["H 9 * * *", "H", /"H" isn't a number/],
  ["0 9 * * MONDAY", "MONDAY", /SUN, MON, TUE/],
  ["0 9 * FOO *", "FOO", /JAN, FEB, MAR/],
  ["0 9 * * L", "L", /write 6 for Saturday or 5L/],
  ["0 9 L-3 * *", "L-3", /isn't documented by AWS/],
  ["0 9 15,LW * *", "LW", /must stand alone/],
  ["0 9 * * MON#6", "6", /1 to 5/],
  ["0 9 32W * *", "32W", /32 is outside 1-31/],
  ["0 0 30 2 *", "30", /never fires: no date matches "30 2 \*"/],
  ["0 0 31 2,4,6,9,11 *", "31", /never fires/],
  ["0 0 30W 2 *", "30W", /never fires/],
  ["cron(0 0 31W 2,4-4 ? *)", "31W", /never fires/],
  ["0 0 */31 * MON#2", "*/31", /never fires/],
  ["cron(0 9 * * MON *)", "MON", /exactly one of day-of-month and day-of-week must be \?/],
  ["cron(0 9 ? * ? *)", "? *)", /exactly one of/],
  ["cron(0 9 ? * 0 *)", "0 *)", /day-of-week: 0 is outside 1-7/],
  ["cron(0 9 ? * 8 *)", "8", /day-of-week: 8 is outside 1-7/],
  ["cron(0 9 ? * MON#1,WED#1 *)", "MON#1", /must stand alone/],
  ["cron(0 9 ? * WED,MON#1 *)", "MON#1", /must stand alone/],
  ["cron(0 9 L-3 * ? *)", "L-3", /isn't documented by AWS/],
  ["cron(0 9 1 1 ? 1969)", "1969", /year: 1969 is outside 1970-2199/],
  ["cron(0 9 1 1 ? 2030-2027)", "2030-2027", /reversed range/],
  ["cron(0 9 29 2 ? 2026-2027)", "29", /never fires/],
  ["cron(? 9 * * ? *)", "? 9", /only stand alone in a day field/],
  ["cron(0 9 ? * MON)", ")", /5 fields.* six/],
  ["cron(0 9 ? * MON *", 18, /closing \) is missing/],
  ["at(2026-01-01T00:00:00)", 0, /single moment/],
  ["every(5 minutes)", 0, /every\(…\) isn't known/],
  ["rate(1 hours)", "hours", /write 1 hour/],
  ["rate(5 minute)", "minute", /write 5 minutes/],
  ["rate(0 minutes)", "0", /whole number of 1 or more/],
  ["rate(1.5 hours)", "1.5", /whole number of 1 or more/],
  ["rate(30 seconds)", "seconds", /minutes, hours or days/],
  ["rate(5 minutes", 14, /closing \) is missing/],
];

describe("what can't be read", () => {
  for (const [expression, at, says] of refused) {
    it(`${JSON.stringify(expression)} is refused where it is wrong`, () => {
      const error = refusal(() => cron(expression));
      expect(error.message).toMatch(says);
      expect(error.expression).toBe(expression);
      expect(error.position).toBe(typeof at === "number" ? at : expression.indexOf(at));
    });
  }

  const meanings: Readonly<Record<string, RegExp>> = {
    REVERSED: /reversed range/,
    FIELDS: /seconds are not supported/,
    SYNTAX: /\? isn't cron/,
    QUESTION: /must be \?/,
    RANGE: /is outside 1-7/,
    RATE_PLURAL: /write 1 hour/,
  };
  for (const row of dialects.rows) {
    it(`${row.e} is ${row.parse ? "refused" : "read"}, as the golden vectors have it`, () => {
      if (!row.parse) return expect(cron(row.e, { zone: row.z }).source).toBe(row.e);
      const [, reason = ""] = /^REFUSE (\w+)/.exec(row.parse) ?? [];
      expect(refusal(() => cron(row.e, { zone: row.z })).message).toMatch(meanings[reason]!);
    });
  }

  it("a bare rate is refused as one in parentheses is", () => {
    expect(refusal(() => rate("5 minute")).position).toBe(2);
    expect(refusal(() => rate("5 minutes)")).message).toMatch(/no rate\(/);
    expect(refusal(() => rate("*/5 * * * *")).message).toMatch(/written as rate\(5 minutes\)/);
  });
});

describe("options", () => {
  it("an unknown zone is refused with the nearest known one", () => {
    expect(() => cron("0 9 * * *", { zone: "Europe/Berln" })).toThrow(/did you mean "Europe\/Berlin"/);
    expect(() => cron("0 9 * * *", { zone: "berlin" })).toThrow(/did you mean "Europe\/Berlin"/);
    expect(() => cron("0 9 * * *", { zone: "New York" })).toThrow(/did you mean "America\/New_York"/);
    expect(() => cron("0 9 * * *", { zone: "+05:30" })).toThrow(/isn't a known time zone; use a name such as/);
    expect(() => cron("0 9 * * *", { zone: "" })).toThrow(/isn't a known time zone/);
  });

  it("a zone is known by one name, however it is written", () => {
    const zoneOf = (zone: string) => cron("0 9 * * *", { zone }).zone;
    expect(zoneOf("america/new_york")).toBe("America/New_York");
    expect(zoneOf("US/Eastern")).toBe("America/New_York");
    expect(zoneOf("Asia/Calcutta")).toBe("Asia/Kolkata");
    expect(zoneOf("Asia/Kolkata")).toBe("Asia/Kolkata");
    expect(["Etc/UTC", "GMT", "Zulu", "utc"].map(zoneOf)).toEqual(["UTC", "UTC", "UTC", "UTC"]);
    expect(cron("0 9 * * *").zone).toBe("UTC");
  });

  it("unknown options and values are refused, all at once", () => {
    const options = { zones: "UTC", gap: "before" } as object;
    expect(() => cron("0 9 * * *", options)).toThrow(
      /unknown option "zones"; did you mean "zone"\?; gap: "before" isn't one of "after", "skip"/,
    );
    expect(() => rate("5 minutes", { anchor: 1.5 })).toThrow(/anchor: 1.5/);
  });
});

describe("what is read", () => {
  const ticks = (schedule: Schedule, from: string, count: number) => {
    const found: string[] = [];
    for (
      let tick = schedule.next(Date.parse(from));
      tick !== undefined && found.length < count;
      tick = schedule.next(tick)
    ) {
      found.push(new Date(tick).toISOString().slice(0, 16));
    }
    return found;
  };

  it("day fields are alternatives, unless one starts with a star", () => {
    expect(ticks(cron("0 0 13 * 5"), "2026-03-01", 4)).toEqual([
      "2026-03-06T00:00",
      "2026-03-13T00:00",
      "2026-03-20T00:00",
      "2026-03-27T00:00",
    ]);
    expect(ticks(cron("0 0 */2 * MON"), "2026-03-01", 3)).toEqual([
      "2026-03-09T00:00",
      "2026-03-23T00:00",
      "2026-04-13T00:00",
    ]);
    expect(ticks(cron("0 0 1-31 * MON"), "2026-03-01", 2)).toEqual(["2026-03-02T00:00", "2026-03-03T00:00"]);
  });

  it("five fields take L, W and # with Sunday as 0, EventBridge with Sunday as 1", () => {
    expect(ticks(cron("0 9 L * *"), "2028-02-01", 1)).toEqual(["2028-02-29T09:00"]);
    expect(ticks(cron("0 9 15W,L * *"), "2026-08-01", 2).map((tick) => tick.slice(8, 10))).toEqual(["14", "31"]);
    expect(ticks(cron("0 9 * * 5L"), "2026-02-01", 1)).toEqual(["2026-02-27T09:00"]);
    expect(ticks(cron("cron(0 9 ? * 6L *)"), "2026-02-01", 1)).toEqual(["2026-02-27T09:00"]);
    expect(ticks(cron("0 9 * * MON#1,MON#3"), "2026-02-01", 2)).toEqual(["2026-02-02T09:00", "2026-02-16T09:00"]);
    expect(ticks(cron("cron(0 9 ? * L *)"), "2026-02-01", 1)).toEqual(["2026-02-07T09:00"]);
  });

  it("EventBridge's ranges may go round the end", () => {
    expect(ticks(cron("cron(0 22-1 ? * SAT-SUN *)"), "2026-02-06T12:00", 4)).toEqual([
      "2026-02-07T00:00",
      "2026-02-07T01:00",
      "2026-02-07T22:00",
      "2026-02-07T23:00",
    ]);
  });

  it("rates are counted from the anchor, both ways, through every clock change", () => {
    const anchor = Date.parse("2026-03-01T00:07:00Z");
    const daily = rate("1 day", { anchor });
    expect(ticks(daily, "2026-03-28T12:00", 2)).toEqual(["2026-03-29T00:07", "2026-03-30T00:07"]);
    expect(daily.next(anchor)).toBe(anchor + 86_400_000);
    expect(daily.previous(anchor)).toBe(anchor - 86_400_000);
    expect([...rate("rate(7 minutes)").between(0, 14 * 60_000)]).toEqual([7 * 60_000, 14 * 60_000]);
    expect(rate("rate(7 minutes)").shortestInterval(0)).toBe(7 * 60_000);
    expect(rate("5 minutes").source).toBe("5 minutes");
    expect(cron("rate(5 minutes)", { zone: "Europe/Berlin" }).zone).toBe("UTC");
  });
});

describe("what isn't an expression or options", () => {
  it.each([undefined, null, 5, {}, []])("is refused as such: %j", (expression) => {
    expect(() => cron(expression as never)).toThrow(/an expression is a text, not /);
    expect(() => rate(expression as never)).toThrow(/an expression is a text, not /);
  });

  it("is refused as such: a zone in place of the options, or one that isn't a text", () => {
    expect(() => cron("0 0 * * *", "Europe/Berlin" as never)).toThrow(
      'options must be an object with zone, gap, overlap, not "Europe/Berlin"',
    );
    expect(() => cron("0 0 * * *", { zone: 5 as never })).toThrow("zone: 5 isn't a time zone's name");
  });
});
