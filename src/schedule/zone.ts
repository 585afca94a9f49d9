/**
 * What a time zone's clocks do: its offset at an instant and the instants at which that offset changes. All of it comes
 * from the runtime's own zone data through `Intl`; nothing is assumed about rules. Found changes are kept for the life
 * of the process, since a runtime's data doesn't change.
 */

import { dayMs } from "./wall-pattern.ts";

/** A moment at which a zone's clocks are set. Offsets are milliseconds east of UTC. */
interface ZoneChange {
  /** The first instant with the new offset. */
  readonly at: number;
  readonly before: number;
  readonly after: number;
}

/** A stretch of time with one offset. */
export interface Span {
  readonly start: number;
  /** The first instant after it. */
  readonly end: number;
  readonly offset: number;
  /** The offset just before `start`; the same as `offset` where nothing changed there. */
  readonly offsetBefore: number;
}

export interface Zone {
  readonly name: string;
  /** Milliseconds east of UTC at `instant`. */
  offsetAt(instant: number): number;
  /** Changes in (after, through], ascending. */
  changes(after: number, through: number): Iterable<ZoneChange>;
  /**
   * The stretch around `instant`. A change in the day before `instant` is always its start; farther ends are cut
   * at some point where nothing changes, so that no call looks at more than a month or two.
   */
  spanAt(instant: number): Span;
}

/** UTC, which needs no zone data: `Intl` costs tens of milliseconds at first use. */
export const utc: Zone = {
  name: "UTC",
  offsetAt: () => 0,
  changes: () => [],
  spanAt: () => ({ start: -8.64e15, end: 8.64e15, offset: 0, offsetBefore: 0 }),
};

const zones = new Map<string, Zone>();

/** The zone called `name`, a name that `Intl` knows. */
export function zoneNamed(name: string): Zone {
  if (name === "UTC") return utc;
  let zone = zones.get(name);
  if (zone === undefined) zones.set(name, (zone = readZone(name)));
  return zone;
}

const chunkMs = 28 * dayMs;

function readZone(name: string): Zone {
  let format: Intl.DateTimeFormat | undefined;
  const offsetAt = (instant: number): number => {
    format ??= new Intl.DateTimeFormat("en-US", { timeZone: name, timeZoneName: "longOffset", hour: "numeric" });
    return readOffset(format.format(instant));
  };
  const chunks = new Map<number, Chunk>();
  const chunkOf = (index: number): Chunk => {
    let chunk = chunks.get(index);
    if (chunk === undefined) chunks.set(index, (chunk = readChunk(offsetAt, index * chunkMs)));
    return chunk;
  };
  function* changes(after: number, through: number): Iterable<ZoneChange> {
    for (let index = Math.floor(after / chunkMs); index * chunkMs < through; index++) {
      for (const change of chunkOf(index).changes) if (change.at > after && change.at <= through) yield change;
    }
  }
  const spanAt = (instant: number): Span => {
    const index = Math.floor(instant / chunkMs);
    const chunk = chunkOf(index);
    const from = index * chunkMs;
    // A change shortly before the chunk still governs its first hours.
    const earlier = instant - from < dayMs ? chunkOf(index - 1).changes.at(-1) : undefined;
    let start = earlier && earlier.at > instant - dayMs ? earlier : undefined;
    for (const change of chunk.changes) {
      if (change.at > instant) {
        return start ? spanFrom(start, change.at) : flatSpan(from, change.at, chunk.offset);
      }
      start = change;
    }
    return start ? spanFrom(start, from + chunkMs) : flatSpan(from, from + chunkMs, chunk.offset);
  };
  return { name, offsetAt, changes, spanAt };
}

const spanFrom = (change: ZoneChange, end: number): Span => ({
  start: change.at,
  end,
  offset: change.after,
  offsetBefore: change.before,
});

const flatSpan = (start: number, end: number, offset: number): Span => ({ start, end, offset, offsetBefore: offset });

/** Four weeks of a zone. */
interface Chunk {
  /** The offset at its first instant. */
  readonly offset: number;
  /** Changes after its first instant, and at the first instant of the next. */
  readonly changes: readonly ZoneChange[];
}

/**
 * Samples each day, and halves a day whose ends differ. Two changes within one day that cancel out would be missed;
 * the closest two that any zone has had since 1975 are almost a week apart.
 */
function readChunk(offsetAt: (instant: number) => number, from: number): Chunk {
  const changes: ZoneChange[] = [];
  const offset = offsetAt(from);
  let before = offset;
  for (let day = from; day < from + chunkMs; day += dayMs) {
    const after = offsetAt(day + dayMs);
    if (after === before) continue;
    let low = day;
    let high = day + dayMs;
    while (high - low > 1000) {
      const middle = Math.floor((low + high) / 2000) * 1000;
      if (offsetAt(middle) === before) low = middle;
      else high = middle;
    }
    changes.push({ at: high, before, after });
    before = after;
  }
  return { offset, changes };
}

/** Reads the end of "7 PM GMT-05:00"; the offset is left out at GMT itself, and may have seconds before 1973. */
function readOffset(text: string): number {
  const [, sign, hours, minutes, seconds = "0"] = /GMT(?:([+-])(\d+):(\d+)(?::(\d+))?)?$/.exec(text) ?? [];
  if (sign === undefined) return 0;
  const size = (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1000;
  return sign === "-" ? -size : size;
}
