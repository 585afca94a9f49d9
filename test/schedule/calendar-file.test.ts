import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readCalendarFile } from "../../src/schedule/calendar-file.ts";
import type { Calendar } from "../../src/schedule/index.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "calendar-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const read = (name: string, content: string): Promise<Calendar> => {
  writeFileSync(join(folder, name), content);
  return readCalendarFile(join(folder, name));
};

const ics = (...events: string[][]) =>
  [
    "BEGIN:VCALENDAR",
    "VERSION:2.0",
    "PRODID:-//test//EN",
    ...events.flatMap((lines) => ["BEGIN:VEVENT", ...lines, "END:VEVENT"]),
    "END:VCALENDAR",
    "",
  ].join("\r\n");

const dates = (calendar: Calendar) =>
  [...calendar.days].map(([day, reason]) => `${new Date(day).toISOString().slice(0, 10)} ${reason}`);
const freezes = (calendar: Calendar) =>
  calendar.freezes.map(
    ({ from, to, reason }) => `${new Date(from).toISOString()} ${new Date(to).toISOString()} ${reason}`,
  );

describe("a calendar file", () => {
  it("in JSON is a list of exceptions, bare or as `except`", async () => {
    const list = [
      "2026-12-25",
      { on: "2026-12-31", reason: "new year's eve" },
      { from: "2026-11-26T05:00:00Z", to: "2026-11-27T05:00:00Z", reason: "sales" },
    ];
    for (const content of [list, { name: "shop", except: list }]) {
      const calendar = await read("shop.json", JSON.stringify(content));
      expect(dates(calendar)).toEqual(["2026-12-25 2026-12-25", "2026-12-31 new year's eve"]);
      expect(freezes(calendar)).toEqual(["2026-11-26T05:00:00.000Z 2026-11-27T05:00:00.000Z sales"]);
    }
  });

  it("in ICS gives whole days by date and timed events as freezes", async () => {
    const calendar = await read(
      "all.ics",
      ics(
        ["UID:1", "SUMMARY:Christmas", "DTSTART;VALUE=DATE:20261225", "DTEND;VALUE=DATE:20261227"],
        ["UID:2", "SUMMARY:One day", "DTSTART;VALUE=DATE:20260501"],
        ["UID:3", "SUMMARY:Move", "DTSTART:20260601T200000Z", "DTEND:20260602T040000Z"],
        [
          "UID:4",
          "SUMMARY:Sales",
          "DTSTART;TZID=America/New_York:20261127T000000",
          "DTEND;TZID=America/New_York:20261130T000000",
        ],
        [
          "UID:6",
          "SUMMARY:Flight",
          "DTSTART;TZID=Europe/Berlin:20261001T100000",
          "DTEND;TZID=America/New_York:20261001T130000",
        ],
        ["UID:7", "SUMMARY:Ends as it begins", "DTSTART;VALUE=DATE:20260801", "DTEND;VALUE=DATE:20260801"],
        ["UID:5", "SUMMARY:Called off", "STATUS:CANCELLED", "DTSTART;VALUE=DATE:20260701"],
      ),
    );
    expect(dates(calendar)).toEqual([
      "2026-12-25 Christmas",
      "2026-12-26 Christmas",
      "2026-05-01 One day",
      "2026-08-01 Ends as it begins",
    ]);
    expect(freezes(calendar)).toEqual([
      "2026-06-01T20:00:00.000Z 2026-06-02T04:00:00.000Z Move",
      "2026-10-01T08:00:00.000Z 2026-10-01T17:00:00.000Z Flight",
      "2026-11-27T05:00:00.000Z 2026-11-30T05:00:00.000Z Sales",
    ]);
  });

  it("in ICS follows repeated events through 2099, with their exceptions, moved and cancelled occurrences", async () => {
    const calendar = await read(
      "repeated.ics",
      ics(
        [
          "UID:1",
          "SUMMARY:Labour day",
          "DTSTART;VALUE=DATE:20200501",
          "RRULE:FREQ=YEARLY",
          "EXDATE;VALUE=DATE:20210501",
        ],
        ["UID:2", "SUMMARY:Audit", "DTSTART;VALUE=DATE:20260105", "RRULE:FREQ=MONTHLY;COUNT=4"],
        [
          "UID:2",
          "RECURRENCE-ID;VALUE=DATE:20260405",
          "SUMMARY:Audit",
          "STATUS:CANCELLED",
          "DTSTART;VALUE=DATE:20260405",
        ],
        ["UID:2", "RECURRENCE-ID;VALUE=DATE:20260205", "SUMMARY:Audit, moved", "DTSTART;VALUE=DATE:20260206"],
      ),
    );
    const all = dates(calendar);
    expect(all.slice(0, 2)).toEqual(["2020-05-01 Labour day", "2022-05-01 Labour day"]);
    expect(all).toContain("2099-05-01 Labour day");
    expect(all.filter((date) => date.includes("Audit"))).toEqual([
      "2026-01-05 Audit",
      "2026-02-06 Audit, moved",
      "2026-03-05 Audit",
    ]);
    expect(all).toHaveLength(79 + 3);
  });

  it("is refused by name where it can't be read", async () => {
    await expect(readCalendarFile(join(folder, "absent.json"))).rejects.toThrow(/absent\.json.*ENOENT/);
    await expect(read("holidays.txt", "")).rejects.toThrow(/must end in \.json or \.ics/);
    await expect(read("broken.json", "{")).rejects.toThrow(/broken\.json/);
    await expect(read("shape.json", '{"dates": []}')).rejects.toThrow(/as "except"/);
    await expect(read("entry.json", '[{"date": "2026-12-25"}]')).rejects.toThrow(
      /\{"date":"2026-12-25"\} isn't a date/,
    );
    await expect(read("date.json", '["2026-13-01"]')).rejects.toThrow(/"2026-13-01" isn't a date/);
    await expect(read("broken.ics", "BEGIN:VCALENDAR")).rejects.toThrow(/broken\.ics/);
    const floating = ics(["UID:1", "SUMMARY:Lunch", "DTSTART:20260601T120000", "DTEND:20260601T130000"]);
    await expect(read("floating.ics", floating)).rejects.toThrow(/"Lunch" has neither Z nor a zone/);
    const unknown = ics([
      "UID:1",
      "SUMMARY:Lunch",
      "DTSTART;TZID=Mars/Base:20260601T120000",
      "DTEND;TZID=Mars/Base:20260601T130000",
    ]);
    await expect(read("unknown.ics", unknown)).rejects.toThrow(/"Mars\/Base" isn't a known time zone/);
  });
});
