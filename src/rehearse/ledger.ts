/**
 * Every tick of a job and how it ended, read from the job's run records alone. Pure.
 *
 * A record says which ticks its run covered, which of them it passed over, and which was the job's last completed tick when
 * it ended. So a run settled the ticks of its range up to that one, whatever its outcome: it did them, or left them out
 * for the reason that it gives. A run that died says only how far its commits had come: what it settled begins where the
 * run before it had stopped.
 */
import type { RunRecord, SkippedTicks } from "../control/control-store.ts";
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
  const { due, removed } = history;
  const settled = new Map<number, TickFate>();
  let completed = Number.NEGATIVE_INFINITY;
  for (const record of inOrder(history.records)) {
    const through = record.completed ?? Number.NEGATIVE_INFINITY;
    const from = isSecondHand(record) ? completed + 1 : (record.ticks?.from ?? Number.POSITIVE_INFINITY);
    for (let index = firstFrom(due, from); index < due.length && due[index]! <= through; index += 1) {
      const tick = due[index]!;
      settled.set(tick, settle(settled.get(tick), tick, record));
    }
    completed = Math.max(completed, through);
  }
  const entries = due.map((tick): LedgerEntry => {
    const fate = settled.get(tick) ?? { kind: tick > completed ? "owed" : "unaccounted" };
    return { tick, fate };
  });
  for (const { tick } of removed) entries.push({ tick, fate: { kind: "skipped", reason: "calendar" } });
  return removed.length === 0 ? entries : entries.sort((one, other) => one.tick - other.tick);
};

/** Runs in the order in which they were granted the lease; one without a fence never committed anything. */
const inOrder = (records: readonly RunRecord[]): RunRecord[] =>
  records
    .filter(({ fence, outcome }) => fence !== undefined && outcome !== "dry_run")
    .sort((one, other) => one.fence! - other.fence!);

/** Written by somebody else, who didn't know where the run's ticks begin. */
const isSecondHand = ({ outcome }: RunRecord): boolean => outcome === "crashed" || outcome === "cancelled";

const settle = (before: TickFate | undefined, tick: number, { id, skipped = [] }: RunRecord): TickFate => {
  const left = skipped.find(({ from, through }) => tick >= from && tick <= through);
  if (before === undefined)
    return left === undefined ? { kind: "done", run: id } : { kind: "skipped", reason: left.reason };
  const runs = before.kind === "doubled" ? before.runs : before.kind === "done" ? [before.run] : [];
  return { kind: "doubled", runs: [...runs, id] };
};

/** Where in `ticks` the first one at or after `from` stands. */
const firstFrom = (ticks: readonly number[], from: number): number => {
  let low = 0;
  let high = ticks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ticks[middle]! < from) low = middle + 1;
    else high = middle;
  }
  return low;
};
