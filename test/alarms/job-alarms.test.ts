/** Which alarms a job gets, what they stand on, and what that costs. */
import { cron, defineJob, type Job } from "cronfence";
import { monitorAlarm, replayAlarm } from "cronfence/testing";
import {
  type Alarm,
  alarmCost,
  alarmProblems,
  deadLetterAlarm,
  jobAlarms,
  watchdog,
  watchdogAlarm,
} from "cronfence/watchdog";
import { describe, expect, it } from "vitest";
import { metricDefinitions } from "../../src/observe/metrics.ts";

const minute = 60_000;
const start = Date.parse("2026-01-01T00:00:00Z");
const source = { name: "none", read: async () => ({ items: [], done: true }) };
const worker = { source, process: () => [] };

const define = (more: object = {}): Job =>
  defineJob({ name: "carts", schedule: cron("7 * * * *"), timeout: "5m", run: () => {}, ...more } as never);
const sourceJob = (more: object = {}): Job =>
  defineJob({ name: "carts", schedule: cron("7 * * * *"), timeout: "5m", ...worker, ...more } as never);

const alarmsOf = (job: Job): [string, Alarm][] => Object.entries(jobAlarms(job, "shop", 5 * minute));

describe("A job's alarms", () => {
  it("are as few as it needs", () => {
    expect(alarmsOf(define()).map(([purpose]) => purpose)).toEqual(["overdue", "failures"]);
    expect(alarmsOf(define({ schedule: undefined })).map(([purpose]) => purpose)).toEqual(["failures"]);
    expect(alarmsOf(sourceJob()).map(([purpose]) => purpose)).toEqual(["overdue", "failures", "capped"]);
  });

  it("stand on what the watchdog sends of this job and service, and on nothing of the job's own", () => {
    for (const [, alarm] of alarmsOf(sourceJob())) {
      expect(alarm).toMatchObject({
        Namespace: "cronfence",
        Dimensions: [
          { Name: "service", Value: "shop" },
          { Name: "job", Value: "carts" },
        ],
      });
      expect(metricDefinitions[alarm.MetricName as keyof typeof metricDefinitions].from).toBe("watchdog");
    }
  });

  it("say what to do first", () => {
    for (const [, { AlarmDescription }] of alarmsOf(sourceJob())) {
      expect(AlarmDescription).toMatch(/^Job carts .*First: ./);
      expect(AlarmDescription.length).toBeLessThanOrEqual(1_024);
    }
  });

  it("are within CloudWatch's limits, however often the watchdog looks", () => {
    for (const minutes of [1, 5, 30]) {
      const alarms = [
        ...Object.values(jobAlarms(sourceJob(), "shop", minutes * minute)),
        watchdogAlarm("watchdog", "shop", minutes * minute),
        deadLetterAlarm("dead"),
      ];
      expect(alarms).toHaveLength(5);
      for (const alarm of alarms) expect(alarmProblems(alarm)).toEqual([]);
    }
  });

  it("take the number of failures from the job", () => {
    const failures = (job: Job) => jobAlarms(job, "shop", minute).failures;
    expect(failures(define())).toMatchObject({ Threshold: 3, ComparisonOperator: "GreaterThanOrEqualToThreshold" });
    expect(failures(define({ alert: { failures: 7 } }))).toMatchObject({ Threshold: 7 });
  });

  it("let a chain that works off a backlog be capped for as long as it may be", () => {
    const threshold = (job: Job) => jobAlarms(job, "shop", minute).capped?.Threshold;
    expect(threshold(sourceJob())).toBe(3);
    expect(threshold(sourceJob({ onBacklog: "continue" }))).toBe(12);
    expect(threshold(sourceJob({ onBacklog: "continue", maxChain: 1 }))).toBe(3);
  });
});

