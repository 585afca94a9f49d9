/** The plan of a run's ticks, against a rule for each tick that is written down beside it and not taken from it. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CatchUpPolicy, planTicks, type TickPlan } from "../../src/catch-up.ts";
import { calendar, cron, rate, type Schedule, withCalendar } from "../../src/schedule/index.ts";

const minuteMs = 60_000;
const start = Date.parse("2026-03-29T00:00:00Z");

/** A reason for each tick that is left out for good, and each tick once. */
const reasonsIn = (plan: TickPlan, due: readonly number[]): ReadonlyMap<number, string> => {
  const reasons = new Map<number, string>();
  for (const { from, through, count, reason } of plan.skipped) {
    const inside = due.filter((tick) => tick >= from && tick <= through);
    expect(inside).toHaveLength(count);
    for (const tick of inside) {
      expect(reasons.has(tick)).toBe(false);
      reasons.set(tick, reason);
    }
  }
  return reasons;
};

interface Case {
  readonly schedule: Schedule | undefined;
  /** Of the schedule; two are removed by a calendar, if there is one. */
  readonly removed: ReadonlySet<number>;
  readonly policy: CatchUpPolicy;
  readonly after: number;
  readonly through: number;
  readonly delivered: readonly number[];
  readonly now: number;
}

const schedules: fc.Arbitrary<Pick<Case, "schedule" | "removed">> = fc
  .tuple(
    fc.constantFrom(
      rate("1 minute"),
      rate("7 minutes"),
      cron("*/5 * * * *"),
      cron("30 2 * * *", { zone: "Europe/Berlin" }),
      undefined,
    ),
    fc.array(fc.integer({ min: 0, max: 90 }), { maxLength: 4 }),
  )
  .map(([schedule, minutes]) => {
    const freezes = minutes.map((minute) => ({
      from: start + minute * minuteMs,
      to: start + (minute + 3) * minuteMs,
    }));
    if (schedule === undefined || freezes.length === 0) return { schedule, removed: new Set() };
    const without = withCalendar(schedule, calendar(freezes));
    const all = [...schedule.between(start - 1, start + 100 * minuteMs)];
    const frozen = all.filter((tick) => freezes.some(({ from, to }) => tick >= from && tick < to));
    return { schedule: without, removed: new Set(frozen) };
  });

const cases: fc.Arbitrary<Case> = fc
  .record({
    schedule: schedules,
    catchUp: fc.constantFrom("all", "latest", "none"),
    maxTicks: fc.option(fc.integer({ min: 1, max: 12 }), { nil: undefined }),
    startWithin: fc.option(fc.integer({ min: 0, max: 100 }), { nil: undefined }),
    startAt: fc.option(fc.integer({ min: -10, max: 100 }), { nil: undefined }),
    after: fc.integer({ min: -1, max: 80 }),
    minutes: fc.integer({ min: 1, max: 100 }),
    other: fc.option(fc.integer({ min: -20, max: 100 }), { nil: undefined }),
    late: fc.integer({ min: 0, max: 60 }),
  })
  .map(({ schedule, catchUp, maxTicks, startWithin, startAt, after, minutes, other, late }) => {
    const through = start + (after + minutes) * minuteMs;
    const delivered = [through, ...(other === undefined ? [] : [start + other * minuteMs])].filter(
      (tick) => tick <= through,
    );
    return {
      ...schedule,
      policy: {
        catchUp,
        ...(maxTicks === undefined ? {} : { maxTicks }),
        ...(startWithin === undefined ? {} : { startWithinMs: startWithin * minuteMs }),
        ...(startAt === undefined ? {} : { startAt: start + startAt * minuteMs }),
      },
      after: start + after * minuteMs,
      through,
      delivered,
      now: through + late * minuteMs,
    };
  });

