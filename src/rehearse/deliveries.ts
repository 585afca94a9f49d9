/**
 * What EventBridge Scheduler would deliver, and when: it leaves out a time of day that the clocks skip, delivers at least
 * once, so that some ticks come twice, and within the job's jitter as late as it likes
 * (https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-flexible-time-windows.html). Pure.
 */
import { eventBridgeTicks, type Schedule } from "../schedule/index.ts";

/** Instants from `from` up to, and not including, `to`, in milliseconds since the epoch. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** One invocation. */
export interface Delivery {
  readonly tick: number;
  readonly at: number;
  /** The same on the platform's own retries, another one for a second delivery. */
  readonly requestId: string;
  /** From 1. */
  readonly attempt: number;
}

/** Why a due tick isn't delivered. */
export type NotDelivered =
  /** The job owes it from a time before the stretch that is looked at. */
  | "before the start"
  /** The scheduler leaves its time out, or fires only once for the two times that it occurs. */
  | "clock change"
  | "outage";

export interface Deliveries {
  /** In the order of their times. */
  readonly all: readonly Delivery[];
  /** How many of them are second ones. */
  readonly duplicates: number;
  /** Why `tick`, which is due, is never delivered; undefined where it is. */
  notDelivered(tick: number): NotDelivered | undefined;
}

/** The deliveries of the ticks in `span`. */
export const planDeliveries = (plan: {
  readonly schedule: Schedule;
  readonly span: Span;
  /** Nothing is delivered whose tick lies in one of these. */
  readonly outages: readonly Span[];
  /** The share of ticks that are delivered twice, from 0 to 1. */
  readonly duplicates: number;
  /** How late a delivery may be, in milliseconds. */
  readonly jitterMs: number;
  readonly random: () => number;
}): Deliveries => {
  const { schedule, span, outages, jitterMs, random } = plan;
  const all: Delivery[] = [];
  const ticks = new Set<number>();
  let second: Delivery | undefined;
  for (const tick of eventBridgeTicks(schedule).between(span.from - 1, span.to - 1)) {
    // As many draws for each tick, so that an outage changes nothing for the others.
    const [late, twice, how] = [random(), random(), random()];
    ticks.add(tick);
    if (isIn(outages, tick)) continue;
    const at = tick + Math.floor(late * (jitterMs + 1));
    const requestId = new Date(tick).toISOString();
    all.push({ tick, at, requestId, attempt: 1 });
    if (second !== undefined) all.push({ ...second, at: Math.max(second.at, at + secondMs) });
    second = undefined;
    if (twice >= plan.duplicates) continue;
    const again = { tick, at, requestId: `${requestId} again`, attempt: 1 };
    if (how < 1 / 3) all.push(again);
    else if (how < 2 / 3) all.push({ ...again, at: at + minuteMs });
    // Later than the tick that follows.
    else second = again;
  }
  if (second !== undefined) all.push(second);
  return {
    all: all.sort((one, other) => one.at - other.at),
    duplicates: all.length - new Set(all.map(({ tick }) => tick)).size,
    notDelivered: (tick) => {
      if (tick < span.from) return "before the start";
      if (!ticks.has(tick)) return "clock change";
      return isIn(outages, tick) ? "outage" : undefined;
    },
  };
};

const secondMs = 1_000;
const minuteMs = 60_000;

const isIn = (spans: readonly Span[], instant: number): boolean =>
  spans.some(({ from, to }) => instant >= from && instant < to);
