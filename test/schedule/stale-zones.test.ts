import { describe, expect, it } from "vitest";
import { recentlyChangedZones, runtimeZoneData, staleZone, type ZoneData } from "../../src/schedule/stale-zones.ts";

/** What tz 2025c had, and what 2026f has, for the winter of 2026 and Moldova's spring: from those releases. */
const offsets: Readonly<Record<string, readonly [stale: number, fresh: number]>> = {
  "Africa/Casablanca": [60, 0],
  "Africa/El_Aaiun": [60, 0],
  "America/Edmonton": [-420, -360],
  "America/Havana": [-300, -240],
  "America/Inuvik": [-420, -360],
  "America/Vancouver": [-480, -420],
  "America/Winnipeg": [-360, -300],
  "Europe/Chisinau": [180, 120],
};
const dataOf = (release: string, column: 0 | 1): ZoneData => ({
  release,
  offsetMinutes: (zone) => offsets[zone]![column],
});

describe("stale zone data", () => {
  for (const zone of recentlyChangedZones) {
    it(`is warned of for ${zone} where the runtime has the old rule, and not where it has the new one`, () => {
      expect(staleZone(zone, dataOf("2025c", 0))).toMatch(
        new RegExp(`\\(2025c\\) is out of date for ${zone}.*wrong by 60 minutes`),
      );
      expect(staleZone(zone, dataOf("2026f", 1))).toBeUndefined();
    });
  }

  it("says what the runtime has and what is right", () => {
    expect(staleZone("America/Vancouver", dataOf("2025c", 0))).toBe(
      "this runtime's zone data (2025c) is out of date for America/Vancouver: clocks are no longer changed in British Columbia, " +
        "and weren't set back on 2026-11-01. It has UTC-08:00 on 2026-12-01, where UTC-07:00 is right, so ticks there are wrong by " +
        "60 minutes; run on data of tz 2026b or later",
    );
  });

  it("is found under a zone's other names, and never for zones whose rules stood", () => {
    expect(staleZone("Canada/Pacific", dataOf("2025c", 0))).toContain("America/Vancouver");
    expect(staleZone("Cuba", dataOf("2025c", 0))).toContain("America/Havana");
    expect(staleZone("Europe/Berlin", dataOf("2025c", 0))).toBeUndefined();
    expect(staleZone("UTC")).toBeUndefined();
    expect(() => staleZone("Europe/Berln")).toThrow(/did you mean/);
  });

  it("of this process is judged by what its Intl says, whatever release it names", () => {
    const december = Date.UTC(2026, 11, 1);
    const shown = new Intl.DateTimeFormat("en-US", {
      timeZone: "America/Vancouver",
      timeZoneName: "longOffset",
    }).format(december);
    const fresh = shown.endsWith("GMT-07:00");
    expect(runtimeZoneData.release).toBe(process.versions.tz);
    expect(staleZone("America/Vancouver") === undefined).toBe(fresh);
  });
});