/** What must become of each tick: done, a reason to leave it out, or owed. */
const rule = ({ schedule, removed, policy, after, through, delivered, now }: Case) => {
  const due = [...new Set([...(schedule?.between(after, through) ?? []), ...delivered])]
    .filter((tick) => tick > after && tick <= through)
    .sort((one, other) => one - other);
  const unwanted = (tick: number): string | undefined => {
    if (removed.has(tick)) return "calendar";
    if (policy.startAt !== undefined && tick < policy.startAt) return "before startAt";
    if (policy.startWithinMs !== undefined && now > tick + policy.startWithinMs) return "startWithin";
    return policy.catchUp === "none" && !delivered.includes(tick) ? "catchUp" : undefined;
  };
  const wanted = due.filter((tick) => unwanted(tick) === undefined);
  const most = policy.maxTicks ?? (policy.catchUp === "latest" ? 1 : due.length);
  const left = wanted.length - Math.min(most, wanted.length);
  const beforeLeft = wanted[most - 1] as number;
  return new Map(
    due.map((tick) => {
      if (policy.catchUp === "latest") {
        const passedOver = wanted.indexOf(tick) >= 0 && wanted.indexOf(tick) < left;
        return [tick, unwanted(tick) ?? (passedOver ? "catchUp" : "done")];
      }
      return [tick, left > 0 && tick > beforeLeft ? "owed" : (unwanted(tick) ?? "done")];
    }),
  );
};

describe("the plan of a run", () => {
  it("gives every due tick exactly one fate: done, left out with its reason, or owed", () => {
    const seen = new Set<string>();
    fc.assert(
      fc.property(cases, (example) => {
        const { schedule, policy, ...window } = example;
        const plan = planTicks(schedule, policy, window);
        const expected = rule(example);
        const due = [...expected.keys()];
        const reasons = reasonsIn(plan, due);
        const fates = due.map((tick) => {
          const fate = [plan.ticks.includes(tick) && "done", reasons.get(tick), tick > plan.range.through && "owed"];
          expect(fate.filter(Boolean)).toHaveLength(1);
          return [tick, fate.find(Boolean)];
        });
        expect(fates).toEqual([...expected]);
        for (const [, fate] of fates) seen.add(fate as string);

        expect(plan.ticks).toEqual([...plan.ticks].sort((one, other) => one - other));
        expect(plan.range.from).toBe(due[0]);
        const skipped = plan.skipped.reduce((sum, { count }) => sum + count, 0);
        expect(plan.ticks.length + skipped).toBe(plan.range.count);
        expect(plan.range.count + plan.owed).toBe(due.length);
      }),
      { numRuns: 1_500 },
    );
    expect([...seen].sort()).toEqual(["before startAt", "calendar", "catchUp", "done", "owed", "startWithin"]);
  });

  const everyFive = cron("*/5 * * * *");
  const noon = Date.parse("2026-01-01T12:00:00Z");
  const minutes = (ticks: readonly number[]) => ticks.map((tick) => (tick - noon) / minuteMs);

  it("case 19: counts from the last tick done, not from now", () => {
    const window = { after: noon, through: noon + 10 * minuteMs, delivered: [], now: noon + 10 * minuteMs };
    expect(minutes(planTicks(everyFive, { catchUp: "all" }, window).ticks)).toEqual([5, 10]);
  });

  it("does ticks that were delivered though the schedule no longer has them", () => {
    const delivered = [noon + 3 * minuteMs, noon + 9 * minuteMs];
    const window = { after: noon, through: delivered[1] as number, delivered, now: noon + 9 * minuteMs };
    for (const catchUp of ["all", "none"] as const) {
      const plan = planTicks(everyFive, { catchUp }, window);
      expect(minutes(plan.ticks)).toEqual(catchUp === "all" ? [3, 5, 9] : [3, 9]);
    }
    expect(minutes(planTicks(undefined, { catchUp: "all" }, window).ticks)).toEqual([3, 9]);
  });

  it("does the delivered tick of a job that has only just become known, and none before it", () => {
    const window = { after: noon + 1_500, through: noon, delivered: [noon], now: noon + 1_500 };
    const plan = planTicks(everyFive, { catchUp: "all" }, window);
    expect(plan).toEqual({ range: { from: noon, through: noon, count: 1 }, ticks: [noon], skipped: [], owed: 0 });
  });

  it("does a year of minutes in a moment's work for each", () => {
    const through = noon + 365 * 24 * 60 * minuteMs;
    const policy = { catchUp: "all", maxTicks: 24 } as const;
    const plan = planTicks(rate("1 minute"), policy, { after: noon, through, delivered: [through], now: through });
    expect([plan.ticks.length, plan.owed]).toEqual([24, 365 * 24 * 60 - 24]);
  });
});