describe("The alarm on capped runs", () => {
  const { capped } = jobAlarms(sourceJob(), "shop", 5 * minute);
  const looks = (values: readonly number[]) =>
    // What is 0 isn't sent.
    values.flatMap((value, index) => (value === 0 ? [] : [{ at: start + index * 5 * minute + 30_000, value }]));
  const states = (values: readonly number[]) =>
    replayAlarm(capped!, looks(values), { from: start, through: start + values.length * 5 * minute }).map(
      ({ to }) => to,
    );

  it("goes off at the third in a row, doesn't flap between the watchdog's looks, and ends with them", () => {
    const quiet = Array<number>(12).fill(0);
    expect(states([...quiet, 1, 1, 2, 2, 2, ...quiet])).toEqual(["OK"]);
    expect(states([...quiet, 1, 2, 3, 3, 3, 4, 4, 5, 5, ...quiet])).toEqual(["OK", "ALARM", "OK"]);
  });
});

describe("The alarm on dead letters", () => {
  it("stays on while a message lies there, also when the queue has stopped sending metrics for it", () => {
    const alarm = deadLetterAlarm("dead");
    const monitor = monitorAlarm(alarm, { from: start });
    monitor.record({ at: start, value: 0 });
    monitor.record({ at: start + 10 * minute, value: 2 });
    monitor.advance(start + 24 * 60 * minute);
    expect(monitor.state).toBe("ALARM");
    monitor.record({ at: start + 25 * 60 * minute, value: 0 });
    monitor.advance(start + 26 * 60 * minute);
    expect(monitor.state).toBe("OK");
    expect(alarm.Dimensions).toEqual([{ Name: "QueueName", Value: "dead" }]);
  });
});

describe("The watchdog's alarm", () => {
  const everyMs = 5 * minute;
  const alarm = watchdogAlarm("watchdog", "shop", everyMs);
  const states = (points: readonly { at: number; value: number }[], through: number) =>
    replayAlarm(alarm, points, { from: start, through }).map(({ at, to }) => [(at - start) / minute, to]);

  it("goes off, too, when jobs can't be judged for as long, and not for a single look", () => {
    const looks = (unwatched: (index: number) => number) =>
      Array.from({ length: 24 }, (_, index) => ({ at: start + index * everyMs, value: unwatched(index) }));
    expect(
      states(
        looks((index) => (index === 8 ? 1 : 0)),
        start + 2 * 60 * minute,
      ),
    ).toEqual([[1, "OK"]]);
    const changes = states(
      looks((index) => (index >= 8 && index < 16 ? 1 : 0)),
      start + 2 * 60 * minute,
    );
    expect(changes.map(([, to]) => to)).toEqual(["OK", "ALARM", "OK"]);
    expect(changes[1]![0]).toBeGreaterThan(40 + 5);
    expect(changes[1]![0]).toBeLessThanOrEqual(40 + 15);
  });
});

describe("What a job costs", () => {
  it("is two metrics and two alarms by default, and what its runs measure on top where that is wanted", () => {
    expect(alarmCost(define())).toEqual({
      metrics: ["Overdue", "ConsecutiveFailures"],
      occasional: ["WatermarkLag"],
      alarms: ["overdue", "failures"],
    });
    expect(alarmCost(define({ metrics: "emf" }))).toEqual({
      metrics: ["Succeeded", "Failed", "Duration", "Items", "Overdue", "ConsecutiveFailures"],
      occasional: ["Capped", "GuardTripped", "LeaseLost", "Parked", "SilentFailures", "WatermarkLag"],
      alarms: ["overdue", "failures"],
    });
    expect(alarmCost(sourceJob())).toEqual({
      metrics: ["Overdue", "ConsecutiveFailures"],
      occasional: ["WatermarkLag", "CappedInARow"],
      alarms: ["overdue", "failures", "capped"],
    });
    expect(alarmCost(define({ schedule: undefined }))).toEqual({
      metrics: ["ConsecutiveFailures"],
      occasional: ["WatermarkLag"],
      alarms: ["failures"],
    });
  });

  it("is of no alarm where the job wants none, and of its own absence for a watchdog", () => {
    expect(alarmCost(sourceJob({ alarms: false }))).toMatchObject({
      metrics: ["Overdue", "ConsecutiveFailures"],
      alarms: [],
    });
    expect(alarmCost(watchdog({ jobs: [] }))).toEqual({ metrics: ["Unwatched"], occasional: [], alarms: ["absent"] });
    expect(alarmCost(watchdog({ jobs: [], alarms: false })).alarms).toEqual([]);
  });
});
