import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Deliveries, planDeliveries } from "../../src/rehearse/deliveries.ts";
import { seededRandom } from "../../src/rehearse/random.ts";
import { cron, rate } from "../../src/schedule/index.ts";

const minuteMs = 60_000;
const from = Date.parse("2026-01-01T00:00:00Z");
const to = Date.parse("2027-01-01T00:00:00Z");
const day = (date: string) => Date.parse(`${date}T00:00:00Z`);

const plan = (options: Partial<Parameters<typeof planDeliveries>[0]> & { seed?: number } = {}): Deliveries =>
  planDeliveries({
    schedule: cron("15 2 * * *"),
    span: { from, to },
    outages: [],
    duplicates: 0.05,
    jitterMs: 0,
    random: seededRandom(options.seed ?? 1),
    ...options,
  });

describe("deliveries", () => {
  it("are the same for the same seed, and others for another", () => {
    const all = (seed: number) => plan({ seed, jitterMs: 90_000 }).all;
    expect(all(7)).toEqual(all(7));
    expect(all(7)).not.toEqual(all(8));
  });

  it("deliver every tick at least once, in the order of their times, and none early or later than the jitter", () => {
    fc.assert(
      fc.property(
        fc.integer(),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.integer({ min: 0, max: 3 * 60 * minuteMs }),
        (seed, duplicates, jitterMs) => {
          const schedule = rate("1 hour");
          const span = { from, to: from + 50 * 60 * minuteMs };
          const { all, duplicates: second } = plan({ seed, duplicates, jitterMs, schedule, span });
          const ticks = [...new Set(all.map(({ tick }) => tick))].sort((one, other) => one - other);
          expect(ticks).toEqual([...schedule.between(from - 1, span.to - 1)]);
          expect(all.length - second).toBe(ticks.length);
          expect(all.map(({ at }) => at)).toEqual(all.map(({ at }) => at).sort((one, other) => one - other));
          const first = new Map(
            all.map((delivery) => [delivery.tick, delivery]).reverse() as [number, { at: number }][],
          );
          for (const [tick, { at }] of first) {
            expect(at).toBeGreaterThanOrEqual(tick);
            expect(at).toBeLessThanOrEqual(tick + jitterMs);
          }
        },
      ),
      { numRuns: 50 },
    );
  });

  it("deliver the share that is asked for twice: at once, a little later, and after the next tick", () => {
    const { all, duplicates } = plan({ duplicates: 1 });
    expect(duplicates).toBe(365);
    const gaps = new Map<number, number[]>();
    for (const { tick, at } of all) gaps.set(tick, [...(gaps.get(tick) ?? []), at - tick]);
    const kinds = [...gaps.values()].map(([one = 0, other = 0]) => other - one);
    expect(new Set(kinds)).toEqual(new Set([0, minuteMs, 24 * 60 * minuteMs + 1_000]));
    expect(plan({ duplicates: 0 }).duplicates).toBe(0);
    expect(plan({ duplicates: 0.2 }).duplicates).toBeGreaterThan(40);
    expect(plan({ duplicates: 0.2 }).duplicates).toBeLessThan(110);
  });

  it("give second deliveries a request of their own", () => {
    const { all } = plan({ duplicates: 1 });
    expect(new Set(all.map(({ requestId }) => requestId)).size).toBe(all.length);
  });

  it("stop in an outage, and are the same around it", () => {
    const outages = [{ from: day("2026-02-01"), to: day("2026-02-04") }];
    const { all, notDelivered } = plan({ outages, duplicates: 0, jitterMs: 30_000 });
    const without = plan({ duplicates: 0, jitterMs: 30_000 }).all;
    expect(all).toEqual(without.filter(({ tick }) => tick < day("2026-02-01") || tick >= day("2026-02-04")));
    expect(without.length - all.length).toBe(3);
    expect(notDelivered(day("2026-02-01") + 135 * minuteMs)).toBe("outage");
    expect(notDelivered(day("2026-02-04") + 135 * minuteMs)).toBeUndefined();
  });

  it("case 16: leave out the time of day that the clocks skip", () => {
    const schedule = cron("30 2 * * *", { zone: "America/New_York" });
    const { all, notDelivered } = plan({
      schedule,
      duplicates: 0,
      span: { from: day("2025-03-08"), to: day("2025-03-11") },
    });
    expect(all.map(({ tick }) => new Date(tick).toISOString())).toEqual([
      "2025-03-08T07:30:00.000Z",
      "2025-03-10T06:30:00.000Z",
    ]);
    expect(notDelivered(Date.parse("2025-03-09T07:00Z"))).toBe("clock change");
  });

  it("know ticks from before the start", () => {
    expect(plan().notDelivered(from - 1)).toBe("before the start");
  });
});
