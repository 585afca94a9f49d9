import { IANAZone } from "luxon";
import { describe, expect, it } from "vitest";
import { utc, zoneNamed } from "../../src/schedule/zone.ts";
import { changesIn } from "./oracle.ts";

const hourMs = 3_600_000;
const names = [
  "America/New_York",
  "Australia/Lord_Howe",
  "Africa/Casablanca",
  "Pacific/Apia",
  "Antarctica/Troll",
  "Asia/Beirut",
  "Asia/Kolkata",
];

describe("a zone", () => {
  for (const name of names) {
    it(`${name} changes when luxon says so, by what luxon says`, () => {
      const clock = IANAZone.create(name);
      const zone = zoneNamed(name);
      for (const year of [2010, 2011, 2024, 2025, 2026]) {
        const changes = [...zone.changes(Date.UTC(year), Date.UTC(year + 1))];
        expect(changes.map(({ at }) => at)).toEqual(changesIn(name, year));
        for (const { at, before, after } of changes) {
          expect([before, after]).toEqual([clock.offset(at - 1) * 60_000, clock.offset(at) * 60_000]);
        }
      }
    });

    it(`${name} knows the change behind an instant for a day, wherever it looks from`, () => {
      const zone = zoneNamed(name);
      for (const { at, before, after } of zone.changes(Date.UTC(1990), Date.UTC(2037))) {
        for (const later of [0, 1, 3 * hourMs, 23 * hourMs]) {
          expect(zone.spanAt(at + later)).toMatchObject({ start: at, offset: after, offsetBefore: before });
        }
        expect(zone.spanAt(at - 1)).toMatchObject({ end: at, offset: before });
      }
    });
  }

  it("that is UTC never changes", () => {
    expect([...utc.changes(0, Date.UTC(2100))]).toEqual([]);
    expect(zoneNamed("UTC")).toBe(utc);
  });

  it("has offsets of seconds where history does", () => {
    expect(zoneNamed("Africa/Monrovia").offsetAt(Date.UTC(1971, 0, 1))).toBe(-(44 * 60 + 30) * 1000);
  });
});
