/**
 * Schedules against croner's own iteration, which is what one would use otherwise. Both do the same work in turns, so that
 * a slow moment of the machine meets both; the ratios hold better than the times.
 */

import { Cron } from "croner";
import { cron, type Schedule } from "../../src/schedule/index.ts";

interface Measurement {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** Reached where the value is at least this. */
  readonly goal?: number;
}

const from = Date.UTC(2027, 0, 1);
const year = Date.UTC(2028, 0, 1);
/** Far enough for the sparsest schedule to be measured for milliseconds. */
const tenYears = Date.UTC(2037, 0, 1);
const rounds = 7;

/** Runs of `count` ticks, one asked for after the other. */
const byNext = (next: (after: number) => number, count: number) => (): number => {
  let tick = from;
  for (let done = 0; done < count; done++) tick = next(tick);
  return tick;
};

/** The schedule and croner, as functions that go through the same ticks and return the last. */
const pair = (schedule: Schedule, count: number) => {
  // Without a zone croner is many times faster than with one, even with "UTC".
  const clock = schedule.zone === "UTC" ? { utcOffset: 0 } : { timezone: schedule.zone };
  const theirs = new Cron(schedule.source, { ...clock, paused: true });
  return {
    next: {
      ours: byNext((after) => schedule.next(after)!, count),
      theirs: byNext((after) => theirs.nextRun(new Date(after))!.getTime(), count),
    },
    between: {
      ours: () => {
        let done = 0;
        let last = from;
        for (const tick of schedule.between(from, tenYears)) {
          last = tick;
          if (++done === count) break;
        }
        return last;
      },
      theirs: () => {
        let last = from;
        const ticks = theirs.enumerate(new Date(from));
        for (let done = 0; done < count; done++) last = ticks.next().value!.getTime();
        return last;
      },
    },
  };
};

const elapsedMs = (work: () => unknown): number => {
  const started = performance.now();
  work();
  return performance.now() - started;
};

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1]!;

/** How many times as long as ours theirs takes: the median of rounds, each with both. */
function ratio({ ours, theirs }: { ours: () => number; theirs: () => number }): number {
  if (ours() !== theirs()) throw new Error("the two don't find the same ticks, so their times mean nothing");
  return median(Array.from({ length: rounds }, () => elapsedMs(theirs) / elapsedMs(ours)));
}

const round = (value: number, digits = 1): number => Number(value.toFixed(digits));

/** Speed of `next` and `between` as multiples of croner's, and ticks per second over a year of every minute. */
export async function benchSchedule(): Promise<Measurement[]> {
  const zone = "America/New_York";
  const subjects = [
    { what: "*/5 * * * * in UTC", schedule: cron("*/5 * * * *"), count: 3000 },
    { what: "0 9 * * 1-5 in UTC", schedule: cron("0 9 * * 1-5"), count: 2500 },
    { what: "*/5 * * * * in a zone", schedule: cron("*/5 * * * *", { zone }), count: 3000 },
    { what: "30 4 * * * in a zone", schedule: cron("30 4 * * *", { zone }), count: 1000 },
  ];
  const ratios = subjects.flatMap(({ what, schedule, count }) => {
    const { next, between } = pair(schedule, count);
    return [
      { name: `next, ${what}`, value: round(ratio(next)), unit: "times croner's speed", goal: 1 },
      { name: `between, ${what}`, value: round(ratio(between)), unit: "times croner's speed", goal: 1 },
    ];
  });
  const throughput = [cron("* * * * *"), cron("* * * * *", { zone })].map((schedule) => {
    let ticks = 0;
    const tookMs = median(
      Array.from({ length: 3 }, () =>
        elapsedMs(() => {
          ticks = [...schedule.between(from, year)].length;
        }),
      ),
    );
    const name = `a year of every minute, ${schedule.zone}`;
    return { name, value: Math.round((ticks / tookMs) * 1000), unit: "ticks/s", goal: 500_000 };
  });
  const made = 500;
  const makingMs = elapsedMs(() => {
    for (let index = 0; index < made; index++) cron("0 9 * * 1-5");
  });
  return [...ratios, ...throughput, { name: "making a schedule", value: round((makingMs / made) * 1000), unit: "µs" }];
}
