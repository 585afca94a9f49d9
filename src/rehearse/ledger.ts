/**
 * Every tick of a rehearsal and how it ended, by who settled it (src/ledger/settlements.ts). Pure.
 */
import type { RunRecord, SkippedTicks } from "../control/control-store.ts";
import { leftOut, type Settlement, settlements, settlerOf } from "../ledger/settlements.ts";
import type { RemovedTick } from "../schedule/index.ts";

/** How a tick ended, as far as it has. */
export type TickFate =
  | { readonly kind: "done"; readonly run: string }
  /** Left out for good. A calendar's are left out whether a run ever met them or not. */
  | { readonly kind: "skipped"; readonly reason: SkippedTicks["reason"] }
  /** A later run will cover it. */
  | { readonly kind: "owed" }
  /** More than one run settled it, which must not be. */
  | { readonly kind: "doubled"; readonly runs: readonly string[] }
  /** The job has gone past it, and no record says why, which must not be either. */
  | { readonly kind: "unaccounted" };

export interface LedgerEntry {
  readonly tick: number;
  readonly fate: TickFate;
}

/**
 * The ledger of the ticks that are given.
 * @param due ascending
 * @param removed ticks that a calendar took away, ascending; none of them is in `due`
 * @param records all of the job's, in any order
 */
export const ledgerOf = (history: {
  readonly due: readonly number[];
  readonly removed: readonly RemovedTick[];
  readonly records: readonly RunRecord[];
}): LedgerEntry[] => {
  const fold = settlements(Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY);
  for (const record of history.records) {
    const settler = settlerOf(record);
    if (settler !== undefined) fold.add(settler);
  }
  const settled = fold.end();
  const entries: LedgerEntry[] = [];
  let index = 0;
  for (const tick of history.due) {
    while (index < settled.length && settled[index]!.through < tick) index += 1;
    entries.push({ tick, fate: fateOf(tick, settled[index]) });
  }
  for (const { tick } of history.removed) entries.push({ tick, fate: { kind: "skipped", reason: "calendar" } });
  return history.removed.length === 0 ? entries : entries.sort((one, other) => one.tick - other.tick);
};

/** @param next the first settlement that doesn't end before `tick` */
const fateOf = (tick: number, next: Settlement | undefined): TickFate => {
  if (next === undefined) return { kind: "owed" };
  if (tick < next.from) return { kind: "unaccounted" };
  const [settler, ...others] = next.by;
  if (others.length > 0) return { kind: "doubled", runs: next.by.map(({ run }) => run as string) };
  const reason = leftOut(settler, tick);
  return reason === undefined ? { kind: "done", run: settler.run as string } : { kind: "skipped", reason };
};
