/**
 * Delivers every job's ticks as platforms do: most of them once and in time, some twice, some not at all, and those whose
 * run failed or died once more. Every delivery finds another clock, some ahead, some behind.
 */
import type { Job } from "cronfence";
import type { Crew } from "./crew.ts";
import type { Chance } from "./deck.ts";
import { lease, requestTimeoutMs } from "./jobs.ts";
import type { Tally } from "./tally.ts";
import { pass, type WorldTime } from "./world-time.ts";

/** How far a clock may be off, in milliseconds of the drill's time: further than a lease allows for. */
export const mostOffsetMs = 15_000;

export interface DeliveryOptions {
  readonly crew: Crew;
  readonly time: WorldTime;
  readonly chance: Chance;
  readonly count: Tally;
  readonly signal: AbortSignal;
}

/** Fires the job's ticks after `after` as they come due, until `signal` aborts; resolves when all are through. */
export const deliverTicks = async (job: Job, after: number, options: DeliveryOptions): Promise<void> => {
  const { time, chance, count, signal } = options;
  const open: Promise<void>[] = [];
  for (let tick = job.schedule?.next(after); tick !== undefined; tick = job.schedule?.next(tick)) {
    await time.until(tick, signal);
    if (signal.aborted) break;
    if (chance.happens(0.1)) {
      count("delivery: left out");
      continue;
    }
    open.push(deliver(job, tick, options));
    if (!chance.happens(0.25)) continue;
    count("delivery: twice");
    open.push(deliver(job, tick, options));
  }
  await Promise.all(open);
};

const tries = 3;
const retryAfterMs = 300;

const deliver = async (job: Job, tick: number, options: DeliveryOptions): Promise<void> => {
  const { crew, time, chance, count, signal } = options;
  for (let attempt = 1; attempt <= tries && !signal.aborted; attempt += 1) {
    const offset = chance.happens(0.4) ? Math.round(chance.between(-mostOffsetMs, mostOffsetMs)) : 0;
    if (offset !== 0) count(`clock: ${offset > 0 ? "ahead" : "behind"}`);
    const fired = crew.fire(commandFor(job, tick, time, offset));
    if (fired === undefined) return count("delivery: no process was free");
    // A run that fails throws in a function, and the platform delivers its tick again.
    const over = await fired.then(
      ({ outcome }) => outcome !== "failed" && outcome !== "lease_lost" && outcome !== "timed_out",
      () => false,
    );
    if (over) return;
    count("delivery: again after a failure");
    await pass(retryAfterMs, signal);
  }
};

export const commandFor = (job: Job, tick: number, time: WorldTime, offset = 0) => ({
  job: job.name,
  tick,
  at: time.now() + offset,
  speed: time.speed,
  requestTimeoutMs,
  ...lease,
});
