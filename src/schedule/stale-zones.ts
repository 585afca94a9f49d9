/**
 * Zone data goes stale: a runtime keeps the rules that it was built with, while governments change theirs. This is a table
 * of recent changes, each with an instant at which old and new data differ, so that what the runtime says can be compared.
 * The offsets are those of tz release 2026f (https://data.iana.org/time-zones/tzdb/NEWS).
 */

import { zoneNamed } from "./zone.ts";
import { canonicalZone } from "./zone-names.ts";

interface RuleChange {
  /** An instant at which the old rules give another offset. */
  readonly at: number;
  /** Minutes east of UTC by the new rules. */
  readonly offsetMinutes: number;
  /** The tz release that has the change, or the last of several that may. */
  readonly release: string;
  readonly what: string;
}

const december = Date.UTC(2026, 11, 1);

const canada = (place: string, offsetMinutes: number, release: string): RuleChange => ({
  at: december,
  offsetMinutes,
  release,
  what: `clocks are no longer changed in ${place}, and weren't set back on 2026-11-01`,
});

const morocco: RuleChange = {
  at: december,
  offsetMinutes: 0,
  release: "2026c",
  what: "Morocco and Western Sahara are on UTC all year since 2026-09-20",
};

const changes: Readonly<Record<string, RuleChange>> = {
  "Africa/Casablanca": morocco,
  "Africa/El_Aaiun": morocco,
  "America/Edmonton": canada("Alberta", -360, "2026c"),
  "America/Havana": {
    at: december,
    offsetMinutes: -240,
    release: "2026f",
    what: "Cuba keeps summer time through the winter of 2026",
  },
  "America/Inuvik": canada("the Northwest Territories", -360, "2026d"),
  "America/Vancouver": canada("British Columbia", -420, "2026b"),
  "America/Winnipeg": canada("Manitoba", -300, "2026f"),
  "Europe/Chisinau": {
    at: Date.UTC(2027, 2, 28, 0, 30),
    offsetMinutes: 120,
    release: "2026a",
    what: "Moldova changes its clocks when the European Union does, at 01:00 UTC",
  },
};

/** The zones that the table knows of, by their canonical names. */
export const recentlyChangedZones: readonly string[] = Object.keys(changes);

/** What a runtime knows of zones; its own by default. */
export interface ZoneData {
  /** Minutes east of UTC in `zone` at `instant`, in milliseconds since the epoch. */
  offsetMinutes(zone: string, instant: number): number;
  /** The release of its zone data, such as "2025c". */
  readonly release: string | undefined;
}

/** Of this process. */
export const runtimeZoneData: ZoneData = {
  offsetMinutes: (zone, instant) => zoneNamed(zone).offsetAt(instant) / 60_000,
  release: process.versions.tz,
};

/**
 * A warning where the runtime's data for `zone` is from before a rule change that is known here; undefined where it is
 * fresh, or nothing is known. What counts is the offset that the runtime gives, not the release that it names: some
 * distributions replace the data alone.
 * @throws InvalidOptionsError for an unknown zone.
 */
export function staleZone(zone: string, data: ZoneData = runtimeZoneData): string | undefined {
  const name = canonicalZone(zone);
  const change = changes[name];
  if (change === undefined) return undefined;
  const offset = data.offsetMinutes(name, change.at);
  if (offset === change.offsetMinutes) return undefined;
  const day = new Date(change.at).toISOString().slice(0, 10);
  return (
    `this runtime's zone data (${data.release ?? "of unknown release"}) is out of date for ${name}: ${change.what}. ` +
    `It has ${offsetText(offset)} on ${day}, where ${offsetText(change.offsetMinutes)} is right, so ticks there are wrong by ` +
    `${Math.abs(offset - change.offsetMinutes)} minutes; run on data of tz ${change.release} or later`
  );
}

function offsetText(minutes: number): string {
  const size = Math.abs(minutes);
  const pad = (value: number) => String(value).padStart(2, "0");
  return `UTC${minutes < 0 ? "-" : "+"}${pad(Math.floor(size / 60))}:${pad(size % 60)}`;
}
