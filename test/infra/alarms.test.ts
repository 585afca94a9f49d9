/** Alarms as they stand in a CloudFormation template. */
import { cron, defineJob } from "cronfence";
import { replayAlarm } from "cronfence/testing";
import { type Alarm, alarmCost, jobAlarms, watchdogAlarm } from "cronfence/watchdog";
import { describe, expect, it } from "vitest";
import {
  type AlarmResource,
  deadLetterAlarmResources,
  InvalidAlarmError,
  jobAlarmResources,
  watchdogAlarmResources,
} from "../../infra/alarms.ts";

const minute = 60_000;
const topic = { Ref: "AlarmTopic" };
const settings = { service: "shop-prod", everyMs: 5 * minute, actions: [topic] };
const define = (name: string) =>
  defineJob({
    name,
    schedule: cron("*/5 * * * *"),
    timeout: "4m",
    source: { name: "none", read: async () => ({ items: [], done: true }) },
    process: () => [],
  });

describe("A job's alarms in a template", () => {
  const job = define("expire-carts");
  const resources = jobAlarmResources(job, settings);

  it("have logical ids of letters and digits, names with the service, and somebody to page for the alarm and its end", () => {
    expect(Object.entries(resources).map(([id, { Type, Properties }]) => [id, Type, Properties.AlarmName])).toEqual([
      ["JobexpireDashcartsOverdueAlarm", "AWS::CloudWatch::Alarm", "shop-prod-expire-carts-overdue"],
      ["JobexpireDashcartsFailuresAlarm", "AWS::CloudWatch::Alarm", "shop-prod-expire-carts-failures"],
      ["JobexpireDashcartsCappedAlarm", "AWS::CloudWatch::Alarm", "shop-prod-expire-carts-capped"],
    ]);
    for (const { Properties } of Object.values(resources)) {
      expect(Properties).toMatchObject({ AlarmActions: [topic], OKActions: [topic] });
    }
  });

  it("are the very alarms that are rehearsed, and as many as the cost says", () => {
    const alarms = jobAlarms(job, settings.service, settings.everyMs);
    const stripped = Object.values(resources).map(({ Properties }) => {
      const { AlarmName, AlarmActions, OKActions, ...alarm } = Properties;
      return alarm;
    });
    expect(stripped).toEqual(Object.values(alarms));
    expect(stripped).toHaveLength(alarmCost(job).alarms.length);
  });

  it("can be replayed as they are", () => {
    const overdue = resources.JobexpireDashcartsOverdueAlarm?.Properties as unknown as Alarm;
    const from = Date.parse("2026-01-01T00:00:00Z");
    const series = [0, 0, 40].map((value, index) => ({ at: from + index * 5 * minute, value }));
    const changes = replayAlarm(overdue, series, { from, through: from + 20 * minute });
    expect(changes.map(({ at, to }) => [(at - from) / minute, to])).toEqual([
      [1, "OK"],
      [11, "ALARM"],
    ]);
  });

  it("are the same for the same job, and differ between jobs", () => {
    expect(jobAlarmResources(define("expire-carts"), settings)).toEqual(resources);
    const names = ["carts", "Carts", "carts-2", "carts_2"].flatMap((name) =>
      Object.keys(jobAlarmResources(define(name), settings)),
    );
    expect(new Set(names).size).toBe(12);
    for (const name of names) expect(name).toMatch(/^[A-Za-z0-9]{1,255}$/);
  });

  it("that CloudWatch would refuse are refused here, naming the alarm and the limit", () => {
    const tooSeldom = { ...settings, everyMs: 24 * 60 * minute };
    expect(() => jobAlarmResources(job, tooSeldom)).not.toThrow();
    expect(() => watchdogAlarmResources("watchdog", tooSeldom)).toThrow(InvalidAlarmError);
    expect(() => watchdogAlarmResources("watchdog", tooSeldom)).toThrow(
      'alarm "shop-prod-watchdog-absent": Period × EvaluationPeriods is 172920 seconds, and must be at most 86400',
    );
    expect(() => jobAlarmResources(job, { ...settings, service: "s".repeat(240) })).toThrow("1 to 255 printable ASCII");
  });
});

describe("The watchdog's alarm in a template", () => {
  it("is on the metric that it sends of itself", () => {
    const { JobwatchdogAbsentAlarm: alarm } = watchdogAlarmResources("watchdog", settings);
    expect(alarm?.Properties).toEqual({
      AlarmName: "shop-prod-watchdog-absent",
      ...watchdogAlarm("watchdog", "shop-prod", 5 * minute),
      AlarmActions: [topic],
      OKActions: [topic],
    });
  });
});

describe("The alarm on dead letters in a template", () => {
  const only = (resources: Readonly<Record<string, AlarmResource>>) => Object.values(resources)[0]?.Properties;

  it("is on a queue by its name, or by what CloudFormation makes of it", () => {
    const queueName = { "Fn::GetAtt": ["DeadLetters", "QueueName"] };
    const resources = deadLetterAlarmResources("dead-letters", queueName, settings);
    expect(Object.keys(resources)).toEqual(["deadDashlettersDeadLettersAlarm"]);
    expect(only(resources)).toMatchObject({
      AlarmName: "shop-prod-dead-letters",
      Namespace: "AWS/SQS",
      Dimensions: [{ Name: "QueueName", Value: queueName }],
      AlarmDescription: expect.stringContaining("lie in dead-letters"),
    });
    expect(only(deadLetterAlarmResources("dead", "shop-dead", settings))).toMatchObject({
      Dimensions: [{ Name: "QueueName", Value: "shop-dead" }],
      AlarmDescription: expect.stringContaining("lie in shop-dead"),
    });
  });
});
