/** Schedules as data: their text, what comes next, and which is the shortest. */
import { expect, it } from "vitest";
import {
  attemptName,
  countLonger,
  longerBy,
  readSchedule,
  type Schedule,
  scheduleText,
  shrink,
} from "../../../src/testing/explore/schedule.ts";

it("a schedule's text says all of it", () => {
  const schedule: Schedule = [
    { kind: "twice", at: "tick1" },
    { kind: "lost-reply", at: "AB.12" },
  ];
  expect(scheduleText(schedule)).toBe("twice@tick1 lost-reply@AB.12");
  expect(readSchedule(scheduleText(schedule))).toEqual(schedule);
  expect(readSchedule(scheduleText([]))).toEqual([]);
});

it("attempts have names without end", () => {
  expect([0, 25, 26, 51, 52, 701, 702].map(attemptName)).toEqual(["A", "Z", "AA", "AZ", "BA", "ZZ", "AAA"]);
});

it("a fault is added after those that are there, at each step that came", () => {
  const steps = [
    { at: "tick1", kinds: ["missed"] },
    { at: "A.1", kinds: ["lost-reply", "conflict"] },
    { at: "A.2", kinds: ["throttled"] },
  ] as const;
  const texts = (schedule: Schedule) => [...longerBy({ schedule, steps })].map(scheduleText);
  expect(texts([])).toEqual(["missed@tick1", "lost-reply@A.1", "conflict@A.1", "throttled@A.2"]);
  expect(texts(readSchedule("lost-reply@A.1"))).toEqual(["lost-reply@A.1 throttled@A.2"]);
  expect(texts(readSchedule("lost-reply@B.7"))).toEqual([]);
  for (const schedule of [[], readSchedule("lost-reply@A.1"), readSchedule("lost-reply@B.7")]) {
    expect(countLonger({ schedule, steps })).toBe(texts(schedule).length);
  }
});

it("what a failure doesn't take is left out, in whatever order", async () => {
  const needs = ["lost-reply@A.1", "twice@tick1"];
  const tried: string[] = [];
  const breaks = async (schedule: Schedule) => {
    const text = scheduleText(schedule);
    tried.push(text);
    return needs.every((need) => text.includes(need)) ? { schedule } : undefined;
  };
  const schedule = readSchedule("twice@tick1 conflict@A.2 lost-reply@A.1 throttled@B.1");
  expect(scheduleText((await shrink({ schedule }, breaks)).schedule)).toBe("twice@tick1 lost-reply@A.1");
  expect(tried).toEqual(expect.arrayContaining(["lost-reply@A.1", "twice@tick1"]));
});
