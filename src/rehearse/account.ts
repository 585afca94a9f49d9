/**
 * What a rehearsal comes to: each due tick has one state, and the states are counted. Pure.
 */
import type { SkippedTicks } from "../control/control-store.ts";
import type { NotDelivered } from "./deliveries.ts";
import type { LedgerEntry } from "./ledger.ts";

/** Ticks by their one state; all but `all` add up to it. */
export interface TickCounts {
  readonly all: number;
  readonly done: number;
  /** Left out for good, by reason. */
  readonly skipped: Readonly<Record<SkippedTicks["reason"], number>>;
  /** Due, and not done at the end; a later run would cover them. */
  readonly owed: number;
  /** Settled by more than one run: must be 0. */
  readonly doubled: number;
  /** Passed over without a record that says why: must be 0. */
  readonly unaccounted: number;
}

/** Ticks that weren't done by a run of their own, and what became of them. */
export interface LeftOut {
  readonly why:
    | NotDelivered
    /** It was delivered, and its run failed, or stopped before it. */
    | "not done by its own run"
    /** It was delivered, or would have been, and wasn't to be done. */
    | "the job's definition";
  readonly became: "done by a later run" | "skipped" | "owed" | "doubled" | "unaccounted";
  /** For `skipped`. */
  readonly reason?: SkippedTicks["reason"];
  readonly count: number;
  /** In milliseconds since the epoch. */
  readonly first: number;
  readonly last: number;
}

export interface Account {
  readonly ticks: TickCounts;
  readonly leftOut: readonly LeftOut[];
}

/**
 * @param entries ascending
 * @param delivery why a tick wasn't delivered, and whether a run is one of its own delivery
 */
export const accountOf = (
  entries: readonly LedgerEntry[],
  delivery: {
    notDelivered(tick: number): NotDelivered | undefined;
    isOwnRun(tick: number, run: string): boolean;
  },
): Account => {
  const skipped = { calendar: 0, "before startAt": 0, startWithin: 0, catchUp: 0 };
  const counts = { done: 0, owed: 0, doubled: 0, unaccounted: 0 };
  const leftOut = new Map<string, LeftOut>();
  const leaveOut = (tick: number, out: Pick<LeftOut, "why" | "became" | "reason">) => {
    const key = [out.why, out.became, out.reason].join();
    const before = leftOut.get(key) ?? { ...out, count: 0, first: tick, last: tick };
    leftOut.set(key, { ...before, count: before.count + 1, last: tick });
  };
  for (const { tick, fate } of entries) {
    const undelivered = delivery.notDelivered(tick);
    if (fate.kind === "skipped") {
      skipped[fate.reason] += 1;
      // Nothing but the calendar had to leave it out, delivered or not.
      const why = fate.reason === "calendar" ? undefined : undelivered;
      leaveOut(tick, { why: why ?? "the job's definition", became: "skipped", reason: fate.reason });
      continue;
    }
    counts[fate.kind] += 1;
    if (fate.kind === "done" && undelivered === undefined && delivery.isOwnRun(tick, fate.run)) continue;
    leaveOut(tick, {
      why: undelivered ?? "not done by its own run",
      became: fate.kind === "done" ? "done by a later run" : fate.kind,
    });
  }
  return { ticks: { all: entries.length, ...counts, skipped }, leftOut: [...leftOut.values()] };
};
