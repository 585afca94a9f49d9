import { describe, expect, it } from "vitest";
import { cron, eventBridgeTicks, type Schedule } from "../../src/schedule/index.ts";
import golden from "./dst-vectors.json" with { type: "json" };

const minute = (tick: number) => `${new Date(tick).toISOString().slice(0, 16)}Z`;

/** All ticks of a window, from inclusive and to exclusive, as the vectors have it. */
const ticksOf = (schedule: Schedule, from: string, to: string) =>
  [...schedule.between(Date.parse(from) - 1, Date.parse(to) - 1)].map(minute);

const backwards = (schedule: Schedule, from: string, to: string) => {
  const found: string[] = [];
  for (let tick = schedule.previous(Date.parse(to)); tick !== undefined && tick >= Date.parse(from); ) {
    found.unshift(minute(tick));
    tick = schedule.previous(tick);
  }
  return found;
};

describe("golden vectors for clock changes", () => {
  for (const { id, zone, schedule, from, to, why, wildcard, expected } of golden.vectors) {
    it(`${id}: ${why}`, () => {
      const ours = cron(schedule, { zone });
      expect(ours.wildcard).toBe(wildcard);
      expect(ticksOf(ours, from, to)).toEqual(expected.vixie);
      expect(backwards(ours, from, to)).toEqual(expected.vixie);
    });

    it(`${id}: EventBridge's deliveries`, () => {
      const deliveries = eventBridgeTicks(cron(schedule, { zone }));
      expect(ticksOf(deliveries, from, to)).toEqual(expected.eventbridge);
      expect(backwards(deliveries, from, to)).toEqual(expected.eventbridge);
      if (!wildcard) expect(ticksOf(cron(schedule, { zone, gap: "skip" }), from, to)).toEqual(expected.eventbridge);
    });

    it(`${id}: both passes and no catching up is Kubernetes' rule`, () => {
      expect(ticksOf(cron(schedule, { zone, gap: "skip", overlap: "both" }), from, to)).toEqual(expected.kubernetes);
    });
  }
});
