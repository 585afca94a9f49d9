/** Doing one item: its writes, or what becomes of it when that fails. */
import { pause } from "../clock.ts";
import { mostActions, type PreparedWrites } from "../control/writes.ts";
import { CommitRefusedError, hasCode, ParkLimitError } from "../errors.ts";
import type { Work } from "../job.ts";
import type { Json } from "../json.ts";
import type { LiveRun } from "../live-run.ts";
import { errorOf } from "../report.ts";
import type { RunInfo } from "../run-context.ts";
import type { Lot } from "./packing.ts";

export type SourceWork = Work & { readonly shape: "source" };

interface Input {
  readonly item: unknown;
  readonly cursor: Json;
}

/** `start` begins an item's work, several of them at once; `settle` says what it comes to, one after the other. */
export const itemDoer = (work: SourceWork, live: LiveRun, run: RunInfo) => {
  const { clock, random, store, log, spec } = live.attempt;
  const { maxAttempts, maxParked } = work;
  let parked = 0;

  const attempt = ({ item, cursor }: Input): PreparedWrites | Promise<PreparedWrites> => {
    const result = work.process(item, run);
    return result instanceof Promise
      ? result.then((writes) => prepareItem(work, live, cursor, writes))
      : prepareItem(work, live, cursor, result);
  };

  const again = async (input: Input, first: unknown): Promise<PreparedWrites> => {
    let error = first;
    for (let failures = 1; failures < maxAttempts; failures += 1) {
      log.warn({ cursor: input.cursor, error: errorOf(error) }, "an item failed, and is tried again");
      await pause(clock, random() * firstDelayMs * 2 ** failures, live.signal);
      if (live.signal.aborted) throw live.signal.reason;
      try {
        return await attempt(input);
      } catch (caught) {
        error = caught;
      }
    }
    throw error;
  };

  const start = (input: Input): PreparedWrites | Promise<PreparedWrites> => {
    if (work.onItemError === "stop") return attempt(input);
    try {
      const result = attempt(input);
      return result instanceof Promise ? result.catch((error) => again(input, error)) : result;
    } catch (error) {
      return again(input, error);
    }
  };

  const park = ({ item, cursor }: Input, error: unknown): Lot => {
    parked += 1;
    if (parked > maxParked) throw new ParkLimitError(spec.name, maxParked, error);
    log.error({ cursor, error: errorOf(error), attempts: maxAttempts }, "an item was parked");
    const kept = work.source.readOne === undefined ? { item } : {};
    const writes = store.park(spec.name, {
      cursor,
      ...kept,
      attempts: maxAttempts,
      error: errorOf(error),
      at: clock.now(),
      run: live.attempt.runId,
    });
    return { cursor, writes, fate: "parked" };
  };

  const settle = async (input: Input, result: Promise<PreparedWrites>): Promise<Lot> => {
    try {
      return { cursor: input.cursor, writes: await result };
    } catch (error) {
      const stops = work.onItemError === "stop" || live.signal.aborted || hasCode(error, "RUN_ENDED");
      if (stops) throw error;
      return park(input, error);
    }
  };

  return { start, settle };
};

const firstDelayMs = 50;

/**
 * The writes of one item, checked; an error names the item by its cursor.
 * @param most how many there may be
 */
export const prepareItem = (
  { source }: SourceWork,
  live: LiveRun,
  cursor: Json,
  writes: unknown,
  most = mostActions,
): PreparedWrites => {
  const subject = `${source.name}: process, for the item at cursor ${shown(cursor)},`;
  if (!Array.isArray(writes)) {
    throw new CommitRefusedError(
      `${subject} must return an array of writes, and returned ${writes === null ? "null" : typeof writes}`,
    );
  }
  if (writes.length > most) {
    const beside = most === mostActions ? "" : ", beside the write that takes it out of the parked ones";
    throw new CommitRefusedError(
      `${subject} returned ${writes.length} writes, and one item takes at most ${most}: its work has to fit one transaction${beside}`,
      most,
    );
  }
  try {
    return live.attempt.store.prepare(writes, cursor);
  } catch (error) {
    if (!(error instanceof CommitRefusedError)) throw error;
    throw new CommitRefusedError(`${subject} returned what can't be committed: ${error.message}`, error.index, {
      cause: error,
    });
  }
};

const shown = (cursor: Json): string => {
  const text = JSON.stringify(cursor);
  return text.length > longestShown ? `${text.slice(0, longestShown)}…` : text;
};
const longestShown = 200;
