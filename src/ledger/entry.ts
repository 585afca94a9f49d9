/**
 * The states of ticks. Each tick that was due has exactly one of them: the first that applies, in this order.
 *
 * | state | meaning |
 * | --- | --- |
 * | | **settled: the job has gone past it** |
 * | `doubled` | more than one run settled it, which must not be |
 * | `calendar` | an exception took it away: it isn't owed |
 * | `gap` | a time of day that the clocks skipped in spring, and the job says `gap: "skip"`: it isn't owed |
 * | `skipped` | left out for good, by the job's policy (`startWithin`, `catchUp`) or by an operator |
 * | `done` | done by a run of its own: one that was started for it, or before the next tick was due |
 * | `covered` | done by a later run, one that was started for a later tick |
 * | `before` | from before the job began (`startAt`, or when it was first known): it isn't owed |
 * | `unscheduled` | the schedule that the job had then didn't have it |
 * | `unrecorded` | settled; no record says by which run, since it was kept no longer or is lost |
 * | | **not settled: a later run covers it** |
 * | `running` | a run that holds the lease is at it |
 * | `failed` | the last run that was to do it ended without doing it (failed, timed out, crashed, cancelled …), or let its lease run out |
 * | `paused` | an operator had the job paused when it was due, or would have been started; no run has tried it since |
 * | `held` | it came while another run held the lease, and no run has tried it since |
 * | `missed` | it should have been done by now, and no run has tried it |
 * | `owed` | due, and not late yet; or left over by a run that stopped at a bound, or wrote nothing since it was a dry run |
 *
 * Nothing is written for this per tick: states follow from the schedule as it is now, the run records, the operators' acts
 * and the control item. What an operator did to a tick that a run settled after all doesn't change its state.
 *
 * What they can't tell: which ticks an earlier schedule had between the first and the last of a run. Ticks that today's
 * schedule has there count as settled by that run; those that only the earlier one had are shown where a record names them
 * (`offSchedule`).
 */
import type { SkippedTicks } from "../control/control-store.ts";
import type { RunOutcome } from "../outcome.ts";

export const tickStates = [
  "done",
  "covered",
  "skipped",
  "calendar",
  "gap",
  "before",
  "unscheduled",
  "unrecorded",
  "doubled",
  "running",
  "failed",
  "paused",
  "held",
  "missed",
  "owed",
] as const;

export type TickState = (typeof tickStates)[number];

/** One tick and what became of it. Instants are in milliseconds since the epoch. */
export interface LedgerEntry {
  readonly tick: number;
  readonly state: TickState;
  /**
   * The run that settled it (the first of them, where it is `doubled`), is at it, had the lease when it came (`held`), or was
   * the last that should have done it.
   */
  readonly run?: string;
  /** The other runs, of `doubled`. */
  readonly others?: readonly string[];
  /** How that run ended, where it didn't do it and is on record. */
  readonly outcome?: RunOutcome;
  /** Of `skipped`: which policy. Of `calendar`: the exception's reason. Of `gap`: the time of day, such as "02:30". */
  readonly reason?: SkippedReason | (string & {});
  /** Of `paused`, and of what an operator skipped: who, and why. */
  readonly by?: string;
  readonly why?: string;
  /** Today's schedule doesn't have it: it was started by hand, or by an earlier schedule. */
  readonly offSchedule?: true;
  /** Of `owed`: from when on it is missed. */
  readonly lateFrom?: number;
}

type SkippedReason = Exclude<SkippedTicks["reason"], "calendar" | "before startAt"> | "operator";

/** Ticks by state; they add up to `all`. */
export type LedgerCounts = Readonly<Record<TickState | "all", number>>;
