/**
 * What every schedule is, however it is written. A value with no I/O: it never reads the clock, and the same question
 * always has the same answer. Instants are integer milliseconds since the epoch; ticks lie between 1970 and 2199.
 */

/** When a job is due. Made by `cron` or `rate`. */
export interface Schedule {
  /** The expression as written. */
  readonly source: string;
  readonly kind: "cron" | "rate";
  /** Canonical IANA name of the zone that its times of day are in; "UTC" by default, and for every rate. */
  readonly zone: string;
  /**
   * Whether minute or hour starts with `*` in the source. Such a schedule follows real time through clock changes
   * (every 15 minutes stays every 15 minutes), where a fixed time is moved out of a gap and doesn't repeat.
   */
  readonly wildcard: boolean;
  /** What becomes of a fixed time that the clocks skip in spring. */
  readonly gap: GapPolicy;
  /** What becomes of a fixed time that occurs twice in autumn. */
  readonly overlap: OverlapPolicy;
  /** What removes ticks, where something does; see `withCalendar`. */
  readonly calendar?: Calendar;
  /** The first tick strictly later than `after`; undefined where there is none. */
  next(after: number): number | undefined;
  /** The last tick strictly earlier than `before`; undefined where there is none. */
  previous(before: number): number | undefined;
  /** The ticks in (after, through], ascending, worked out as they are asked for. */
  between(after: number, through: number): Iterable<number>;
  /**
   * The shortest time between two neighbouring ticks in (from, through], in milliseconds, days with clock changes
   * included; undefined where there are fewer than two. `through` is two years after `from` by default.
   */
  shortestInterval(from: number, through?: number): number | undefined;
}

/** Exceptions, ready to be asked. Made by `calendar` (calendar.ts) or read from a file. */
export interface Calendar {
  /** Reasons by date; a date is its midnight as if in UTC, in milliseconds. */
  readonly days: ReadonlyMap<number, string>;
  /** Ascending, without overlap. */
  readonly freezes: readonly Freeze[];
}

/** Instants from `from` up to, and not including, `to`. */
export interface Freeze {
  readonly from: number;
  readonly to: number;
  readonly reason: string;
}

/** `after`: once, at the first instant after the gap. `skip`: not at all, as EventBridge does it. */
export type GapPolicy = "after" | "skip";

/** `first`: once, the first time. `both`: each time, as Kubernetes does it. */
export type OverlapPolicy = "first" | "both";

/** How far `shortestInterval` looks, where it isn't told: two years see every rule of a zone at least twice. */
export const twoYearsMs = 2 * 366 * 86_400_000;
