/**
 * What will happen to a tick that isn't settled, and when: from the job's definition, its control item and the platform's
 * rules. Pure. What a person does isn't foreseen, nor whether a watchdog heals: it says when one would.
 */
import { planTicks } from "../catch-up.ts";
import type { ControlState } from "../control/control-store.ts";
import { isoOf } from "../report.ts";
import { jitterOf } from "../schedule/index.ts";
import { dutyAt, lateAfterMs, platformTriesMs } from "../watchdog/duty.ts";
import { activeSinceOf } from "../watchdog/judge.ts";
import type { LedgerEntry } from "./entry.ts";
import type { ExplainedJob } from "./explained-job.ts";

/** Instants in milliseconds since the epoch. */
export interface Upcoming {
  readonly kind: /** The run that is at it ends, or its lease does. */
    | "run"
    | "lease"
    | "resume"
    | "retry"
    | "delivery"
    | "alarm"
    | "heal"
    /** Nothing, until a person acts. */
    | "nothing";
  readonly at?: number;
  readonly sentence: string;
}

const unsettled = ["running", "failed", "paused", "held", "missed", "owed"];

export const forecast = (
  job: ExplainedJob,
  entry: LedgerEntry,
  state: ControlState | undefined,
  now: number,
): Upcoming[] => {
  if (!unsettled.includes(entry.state) || state === undefined) return [];
  const { moving, paused } = state;
  if (moving !== undefined) {
    const sentence =
      "to" in moving
        ? `Nothing will do it under this name: the job was moved to "${moving.to}" by ${moving.by} (${moving.why}), which owes it now.`
        : `Nothing will do it before the move from "${moving.from}" is gone on with: not all of that job is here yet.`;
    return [{ kind: "nothing", sentence }];
  }
  const pausedUntil = paused === undefined ? 0 : (paused.until ?? Number.POSITIVE_INFINITY);
  if (paused !== undefined && pausedUntil === Number.POSITIVE_INFINITY) {
    const sentence = `Nothing will start before somebody resumes the job, which ${paused.by} paused at ${isoOf(paused.at)} (${paused.why}).`;
    return [{ kind: "nothing", sentence }];
  }
  const upcoming: Upcoming[] = [];
  if (pausedUntil > now) {
    upcoming.push({ kind: "resume", at: pausedUntil, sentence: `The pause ends by itself at ${isoOf(pausedUntil)}.` });
  }
  const from = Math.max(now, pausedUntil);
  upcoming.push(...leaseEnds(job, entry, state, now));
  if (entry.state !== "running") upcoming.push(...starts(job, entry, state, from));
  return upcoming.length > 0
    ? upcoming
    : [{ kind: "nothing", sentence: "The schedule has no further tick: start a run by hand." }];
};

const leaseEnds = (job: ExplainedJob, entry: LedgerEntry, state: ControlState, now: number): Upcoming[] => {
  const { run, owner, leaseUntil = 0 } = state;
  if (owner === undefined || run === undefined) return [];
  const free = leaseUntil + job.skewMs;
  if (entry.state === "running") {
    const by = run.startedAt + job.timeoutMs;
    return [{ kind: "run", at: by, sentence: `Run ${run.id} has until ${isoOf(by)} (its timeout).` }];
  }
  if (free < now) {
    return [
      {
        kind: "lease",
        at: free,
        sentence: `The lease of run ${run.id} is over: the next run takes it, and records that one as crashed.`,
      },
    ];
  }
  const asked = (state.pending ?? Number.NEGATIVE_INFINITY) >= entry.tick;
  return [
    {
      kind: "lease",
      at: free,
      sentence: asked
        ? `Run ${run.id} has been asked to do it too before it ends; should it die, another one can have its lease after ${isoOf(free)}.`
        : `Run ${run.id} holds the lease; should it die, another one can have it after ${isoOf(free)}.`,
    },
  ];
};

/** Who starts the job next, from `from` on. */
const starts = (job: ExplainedJob, entry: LedgerEntry, state: ControlState, from: number): Upcoming[] => {
  const { schedule } = job;
  if (schedule === undefined) return [];
  const upcoming: Upcoming[] = [];
  const triesUntil = entry.tick + platformTriesMs(job);
  if (triesUntil > from && entry.state === "failed") {
    upcoming.push({
      kind: "retry",
      at: triesUntil,
      sentence: `The platform may try the same delivery again on its own, until about ${isoOf(triesUntil)}.`,
    });
  }
  if (entry.tick <= Math.max(state.since, state.tick ?? state.since)) {
    // The first delivery of all makes the job known, and is owed to nobody else.
    const sentence =
      "No other run will cover it: it is the tick by which the job became known. Start a run for it by hand.";
    return [...upcoming, { kind: "nothing", sentence }];
  }
  const next = schedule.next(from);
  if (next !== undefined) {
    const at = next + (job.jitterMs > 0 ? jitterOf(job.name, job.jitterMs) : 0);
    upcoming.push({ kind: "delivery", at, sentence: deliveryWords(job, entry, state, next, at) });
  }
  const duty = dutyAt(job, schedule, entry.tick, activeSinceOf(state, from), undefined);
  if (duty.by > from) {
    upcoming.push({
      kind: "alarm",
      at: duty.by,
      sentence: `If it isn't done by ${isoOf(duty.by)}, it is missed, and the watchdog's alarm counts it.`,
    });
  }
  upcoming.push(healing(job, entry, state, duty.from, from));
  return upcoming;
};

/** What the next run, for `next`, does about the tick, by the job's policy. */
const deliveryWords = (
  job: ExplainedJob,
  { tick }: LedgerEntry,
  state: ControlState,
  next: number,
  at: number,
): string => {
  const after = Math.max(state.since, state.tick ?? state.since);
  const plan = planTicks(job.schedule, job.catchUp, {
    after,
    through: next,
    delivered: [next, ...(state.pending === undefined ? [] : [state.pending])],
    now: at,
  });
  const run = `The next run is due at ${isoOf(next)}${at === next ? "" : ` (started about ${isoOf(at)}, by its jitter)`}`;
  const skipped = plan.skipped.find(({ from, through }) => tick >= from && tick <= through);
  if (skipped !== undefined) return `${run}, and will leave it out (${skipped.reason}).`;
  if (tick > plan.range.through)
    return `${run}, does ${plan.ticks.length} older ticks first (maxTicks), and leaves it to a later one.`;
  return `${run}, and covers it.`;
};

const healing = (
  job: ExplainedJob,
  { tick }: LedgerEntry,
  { healed }: ControlState,
  countsFrom: number,
  now: number,
): Upcoming => {
  const at = countsFrom + Math.max(lateAfterMs(job), platformTriesMs(job));
  if (healed !== undefined && healed.tick >= tick) {
    const times = healed.times > 1 ? `, for the ${healed.times}th time in a row without a success` : "";
    return {
      kind: "heal",
      at: healed.at,
      sentence: `A watchdog started the job for it at ${isoOf(healed.at)}${times}; it starts no tick twice, and waits longer each time.`,
    };
  }
  return {
    kind: "heal",
    at,
    sentence:
      at > now
        ? `A watchdog with heal: true would start it after ${isoOf(at)}.`
        : "A watchdog with heal: true would have started it by now: there is none, or it couldn't.",
  };
};
