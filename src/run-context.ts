/** What a job's own code gets of its run. */
import type { Write } from "./control/writes.ts";
import { CommitRefusedError } from "./errors.ts";
import type { Json } from "./json.ts";
import type { LiveRun } from "./live-run.ts";
import type { Logger } from "./observe/log.ts";
import { callOnce, type Effect } from "./once.ts";
import type { Ending } from "./run-record.ts";

/** One instant at which the job is due. Its identity is the scheduled time, never the delivery. */
export interface Tick {
  /** ISO 8601 in UTC: the tick's identity. */
  readonly id: string;
  readonly at: Date;
}

export interface CommitOptions<Watermark extends Json = Json> {
  /** Becomes visible together with the writes: everything up to it has been done. At most 8 KB as JSON. */
  readonly watermark?: Watermark;
  /**
   * How many items these writes are the work of, for records and metrics.
   * @default the number of writes
   */
  readonly items?: number;
}

/** What every shape of work knows about its run. */
export interface RunInfo<Watermark extends Json = Json> {
  readonly job: string;
  readonly id: string;
  /** Greater than that of every earlier run of the job. Hand it to outside systems that can refuse a lower one. */
  readonly fence: number;
  /** The latest tick that the run covers; `undefined` for a manual run that covers none. */
  readonly tick: Tick | undefined;
  /** As of the last commit, of this run or an earlier one. */
  readonly watermark: Watermark | undefined;
  /** Aborts when the run must stop: at its deadline, on SIGTERM, or when the lease is lost. */
  readonly signal: AbortSignal;
  /** Milliseconds left until the deadline; `Infinity` where there is none. */
  remainingMs(): number;
  /**
   * Calls an effect outside DynamoDB once for `key`, and remembers its result: a later call with the same key, in this run
   * or another one, returns it for 400 days. In a dry run the effect isn't called and the result is `undefined`.
   *
   * An effect that throws may have been done: it stays open, and the job's `onUnknown` decides next time, unless it throws
   * `NotDoneError`. Takes a read and two commits.
   *
   * @param key what the effect is for, such as `invoice-2026-03`: at most 900 bytes
   * @throws EffectUnknownError when an earlier run began it, its end is unknown, and `onUnknown` is "block"
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: an async function without a result gives Promise<void>
  once<Result extends Json | void>(
    key: string,
    effect: (effect: Effect) => Result | Promise<Result>,
  ): Promise<Result | undefined>;
  /** Commits are checked and counted, and not sent. */
  readonly dryRun: boolean;
  readonly log: Logger;
}

/** The run as a `tick` function gets it. */
export interface TickRun<Watermark extends Json = Json> extends RunInfo<Watermark> {
  /**
   * Writes under the run's fence, all of it or nothing, and resolves when that is known to have been applied.
   *
   * Commits of one run go out one after the other in the order they were asked for. Success means that it was applied,
   * not that the lease is still held. A commit that fails without anybody looking makes the run fail, and one with a
   * watermark that was asked for before an earlier one's failure was looked at isn't sent, but fails with it: the
   * watermark would pass over work that wasn't done.
   *
   * @param writes at most 99 TransactWriteItems entries with native values, none of them to the control table
   * @throws CommitRefusedError before anything is sent, naming the write by its index and the limit
   * @throws WriteRejectedError when DynamoDB rejected a write: nothing was written
   * @throws LeaseLostError when another run has been granted the lease: stop
   * @throws RunEndedError when the run is over
   * @throws OutcomeUnknownError when it couldn't be found out in time: no other commit of this run goes out
   */
  commit(writes: readonly Write[], options?: CommitOptions<Watermark>): Promise<void>;
}

/** The run as a `run` function or a wrapped handler gets it. */
export interface Run<Watermark extends Json = Json> extends TickRun<Watermark> {
  /**
   * Keeps a last batch of writes, which is sent in one transaction with the end of the run once the work has returned:
   * a small run takes two round trips this way. Nothing of it is written unless the run succeeds. Once per run.
   *
   * @throws CommitRefusedError as `commit` does, at once
   */
  commitAtEnd(writes: readonly Write[], options?: CommitOptions<Watermark>): void;
  /**
   * Says that the work stopped at a bound of its own with work left: the run ends as `capped`, which is a success.
   * @param left what is left, in a few words
   */
  capped(left?: string): void;
}

/** A run as its own code sees it, and how the work ended if it returns now. */
export const runContext = (live: LiveRun): { readonly run: Run; readonly ending: () => Ending } => {
  const { attempt } = live;
  const { store, clock, spec } = attempt;
  let ending: Ending = { outcome: "succeeded" };
  let log: Logger | undefined;
  const batch = (writes: readonly Write[], { watermark, items }: CommitOptions = {}) => ({
    writes: store.prepare(writes, watermark),
    items: countOf(items ?? writes.length),
    ...(watermark === undefined ? {} : { watermark }),
  });
  const run: Run = {
    job: spec.name,
    id: attempt.runId,
    fence: live.fence,
    get tick() {
      return live.through === undefined ? undefined : tickAt(live.through);
    },
    get watermark() {
      return live.watermark;
    },
    signal: live.signal,
    remainingMs: () => Math.max(0, attempt.deadline - clock.now()),
    dryRun: live.dryRun,
    get log() {
      log ??= attempt.log.child({ fence: live.fence });
      return log;
    },
    commit: (writes, options) => {
      // Refused at once, but as a rejection: a promise's failure is looked for in one place only.
      try {
        return live.commit(batch(writes, options));
      } catch (error) {
        return live.refuse(error);
      }
    },
    // biome-ignore lint/suspicious/noConfusingVoidType: as in its declaration
    once: <Result extends Json | void>(key: string, effect: (effect: Effect) => Result | Promise<Result>) =>
      callOnce(live, spec.onUnknown, key, effect) as Promise<Result | undefined>,
    commitAtEnd: (writes, options) => live.stage(batch(writes, options)),
    capped: (left) => {
      ending = { outcome: "capped", ...(left === undefined ? {} : { backlog: left }) };
    },
  };
  return { run, ending: () => ending };
};

/** Records, metrics and the guard count items: a number that is none would make each of them say so. */
const countOf = (items: number): number => {
  if (Number.isSafeInteger(items) && items >= 0) return items;
  throw new CommitRefusedError(`items is ${items}, and must be a whole number of at least 0`);
};

export const tickAt = (instant: number): Tick => ({ id: new Date(instant).toISOString(), at: new Date(instant) });
