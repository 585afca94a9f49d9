/**
 * Doing parked items after all: each is read again and processed, and taken out of the parked ones in the transaction that
 * does its work. One that fails again stays parked; the others are done all the same, and then the run fails.
 */
import type { ParkedItem } from "../control/control-store.ts";
import { joinWrites, mostActions, noWrites, type PreparedWrites } from "../control/writes.ts";
import { ParkedItemsFailedError } from "../errors.ts";
import type { LiveRun } from "../live-run.ts";
import type { Batch } from "../progress.ts";
import { errorOf } from "../report.ts";
import type { RunInfo } from "../run-context.ts";
import type { Ending } from "../run-record.ts";
import { prepareItem, type SourceWork } from "./item.ts";
import { outOfTime } from "./reserve.ts";

/** @param wanted keys of parked items, or all of them */
export const retryParked = async (
  work: SourceWork,
  live: LiveRun,
  run: RunInfo,
  wanted: readonly string[] | "all",
): Promise<Ending> => {
  const { attempt, signal } = live;
  const { store, spec, clock, random, deadline, tables, log } = attempt;
  const budget = { clock, random, until: deadline };
  let failed = 0;
  let last: unknown;
  for await (const key of wanted === "all" ? parkedKeys(live) : new Set(wanted)) {
    if (signal.aborted) throw signal.reason;
    if (outOfTime(live)) return { outcome: "capped", backlog: "parked items (stopped by the deadline)" };
    const parked = await store.readParked(spec.name, key, budget);
    if (parked === undefined) {
      failed += 1;
      last = new Error(`no item is parked under ${JSON.stringify(key)}`);
      continue;
    }
    try {
      const item = (await work.source.readOne?.(parked.cursor, { budget, tables })) ?? parked.item;
      const gone = item === undefined;
      if (gone) log.warn({ parked: key }, "a parked item is gone from its source, and is dropped");
      const writes = gone
        ? noWrites
        : prepareItem(work, live, parked.cursor, await work.process(item, run), mostActionsOfRetry);
      await live.commit(batchFor(writes, store.unpark(spec.name, key), gone ? "skipped" : "done"));
    } catch (error) {
      if (signal.aborted) throw error;
      failed += 1;
      last = error;
      log.error({ parked: key, error: errorOf(error) }, "a parked item failed again, and stays parked");
    }
  }
  if (failed > 0) throw new ParkedItemsFailedError(spec.name, failed, last);
  return { outcome: "succeeded" };
};

/** One write takes the item out of the parked ones. */
const mostActionsOfRetry = mostActions - 1;

/** An item whose own condition doesn't hold needn't be done any more: it is only taken out. */
const batchFor = (writes: PreparedWrites, unpark: PreparedWrites, fate: "done" | "skipped"): Batch => ({
  writes: joinWrites([unpark, writes]),
  items: fate === "done" ? 1 : 0,
  itemsSkipped: fate === "skipped" ? 1 : 0,
  withoutRejected: ({ rejected }) =>
    fate === "done" && rejected.every(({ index, code }) => index > 0 && code === "ConditionalCheckFailed")
      ? batchFor(noWrites, unpark, "skipped")
      : undefined,
});

async function* parkedKeys(live: LiveRun): AsyncGenerator<string> {
  for await (const { key } of parkedItems(live)) yield key;
}

/** All parked items of a run's job, in the order of their keys. */
export async function* parkedItems({ attempt }: LiveRun): AsyncGenerator<ParkedItem> {
  const { store, spec, clock, random, deadline } = attempt;
  let after: string | undefined;
  do {
    const page = await store.parked(
      spec.name,
      { limit: 100, ...(after === undefined ? {} : { after }) },
      { clock, random, until: deadline },
    );
    yield* page.items;
    after = page.next;
  } while (after !== undefined);
}
