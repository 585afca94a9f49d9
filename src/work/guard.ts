/**
 * The guard of destructive jobs: what a run is about to affect is planned and counted before its first write, and compared
 * with a fixed limit, with the job's own history, and with the whole. A plan that is far larger than usual writes nothing.
 */
import { createHash } from "node:crypto";
import type { ControlState } from "../control/control-store.ts";
import { GuardTrippedError } from "../errors.ts";
import type { Json } from "../json.ts";
import type { LiveRun } from "../live-run.ts";
import type { RunInfo } from "../run-context.ts";

export interface Destructive {
  /** The most items that a run may affect without approval; for a job with a tick function, the most writes of one tick. */
  readonly max: number;
  /**
   * Trips at more than `factor` times the median of what the last `history` runs did (default 10, at most 20). Needs three runs on
   * record; before that only `max` (and `share`) counts.
   */
  readonly usual?: { readonly factor: number; readonly history?: number };
  /** Trips at more than `atMost` (from 0 to 1) of what `of` says is there in all. */
  readonly share?: { readonly of: (run: RunInfo) => number | Promise<number>; readonly atMost: number };
}

/** What a run is about to affect. */
export interface Plan {
  readonly count: number;
  /** Of all the planned keys: an approval is for this set and no other. */
  readonly hash: string;
  /** The first few keys, for the log. */
  readonly sample: readonly Json[];
}

/** Counts and digests keys as they come. */
export const planner = () => {
  const hash = createHash("sha256");
  const sample: Json[] = [];
  let count = 0;
  return {
    add: (key: Json) => {
      count += 1;
      hash.update(`${JSON.stringify(key)}\n`);
      if (sample.length < sampleSize) sample.push(key);
    },
    get count() {
      return count;
    },
    plan: (): Plan => ({ count, hash: hash.digest("hex"), sample }),
  };
};

const sampleSize = 5;

/** Nothing is written before the guard has passed, whoever holds the run already. */
export const holdForGuard = (destructive: Destructive | undefined, live: LiveRun): void => {
  if (destructive === undefined) return;
  live.holdWrites(
    "the job is destructive, and its guard hasn't passed yet: nothing is written before what the run is about to affect is counted (a tick returns its writes)",
  );
};

/**
 * Lets a plan pass, or throws. An approval that fits it is used up by the run's first commit or its finish.
 * @throws GuardTrippedError with the plan and the limit that it exceeds
 */
export const passGuard = async (destructive: Destructive, live: LiveRun, run: RunInfo, plan: Plan): Promise<void> => {
  const { log, clock, spec } = live.attempt;
  log.info({ planned: plan.count, hash: plan.hash, sample: plan.sample }, "planned what this run is about to affect");
  const exceeded = await limitExceeded(destructive, live.recent, run, plan.count);
  if (exceeded === undefined) return live.holdWrites(undefined);
  const { approval } = live;
  const approved =
    approval !== undefined && approval.until > clock.now() && approval.hash === plan.hash && approval.max >= plan.count;
  if (!approved) throw new GuardTrippedError(spec.name, plan, exceeded);
  log.warn({ planned: plan.count, by: approval.by, why: approval.why }, `approved although it exceeds ${exceeded}`);
  live.useApproval();
  live.holdWrites(undefined);
};

const limitExceeded = async (
  { max, usual, share }: Destructive,
  recent: ControlState["recent"],
  run: RunInfo,
  count: number,
): Promise<string | undefined> => {
  if (count > max) return `the limit of ${max}`;
  if (usual !== undefined) {
    const counts = recent.slice(-(usual.history ?? defaultHistory)).map(({ items }) => items);
    const most = usual.factor * Math.max(1, median(counts));
    if (counts.length >= leastHistory && count > most) return `${usual.factor} times what is usual (${most})`;
  }
  if (share !== undefined && count > 0) {
    const total = await share.of(run);
    if (!(count <= share.atMost * total)) return `a share of ${share.atMost} of ${total}`;
  }
  return undefined;
};

const defaultHistory = 10;
const leastHistory = 3;

const median = (counts: readonly number[]): number => {
  const sorted = [...counts].sort((one, other) => one - other);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return 0;
  return sorted.length % 2 === 1
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
};
