/**
 * What becomes of a run that was asked for: from the control item while it goes, from its record once it has ended. Only
 * reads. An attempt that never becomes a run leaves no record; that it didn't is found out from the control item as far as
 * that can be.
 */
import { pause } from "../clock.ts";
import type { ControlState, RunEntry, RunRecord } from "../control/control-store.ts";
import { pauseInForce } from "../control/pause.ts";
import { budgetOf, clockOf, type OperateDeps } from "./operator.ts";
import { listRuns } from "./run-history.ts";
import { isSettled, type StartedRun } from "./start-run.ts";

/** Where a run stands. */
export type Following =
  /** Nothing of it is seen yet; another run may hold the lease meanwhile. */
  | { readonly kind: "unseen"; readonly holder?: RunEntry; readonly queued: boolean; readonly sinceMs: number }
  | { readonly kind: "going"; readonly run: RunEntry; readonly sinceMs: number };

export type Followed =
  /** The run that was asked for has ended. */
  | { readonly kind: "ended"; readonly record: RunRecord }
  /** Another run has settled its tick; `by` where it is on record. */
  | { readonly kind: "covered"; readonly by?: RunRecord }
  /** No run of it was seen, and none can have been granted: the job is paused. */
  | { readonly kind: "paused"; readonly by: string; readonly why: string }
  /** Time is up: it goes on, or nothing of it was seen. */
  | { readonly kind: "given up"; readonly last: Following };

export interface FollowOptions {
  /** How long to follow it, in milliseconds. @default 20 minutes: more than a function may run */
  readonly withinMs?: number;
  /** How long to wait while nothing of it is seen and no other run holds the lease, in milliseconds. @default 2 minutes */
  readonly quietMs?: number;
  /** Told what is seen, each time that somebody looks. */
  readonly onLook?: (following: Following) => void;
  readonly signal?: AbortSignal;
}

/**
 * Follows a run until it has ended, or `withinMs` have passed, or `signal` aborts.
 * @throws StoreUnavailableError when the control table can't be read for as long as one request may be tried
 */
export const followRun = async (started: StartedRun, options: FollowOptions, deps: OperateDeps): Promise<Followed> => {
  const { withinMs = 20 * 60_000, quietMs = 2 * 60_000, signal } = options;
  const clock = clockOf(deps);
  let lastSeenAt = started.at;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 1.5, longestPauseMs)) {
    // The record is looked for after the item: a run that ended between the two is found by its record.
    const state = await deps.store.read(started.job, budgetOf(deps));
    const holds = state?.owner !== undefined && state.run?.requestId === started.requestId;
    const record = holds ? undefined : await recordOf(started, deps);
    if (record !== undefined) return { kind: "ended", record };
    const now = clock.now();
    const last = lookAt(started, state, now);
    if (last.kind === "going" || last.holder !== undefined) lastSeenAt = now;
    if (last.kind === "unseen") {
      if (started.tick !== undefined && isSettled(state, started.tick)) return covered(started, started.tick, deps);
      const paused = now - started.at >= deliveredWithinMs ? pauseOf(state, now) : undefined;
      if (paused !== undefined) return { kind: "paused", ...paused };
    }
    options.onLook?.(last);
    const isQuiet = last.kind === "unseen" && now - lastSeenAt >= quietMs;
    if (isQuiet || now - started.at >= withinMs || signal?.aborted) return { kind: "given up", last };
    await pause(clock, pauseMs, signal);
  }
};

const firstPauseMs = 200;
const longestPauseMs = 2_000;
/** An event that Lambda has taken reaches its function in this time, as a rule. */
const deliveredWithinMs = 5_000;
/** How far the function's clock may be behind ours. */
const clocksDifferMs = 60_000;

const lookAt = ({ requestId, tick, at }: StartedRun, state: ControlState | undefined, now: number): Following => {
  const sinceMs = Math.max(0, now - at);
  const run = [state?.run, ...(state?.prev ?? [])].find((entry) => entry?.requestId === requestId);
  if (run !== undefined) return { kind: "going", run, sinceMs };
  const holder = state?.owner === undefined ? undefined : state.run;
  const queued = tick !== undefined && holder !== undefined && (state?.pending ?? Number.NEGATIVE_INFINITY) >= tick;
  return { kind: "unseen", queued, sinceMs, ...(holder === undefined ? {} : { holder }) };
};

const pauseOf = (state: ControlState | undefined, now: number) => {
  const paused = state && pauseInForce(state, now);
  return paused && { by: paused.by, why: paused.why };
};

/** The newest record of the invocation: the platform may have tried it more than once. */
const recordOf = async ({ job, requestId, at }: StartedRun, deps: OperateDeps): Promise<RunRecord | undefined> => {
  // Few runs start while one waits; only where all of the first few are new, there may be more.
  for (const limit of [mostAtFirst, mostLookedAt]) {
    let allNew = true;
    for await (const record of listRuns(job, { limit }, deps)) {
      if (record.requestId === requestId) return record;
      allNew &&= record.startedAt >= at - clocksDifferMs;
    }
    if (!allNew) return undefined;
  }
  return undefined;
};
const mostAtFirst = 5;

const covered = async ({ job }: StartedRun, tick: number, deps: OperateDeps): Promise<Followed> => {
  for await (const record of listRuns(job, { limit: mostLookedAt }, deps)) {
    const { ticks, completed } = record;
    const did = ticks !== undefined && ticks.from <= tick && (completed ?? Number.NEGATIVE_INFINITY) >= tick;
    if (did && tick <= ticks.through) return { kind: "covered", by: record };
  }
  return { kind: "covered" };
};
const mostLookedAt = 250;
