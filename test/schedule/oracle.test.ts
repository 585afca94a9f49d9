import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cron, eventBridgeTicks, type Schedule } from "../../src/schedule/index.ts";
import { changesIn, dayMs, type Policy, ticksByBruteForce, type Window, windowOf } from "./oracle.ts";
import { eventBridgeSchedules, type RandomSchedule, unixSchedules } from "./random-schedules.ts";

/** Zones and years with every kind of change: half hours, midnights, two hours, three hours, whole days. */
const places: ReadonlyArray<readonly [zone: string, year: number]> = [
  ["America/New_York", 2026],
  ["Europe/Berlin", 2027],
  ["Australia/Lord_Howe", 2026],
  ["America/Sao_Paulo", 2018],
  ["Asia/Beirut", 2024],
  ["America/Nuuk", 2024],
  ["America/Nuuk", 2023],
  ["Africa/Casablanca", 2025],
  ["Africa/Cairo", 2010],
  ["Antarctica/Troll", 2025],
  ["Antarctica/Casey", 2010],
  ["Antarctica/Casey", 2009],
  ["Pacific/Apia", 2011],
  ["Pacific/Kwajalein", 1993],
  ["Pacific/Chatham", 2026],
  ["America/Caracas", 2016],
  ["Asia/Pyongyang", 2018],
  ["America/Havana", 2024],
  ["Asia/Tehran", 2021],
  ["America/St_Johns", 2007],
];

const around: readonly Window[] = places.flatMap(([zone, year]) =>
  changesIn(zone, year).map((at) => windowOf(zone, Math.floor(at / dayMs) * dayMs - 3 * dayMs, 7)),
);
const schedules = fc.oneof(unixSchedules, eventBridgeSchedules);
const gaps = fc.constantFrom("after", "skip");
const overlaps = fc.constantFrom("first", "both");

const backwards = (schedule: Schedule, from: number, to: number): number[] => {
  const found: number[] = [];
  for (let tick = schedule.previous(to); tick !== undefined && tick >= from; tick = schedule.previous(tick))
    found.push(tick);
  return found.reverse();
};

const onwards = (schedule: Schedule, from: number, to: number): number[] => {
  const found: number[] = [];
  for (let tick = schedule.next(from - 1); tick !== undefined && tick < to; tick = schedule.next(tick))
    found.push(tick);
  return found;
};

/** Windows are drawn by their place in the list, so that a failure doesn't print every minute. */
const anyWindow = fc.nat({ max: around.length - 1 });

const times = (ticks: Iterable<number>) => Array.from(ticks, (tick) => new Date(tick).toISOString());

/** Compares a schedule's three ways of finding ticks with brute force; the window's first day is only there to look back on. */
function expectSame(schedule: Schedule, meaning: RandomSchedule, window: Window, policy: Policy) {
  const from = window.from + dayMs;
  const to = window.from + window.walls.length * 60_000;
  const wanted = times(ticksByBruteForce(meaning, window, policy).filter((tick) => tick >= from));
  expect(times(schedule.between(from - 1, to - 1))).toEqual(wanted);
  expect(times(onwards(schedule, from, to))).toEqual(wanted);
  expect(times(backwards(schedule, from, to))).toEqual(wanted);
}

describe("against every minute of a window", () => {
  it("a random schedule fires when its policy says so around clock changes, forwards, backwards and between", () => {
    fc.assert(
      fc.property(schedules, anyWindow, gaps, overlaps, (random, index, gap, overlap) => {
        const window = around[index]!;
        const schedule = cron(random.expression, { zone: window.zone, gap, overlap });
        expect(schedule.wildcard).toBe(random.wildcard);
        const fixed = !random.wildcard;
        expectSame(schedule, random, window, { catchUp: fixed && gap === "after", once: fixed && overlap === "first" });
      }),
      { numRuns: 800 },
    );
  });

  it("EventBridge's deliveries skip every gap and take every time of day once", () => {
    fc.assert(
      fc.property(schedules, anyWindow, (random, index) => {
        const window = around[index]!;
        const deliveries = eventBridgeTicks(cron(random.expression, { zone: window.zone }));
        expectSame(deliveries, random, window, { catchUp: false, once: true });
      }),
      { numRuns: 300 },
    );
  });

  it("`between` agrees from any instant to any other, not only at minutes", () => {
    fc.assert(
      fc.property(
        schedules,
        anyWindow,
        fc.integer({ min: 0, max: 6 * dayMs }),
        fc.integer({ min: 0, max: dayMs }),
        (random, index, start, length) => {
          const window = around[index]!;
          const after = window.from + dayMs / 2 + start;
          const through = Math.min(after + length, window.from + 7 * dayMs - 1);
          const schedule = cron(random.expression, { zone: window.zone });
          const policy = { catchUp: !random.wildcard, once: !random.wildcard };
          const wanted = ticksByBruteForce(random, window, policy).filter((tick) => tick > after && tick <= through);
          expect(times(schedule.between(after, through))).toEqual(times(wanted));
        },
      ),
      { numRuns: 500 },
    );
  });

  for (const [zone, year] of [
    ["America/New_York", 2026],
    ["Australia/Lord_Howe", 2027],
    ["Africa/Casablanca", 2025],
  ] as const) {
    it(`a random schedule agrees over the whole of ${year} in ${zone}`, () => {
      const window = windowOf(zone, Date.UTC(year, 0, 1) - dayMs, 366);
      const to = window.from + window.walls.length * 60_000;
      fc.assert(
        fc.property(schedules, (random) => {
          const schedule = cron(random.expression, { zone });
          const policy = { catchUp: !random.wildcard, once: !random.wildcard };
          const ticks = ticksByBruteForce(random, window, policy).filter((tick) => tick >= window.from + dayMs);
          const found = [...schedule.between(window.from + dayMs - 1, to - 1)];
          const wrong = ticks.findIndex((tick, index) => tick !== found[index]);
          expect([found.length, wrong]).toEqual([ticks.length, -1]);
          const shortest = ticks.reduce(
            (least, tick, index) => Math.min(least, tick - (ticks[index - 1] ?? -Infinity)),
            Infinity,
          );
          expect(schedule.shortestInterval(window.from + dayMs - 1, to - 1)).toBe(
            ticks.length > 1 ? shortest : undefined,
          );
        }),
        { numRuns: 40, endOnFailure: true },
      );
    });
  }
});
