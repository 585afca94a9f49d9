/**
 * The platform of a rehearsal: the scheduler, the function and the job's control item in simulated time. Nothing is run: a run
 * is a delivery, a duration and an outcome, and what it leaves behind is counted as real runs are.
 */
import type { ControlState } from "../control/control-store.ts";
import { tally } from "../control/tally.ts";
import { eventBridgeTicks } from "../schedule/index.ts";
import { deliveryMs } from "../watchdog/duty.ts";
import type { WatchedJob } from "../watchdog/watched-job.ts";

/** What becomes of deliveries, by instants in milliseconds since the epoch. */
export interface Weather {
  readonly from: number;
  readonly to: number;
  /** Nobody delivers the tick. */
  isMissed(tick: number): boolean;
  /** A run that starts then fails. */
  isFailing(at: number): boolean;
}

export interface Platform {
  /** The control item at `now`, which never goes back. */
  at(now: number): ControlState;
  /** The watchdog starts the job for a tick. */
  heal(tick: number, at: number): void;
  counts(): { readonly done: number; readonly healed: number };
}

interface Delivery {
  readonly at: number;
  readonly tick: number;
  /** From 1. */
  readonly attempt: number;
}

export const simulatePlatform = (job: WatchedJob, weather: Weather, random: () => number): Platform => {
  const { schedule } = job;
  let state: ControlState = {
    job: job.name,
    fence: 1,
    prev: [],
    recentOwners: [],
    since: weather.from - 1,
    unfinished: 0,
    failedTicks: 0,
    recent: [],
  };
  const deliveries: Delivery[] = [];
  const ticks = schedule === undefined ? [] : eventBridgeTicks(schedule).between(weather.from - 1, weather.to);
  const upcoming = ticks[Symbol.iterator]();
  let next = upcoming.next();
  let going: { readonly delivery: Delivery; readonly endsAt: number } | undefined;
  const tried = new Set<number>();
  let done = 0;
  let healed = 0;

  const deliver = (delivery: Delivery): void => {
    const index = deliveries.findLastIndex(({ at }) => at <= delivery.at) + 1;
    deliveries.splice(index, 0, delivery);
  };

  /** A run that ends; what it leaves behind is the real count of failures. */
  const end = ({ delivery, endsAt }: NonNullable<typeof going>): void => {
    const { tick, at, attempt } = delivery;
    const failed = weather.isFailing(at);
    const outcome = failed ? "failed" : "succeeded";
    const ended = { outcome, owner: state.owner ?? "", tick, at: endsAt, durationMs: endsAt - at, items: 0 } as const;
    const { owner, leaseUntil, run, ...rest } = { ...state, ...tally(state, ended, []) };
    state = rest;
    if (!failed) {
      done += [...(schedule?.between(state.tick ?? state.since, tick) ?? [])].length;
      if (tried.has(tick)) healed += 1;
      const nextTick = schedule?.next(endsAt);
      state = { ...state, tick, ...(nextTick === undefined ? {} : { nextTick }) };
    } else if (attempt < 3) deliver({ tick, at: endsAt + attempt * minuteMs, attempt: attempt + 1 });
  };

  /** Lets deliveries and ends of runs happen, in order, up to `now`. */
  const advance = (now: number): void => {
    for (;;) {
      while (!next.done && next.value <= now) {
        const tick = next.value;
        if (!weather.isMissed(tick)) {
          const at = tick + Math.floor(random() * (deliveryMs + job.jitterMs));
          deliver({ tick, at, attempt: 1 });
          if (random() < twiceShare) deliver({ tick, at: at + deliveryMs, attempt: 1 });
        }
        next = upcoming.next();
      }
      const first = deliveries[0];
      if (going !== undefined && going.endsAt <= Math.min(now, first?.at ?? now)) {
        end(going);
        going = undefined;
      } else if (first !== undefined && first.at <= now) {
        deliveries.shift();
        start(first);
      } else if (going !== undefined && going.endsAt <= now) {
        end(going);
        going = undefined;
      } else return;
    }
  };

  const start = (delivery: Delivery): void => {
    if ((state.tick ?? 0) >= delivery.tick) return;
    // Queued behind the run that is going.
    if (going !== undefined) {
      deliver({ ...delivery, at: going.endsAt });
      return;
    }
    const endsAt = delivery.at + Math.ceil(random() * longestShare * job.timeoutMs);
    going = { delivery, endsAt };
    const run = { id: `run-${delivery.at}`, owner: "run", tick: delivery.tick, startedAt: delivery.at, seq: 0 };
    state = {
      ...state,
      owner: run.owner,
      leaseUntil: endsAt + leaseMs,
      run: { ...run, trigger: "schedule" },
      unfinished: state.unfinished + 1,
    };
  };

  return {
    /** The control item at `now`. */
    at: (now: number): ControlState => {
      advance(now);
      return state;
    },
    heal: (tick: number, at: number): void => {
      const { healed: before, lastSuccessAt = 0 } = state;
      const times = before === undefined || lastSuccessAt > before.at ? 1 : before.times + 1;
      state = { ...state, healed: { tick, at, times, by: "watchdog" } };
      tried.add(tick);
      deliver({ tick, at: at + 1_000, attempt: 1 });
    },
    counts: () => ({ done, healed }),
  };
};

/** A run takes up to this share of its timeout. */
const longestShare = 0.9;
/** How much of what is delivered is delivered twice. */
const twiceShare = 0.02;
const leaseMs = 30_000;

const minuteMs = 60_000;
