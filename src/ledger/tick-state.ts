/** The one state of a tick. Pure; the states and their order are in entry.ts. */
import type { ControlState, RunEntry } from "../control/control-store.ts";
import { deliveryMs, dutyAt } from "../watchdog/duty.ts";
import { activeSinceOf } from "../watchdog/judge.ts";
import type { WatchedJob } from "../watchdog/watched-job.ts";
import type { Attempts, Pause, Try } from "./attempts.ts";
import type { LedgerEntry } from "./entry.ts";
import { leftOut, type Settlement } from "./settlements.ts";

/** @param dueAfter the job's next tick after another */
export const settledEntry = (
  tick: number,
  { by }: Settlement,
  dueAfter: (tick: number) => number | undefined,
  offSchedule: true | undefined,
): LedgerEntry => {
  const [settler, ...others] = by;
  const off = offSchedule ? { offSchedule } : {};
  const named = settler.run === undefined ? {} : { run: settler.run };
  if (others.length > 0) {
    return { tick, state: "doubled", ...named, others: others.map(({ run }) => run ?? "(an operator's skip)"), ...off };
  }
  if (settler.act !== undefined) {
    return { tick, state: "skipped", reason: "operator", by: settler.act.by, why: settler.act.why, ...off };
  }
  const reason = leftOut(settler, tick);
  if (reason === "before startAt") return { tick, state: "before", ...named, ...off };
  if (reason === "calendar") return { tick, state: "calendar", ...named, ...off };
  if (reason !== undefined) return { tick, state: "skipped", reason, ...named, ...off };
  const own = settler.last === tick || settler.startedAt < (dueAfter(tick) ?? Number.POSITIVE_INFINITY);
  return { tick, state: own ? "done" : "covered", ...named, ...off };
};

/** What is known of the ticks that aren't settled. Instants are in milliseconds since the epoch. */
export interface Unsettled {
  readonly job: WatchedJob;
  readonly state: ControlState | undefined;
  readonly now: number;
  readonly tried: Attempts;
  /** The run on the control item, unless it is on record by now. */
  readonly going: RunEntry | undefined;
  readonly pauses: readonly Pause[];
}

export const unsettledIn = (known: Unsettled) => {
  const { job, state, now, tried, pauses } = known;
  const since = state?.since ?? now;
  const startAt = job.catchUp.startAt ?? Number.NEGATIVE_INFINITY;
  const expired = known.going !== undefined && (state?.leaseUntil ?? 0) + job.skewMs < now;
  if (expired && known.going?.tick !== undefined) tried.addTry({ run: known.going.id, through: known.going.tick });
  const going = expired ? undefined : known.going;
  const activeSince = state === undefined ? undefined : activeSinceOf(state, now);

  const ofTry = (tick: number, { run, outcome }: Try): LedgerEntry =>
    outcome === "capped" || outcome === "dry_run"
      ? { tick, state: "owed", run, outcome }
      : { tick, state: "failed", run, ...(outcome === undefined ? {} : { outcome }) };

  const stateOf = (tick: number): LedgerEntry => {
    if (tick < startAt) return { tick, state: "before" };
    // One from before the job was known is only done when it is delivered itself: the first of all may be one.
    const isFor = (through: number | undefined) =>
      through !== undefined && (tick > since ? tick <= through : tick === through);
    const last = tried.lastTry(tick);
    if (going !== undefined && isFor(going.tick)) return { tick, state: "running", run: going.id };
    if (last !== undefined && isFor(last.through)) return ofTry(tick, last);
    if (tick <= since) return { tick, state: "before" };
    // It would have been started up to so much later.
    const startedBy = tick + job.jitterMs + deliveryMs;
    const pause = pauses.find(({ from, to }) => startedBy >= from && tick < to);
    if (pause !== undefined) return { tick, state: "paused", by: pause.by, why: pause.why };
    if (going !== undefined && tick >= going.startedAt) return { tick, state: "held", run: going.id };
    const holding = tried.holding(tick);
    if (holding !== undefined) return { tick, state: "held", run: holding.run };
    if (state?.pending !== undefined && tick <= state.pending) return { tick, state: "held" };
    const { by } = dutyAt(job, job.schedule as NonNullable<WatchedJob["schedule"]>, tick, activeSince, undefined);
    return now > by ? { tick, state: "missed" } : { tick, state: "owed", lateFrom: by };
  };

  /** Ticks that were delivered, whatever the schedule says by now, ascending. */
  const delivered = [
    ...tried.delivered(),
    ...(state?.pending === undefined ? [] : [state.pending]),
    ...(going?.tick === undefined ? [] : [going.tick]),
  ];
  return { stateOf, delivered: [...new Set(delivered)].sort((one, other) => one - other) };
};
