import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Conversion,
  toCloudflare,
  toEventBridge,
  toKubernetes,
  toSystemd,
  toVercel,
} from "../../../src/schedule/convert/index.ts";
import { cron, eventBridgeTicks, type Schedule } from "../../../src/schedule/index.ts";
import { dayMs } from "../oracle.ts";
import { eventBridgeSchedules, unixSchedules } from "../random-schedules.ts";
import { onCalendarTicks } from "./on-calendar.ts";

const from = Date.parse("2027-02-01T00:00:00Z");
/** Into March of a leap year, so that both kinds of February are in it. */
const through = Date.parse("2028-03-05T00:00:00Z");
const expressions = fc.oneof(unixSchedules, eventBridgeSchedules).map(({ expression }) => expression);

/** The first ticks in full, then one for each hour: over a year, days and hours are what conversions can get wrong. */
const ticks = (schedule: Schedule): number[] => {
  const found: number[] = [];
  for (const tick of schedule.between(from, through)) {
    if (found.length < 500 || tick - found.at(-1)! >= dayMs / 24) found.push(tick);
    if (found.length === 4000) break;
  }
  return found;
};

/** Converts, reads the result again with `read`, and compares; a refusal is fine as long as not all are. */
function expectSameTicks(
  convert: (schedule: Schedule) => Conversion,
  zone: string,
  read: (converted: string) => Schedule,
) {
  let converted = 0;
  fc.assert(
    fc.property(expressions, (expression) => {
      const schedule = cron(expression, { zone });
      const conversion = convert(schedule);
      if (!conversion.ok) return;
      converted++;
      expect(ticks(read(conversion.expression))).toEqual(ticks(schedule));
    }),
    { numRuns: 300 },
  );
  expect(converted).toBeGreaterThan(50);
}

describe("a converted expression fires at the same instants", () => {
  it("for EventBridge, read as EventBridge's own dialect", () => {
    expectSameTicks(toEventBridge, "UTC", (text) => cron(text));
  });

  it("for EventBridge in a zone, delivered as EventBridge does it", () => {
    fc.assert(
      fc.property(expressions, (expression) => {
        const schedule = cron(expression, { zone: "Europe/Berlin" });
        const conversion = toEventBridge(schedule);
        if (!conversion.ok) return;
        const again = cron(conversion.expression, { zone: conversion.zone! });
        expect(ticks(eventBridgeTicks(again))).toEqual(ticks(eventBridgeTicks(schedule)));
      }),
      { numRuns: 100 },
    );
  });

  it("for Kubernetes and Vercel, read as a crontab of digits", () => {
    const digitsOnly = (text: string) => {
      expect(text).toMatch(/^[\d*/,\- ]+$/);
      return cron(text);
    };
    expectSameTicks(toKubernetes, "UTC", digitsOnly);
    expectSameTicks(toVercel, "UTC", digitsOnly);
  });

  it("for Cloudflare, where days have names and ranges never go round", () => {
    expectSameTicks(toCloudflare, "UTC", (text) => {
      expect(text.split(" ")[4]).not.toMatch(/^\d|,\d/);
      return cron(text);
    });
  });

  it("for systemd, by a reader of OnCalendar", () => {
    let converted = 0;
    fc.assert(
      fc.property(expressions, (expression) => {
        const schedule = cron(expression);
        const conversion = toSystemd(schedule);
        if (!conversion.ok) return;
        converted++;
        const end = from + 430 * dayMs;
        const wanted = [...schedule.between(from - 1, end - 1)];
        const found = onCalendarTicks(conversion.expression, from, end);
        expect([found.length, found.findIndex((tick, index) => tick !== wanted[index])]).toEqual([wanted.length, -1]);
      }),
      { numRuns: 100 },
    );
    expect(converted).toBeGreaterThan(50);
  });

  const systemd = (() => {
    try {
      execFileSync("systemd-analyze", ["--version"], { stdio: "ignore" });
      return true;
    } catch {
      return false;
    }
  })();

  it.skipIf(!systemd)("for systemd, by systemd itself", () => {
    const odd = [
      "0 9 28W * *",
      "0 9 1W * *",
      "0 9 LW * *",
      "0 9 L 2 *",
      "0 9 * * 5L",
      "0 9 * * SAT#5",
      "0 6 13 * FRI",
      "7/20 */5 */9 * SUN,TUE",
      "cron(0 9 1 1 ? 2027-2028)",
    ];
    for (const expression of odd) {
      const schedule = cron(expression);
      const conversion = toSystemd(schedule);
      if (!conversion.ok) throw new Error(conversion.reason);
      const count = Math.min(60, [...schedule.between(from, from + 5 * 365 * dayMs)].length);
      const theirs = conversion.expression.flatMap((line) => {
        const base = new Date(from).toISOString().replace("T", " ").replace(".000Z", " UTC");
        const text = execFileSync(
          "systemd-analyze",
          ["calendar", `--iterations=${count}`, `--base-time=${base}`, line],
          {
            encoding: "utf8",
            env: { ...process.env, TZ: "UTC" },
          },
        );
        return Array.from(text.matchAll(/(?:Next elapse|Iter\. #\d+): \w+ (\S+) (\S+) UTC/g), ([, date, time]) =>
          Date.parse(`${date}T${time}Z`),
        );
      });
      const ours: number[] = [];
      for (const tick of schedule.between(from, from + 10 * 365 * dayMs)) if (ours.push(tick) === count) break;
      expect([...new Set(theirs)].sort((a, b) => a - b).slice(0, count)).toEqual(ours);
    }
  });
});
