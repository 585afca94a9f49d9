/** Whatever a schedule's text holds, it is read or refused by a documented error, in bounded work. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cron, type Schedule } from "cronfence";
import { calendar, readCalendarFile } from "cronfence/schedule";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { rate } from "../../src/schedule/rate.ts";
import { hostileTexts, tries } from "./hostile.ts";

const documented = ["INVALID_SCHEDULE", "INVALID_OPTIONS"];

const attempt = (make: () => unknown): { code: unknown; message: string; value?: unknown } => {
  try {
    return { code: "read", message: "", value: make() };
  } catch (error) {
    return error as { code: unknown; message: string };
  }
};

const word = fc.oneof(
  fc.constantFrom("*", "?", "L", "LW", "15W", "5L", "MON#2", "MON", "JAN-DEC", "*/5", "0", "59", "60", "1-5/2", "2026"),
  fc.integer({ min: -100, max: 3_000 }).map(String),
  fc.string({ maxLength: 6 }),
);
const fields = fc.array(word, { minLength: 4, maxLength: 8 }).map((words) => words.join(" "));
const expressions = fc.oneof(
  fields,
  fields.map((text) => `cron(${text})`),
  fc.tuple(word, word).map(([count, unit]) => `rate(${count} ${unit})`),
  fc.string({ maxLength: 60 }),
  fc.constantFrom(...hostileTexts),
);

const minute = 60_000;

describe("an expression", () => {
  it("of whatever kind is read, or refused by a documented error that is short", () => {
    fc.assert(
      fc.property(expressions, (text) => {
        for (const make of [cron, rate]) {
          const { code, message, value } = attempt(() => make(text));
          expect([...documented, "read"]).toContain(code);
          expect(message.length).toBeLessThan(1_000);
          if (code !== "read") continue;
          // What was read gives ticks in order, and reads the same again.
          const schedule = value as Schedule;
          const from = Date.UTC(2026, 0, 1);
          const next = schedule.next(from);
          if (next !== undefined) {
            expect(next).toBeGreaterThan(from);
            expect(next % minute).toBe(0);
            expect(schedule.previous(next + 1)).toBe(next);
          }
          expect(make(schedule.source).next(from)).toBe(next);
        }
      }),
      tries(500),
    );
  });

  it.each([
    ["a megabyte of spaces", " ".repeat(2 ** 20)],
    ["a megabyte of digits", `rate(${"9".repeat(2 ** 20)} minutes)`],
    ["a megabyte of fields", "* ".repeat(2 ** 19)],
    ["a list of a hundred thousand values", `${"0,".repeat(100_000)}0 * * * *`],
    ["as many spaces as are allowed, and something at their end", `${" ".repeat(990)}! !`],
    ["as many spaces as are allowed, after a number", `rate(5${" ".repeat(980)}! !`],
    ["as many letters as are allowed", `rate(5 ${"a".repeat(980)}!)`],
  ])("of %s is refused at once", (_, text) => {
    for (const make of [cron, rate]) {
      const { code, message } = attempt(() => make(text));
      expect(code).toBe("INVALID_SCHEDULE");
      expect(message.length).toBeLessThan(2_500);
    }
  });

  it.each([
    ["a symbol", Symbol("x")],
    ["a bigint", 1n],
    ["an object without a prototype", Object.create(null)],
    ["an object that throws", { toString: () => expect.fail("asked") }],
    ["nothing", undefined],
  ])("that is %s is refused", (_, value) => {
    expect(attempt(() => cron(value as string)).code).toBe("INVALID_SCHEDULE");
    expect(attempt(() => cron("* * * * *", { zone: value as string })).code).toBe(
      value === undefined ? "read" : "INVALID_OPTIONS",
    );
    expect(attempt(() => cron("* * * * *", { gap: value as "skip" })).code).toBe(
      value === undefined ? "read" : "INVALID_OPTIONS",
    );
    expect(["read", ...documented]).toContain(attempt(() => cron("* * * * *", (value ?? null) as object)).code);
  });

  it("in a zone of whatever name is read, or refused by a short error", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ maxLength: 30 }), fc.constantFrom(...hostileTexts)), (zone) => {
        const { code, message } = attempt(() => cron("0 9 * * *", { zone }));
        expect(["read", "INVALID_OPTIONS"]).toContain(code);
        expect(message.length).toBeLessThan(500);
      }),
      tries(50),
    );
    expect(attempt(() => cron("0 9 * * *", { zone: "x".repeat(2 ** 20) })).message.length).toBeLessThan(20_000);
  });
});

describe("a calendar", () => {
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "cronfence-calendars-"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const readFile = async (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return readCalendarFile(join(folder, name)).then(
      (read) => ({ code: "read", message: "", days: read.days.size }),
      (error) => error as { code: string; message: string },
    );
  };
  const event = (...lines: string[]) =>
    ["BEGIN:VCALENDAR", "VERSION:2.0", "BEGIN:VEVENT", "UID:1", ...lines, "END:VEVENT", "END:VCALENDAR", ""].join(
      "\r\n",
    );

  it.each([
    ["a rule that no date fits", "RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"],
    ["every seventh day from a Thursday, on Mondays", "RRULE:FREQ=DAILY;INTERVAL=7;BYDAY=MO"],
    ["every second", "RRULE:FREQ=SECONDLY"],
    ["every minute", "RRULE:FREQ=MINUTELY"],
    ["an interval of nothing", "RRULE:FREQ=DAILY;INTERVAL=0"],
  ])("file with %s ends, by a clear error or with what it could read", async (_, rule) => {
    const { code } = await readFile("rule.ics", event("DTSTART;VALUE=DATE:20260101", rule, "SUMMARY:x"));
    expect(["read", "INVALID_OPTIONS"]).toContain(code);
  });

  it("file with a daily event is read to its end", async () => {
    const daily = event("DTSTART;VALUE=DATE:20260101", "RRULE:FREQ=DAILY", "SUMMARY:x");
    expect(await readFile("daily.ics", daily)).toMatchObject({ code: "read", days: 27_028 });
  });

  it("file of whatever text is read, or refused by a documented error", async () => {
    const line = fc.constantFrom(
      "BEGIN:VCALENDAR",
      "END:VCALENDAR",
      "BEGIN:VEVENT",
      "END:VEVENT",
      "DTSTART:20260101T000000Z",
      "DTSTART;TZID=Nowhere/None:20260101T000000",
      "DTEND:20250101T000000Z",
      "DTSTART;VALUE=DATE:99999999",
      "RRULE:FREQ=YEARLY;COUNT=3",
      "RRULE:FREQ=",
      "RECURRENCE-ID:20260101",
      "SUMMARY:\u0000\u001b",
      "UID:__proto__",
      "X-:;;;:",
    );
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(line, fc.string({ maxLength: 20 })), { maxLength: 12 }), async (lines) => {
        for (const name of ["any.ics", "any.json"]) {
          const { code, message } = await readFile(name, lines.join("\r\n"));
          expect(["read", "INVALID_OPTIONS"]).toContain(code);
          expect(message.length).toBeLessThan(3_000);
        }
      }),
      tries(60),
    );
  });

  it("of whatever exceptions is read, or refused by a documented error", () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.anything(), fc.constantFrom(...hostileTexts)), { maxLength: 4 }), (given) => {
        expect(["read", "INVALID_OPTIONS"]).toContain(attempt(() => calendar(given as string[])).code);
      }),
      tries(200),
    );
    expect(attempt(() => calendar(["0001-01-01..9999-12-31"])).message).toContain("longer than a hundred years");
  });
});
