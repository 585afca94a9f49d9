/**
 * A transaction of several items. An item whose own condition doesn't hold was done elsewhere, or needn't be any more: it
 * is dropped, counted as skipped and logged, and the others are committed without it.
 */
import { noWrites } from "../control/writes.ts";
import type { WriteRejectedError } from "../errors.ts";
import type { LiveRun } from "../live-run.ts";
import type { Batch } from "../progress.ts";
import type { SourceWork } from "./item.ts";
import { endOf, joinLots, type Lot, lotOfWrite } from "./packing.ts";

export const batchOf = (work: SourceWork, live: LiveRun, lots: readonly Lot[]): Batch => {
  const count = (fate: Lot["fate"]) => lots.filter((lot) => lot.fate === fate).length;
  const last = lots.at(-1);
  return {
    writes: joinLots(lots),
    items: count(undefined),
    itemsSkipped: count("skipped"),
    itemsParked: count("parked"),
    ...(last === undefined || work.source.resumes === "start" ? {} : { watermark: endOf(last) }),
    withoutRejected: (error) => {
      const left = withoutRejected(live, lots, error);
      return left && batchOf(work, live, left);
    },
  };
};

/** The lots with those emptied whose condition failed; `undefined` where DynamoDB had other reasons too. */
const withoutRejected = (
  live: LiveRun,
  lots: readonly Lot[],
  error: WriteRejectedError,
): readonly Lot[] | undefined => {
  const failed = new Set<number>();
  for (const { index, code } of error.rejected) {
    if (code === "ConditionalCheckFailed") failed.add(lotOfWrite(lots, index));
    else if (!busyCodes.has(code)) return undefined;
  }
  if (failed.size === 0 || failed.has(-1)) return undefined;
  return lots.map((lot, position) => {
    if (!failed.has(position)) return lot;
    live.attempt.log.info({ cursor: lot.cursor }, "an item was skipped: its own condition doesn't hold");
    return { ...lot, writes: noWrites, fate: "skipped" };
  });
};

/** Reasons that go away by themselves: the rest of the transaction is simply sent again. */
const busyCodes = new Set(["TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError"]);
