/**
 * Effects outside DynamoDB, such as a payment or an e-mail.
 *
 * Guarantees: an effect whose result was recorded isn't called again; one that a run died over isn't called again unless
 * the job says so (`onUnknown: "retry"`, or a check that finds it wasn't done).
 *
 * What it can't: make the effect itself exactly once. Between the effect and the record of its result a process may die,
 * and a paused process may wake and go on with a call it has begun. Hand the idempotency key, or the fence, to the other
 * side if it takes one.
 */
import { budgetUntil } from "./attempt.ts";
import { idempotencyKeyOf } from "./control/items.ts";
import { CommitRefusedError, hasCode, InvalidOptionsError } from "./errors.ts";
import { type Json, notJson } from "./json.ts";
import type { LiveRun } from "./live-run.ts";
import { findOut, type OnUnknown } from "./on-unknown.ts";

/** What an effect is handed. */
export interface Effect {
  /** The same whenever this effect is tried again, also after a move: for systems that take an idempotency key. */
  readonly idempotencyKey: string;
  /** Greater than that of every earlier run: for systems that can refuse a lower one. */
  readonly fence: number;
  readonly signal: AbortSignal;
}

/** @throws see `RunInfo.once` */
export const callOnce = async (
  live: LiveRun,
  onUnknown: OnUnknown,
  key: string,
  effect: (effect: Effect) => unknown,
): Promise<Json | undefined> => {
  refuseKey(key);
  const { attempt, fence, signal } = live;
  const { store, spec, clock, runId, deadline } = attempt;
  if (live.dryRun) {
    attempt.log.info({ once: key }, "an effect was left out: dry run");
    return undefined;
  }
  const own = { fence, run: runId };
  const fulfil = async (result: unknown): Promise<Json | undefined> => {
    refuseResult(key, result);
    const done = { ...own, at: clock.now(), result: result as Json | undefined };
    await live.commit({ writes: store.fulfil(spec.name, key, done), items: 0 });
    return result as Json | undefined;
  };
  const seen = await store.readOnce(spec.name, key, budgetUntil(attempt, deadline));
  if (seen?.state === "done") return seen.result;
  const idempotencyKey = seen?.idempotencyKey ?? idempotencyKeyOf(spec.name, key);
  const found = seen === undefined ? undefined : await findOut(spec.name, onUnknown, key, idempotencyKey, seen);
  await live.commit({ writes: store.intend(spec.name, key, { ...own, at: clock.now(), seen }), items: 0 });
  if (found !== undefined) return fulfil(found.result);
  let result: unknown;
  try {
    result = await effect({ idempotencyKey, fence, signal });
  } catch (error) {
    if (hasCode(error, "NOT_DONE"))
      await live.commit({ writes: store.withdraw(spec.name, key, fence, runId), items: 0 });
    throw error;
  }
  return fulfil(result);
};

const longestKeyBytes = 900;
const largestResultBytes = 100 * 1024;

const refuseKey = (key: unknown): void => {
  if (typeof key === "string" && key !== "" && Buffer.byteLength(key) <= longestKeyBytes) return;
  const shown = typeof key === "string" ? `${Buffer.byteLength(key)} bytes long` : `a ${typeof key}`;
  throw new InvalidOptionsError("run.once", [`key is ${shown}, and must be a string of 1 to ${longestKeyBytes} bytes`]);
};

/** The effect is done by now, so the run fails loudly rather than forget it: the intent stays. */
const refuseResult = (key: string, result: unknown): void => {
  if (result === undefined) return;
  const problem = notJson(result);
  if (problem !== undefined)
    throw new CommitRefusedError(`the result of effect ${JSON.stringify(key)} isn't JSON: ${problem}`);
  const bytes = Buffer.byteLength(JSON.stringify(result));
  if (bytes > largestResultBytes) {
    throw new CommitRefusedError(
      `the result of effect ${JSON.stringify(key)} has ${bytes} bytes as JSON, and at most ${largestResultBytes} are kept: return what the job needs of it`,
    );
  }
};
