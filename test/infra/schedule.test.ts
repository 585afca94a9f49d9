/** A job's schedule as it is deployed: when, by whom, with what event, and what becomes of a delivery that fails. */
import { cron, defineJob, type Job, rate, type Schedule } from "cronfence";
import { settableClock } from "cronfence/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { invocationResources, retryPolicy } from "../../infra/retry-policy.ts";
import { scheduleGroupResources, scheduleResources } from "../../infra/schedule.ts";
import { scheduleExpression } from "../../infra/schedule-expression.ts";
import { readEvent } from "../../src/lambda/event.ts";
import { platformTriesMs } from "../../src/watchdog/duty.ts";
import type { Template } from "./cfn-template.ts";
import { dailyReport, deployed, expireCarts, rebuild, settings } from "./sample-service.ts";

const minuteMs = 60_000;
const clock = settableClock("2026-03-01T00:00:00Z");
const define = (options: Template): Job =>
  defineJob({ name: "a", timeout: "1m", run: () => {}, ...options }, { clock });
const scheduleOf = (job: Job): Template => Object.values(scheduleResources(deployed(job)))[0]?.Properties;

describe("A schedule", () => {
  it("is the job's, in its zone, in the service's group, under the job's own name", () => {
    expect(scheduleOf(dailyReport)).toMatchObject({
      Name: "daily_report",
      GroupName: { Ref: "CronfenceScheduleGroup" },
      ScheduleExpression: "cron(30 6 * * ? *)",
      ScheduleExpressionTimezone: "Europe/Berlin",
      State: "ENABLED",
    });
    expect(scheduleOf(expireCarts)).toMatchObject({
      ScheduleExpression: "cron(0/5 * * * ? *)",
      ScheduleExpressionTimezone: "UTC",
      Description: "Carts that nobody ordered in time expire",
    });
    expect(scheduleGroupResources(settings).CronfenceScheduleGroup?.Properties).toEqual({ Name: "shop-prod" });
  });

  it("doesn't exist for a job that runs only by hand", () => {
    expect(scheduleResources(deployed(rebuild))).toEqual({});
  });

  it("has the jitter as its flexible window, in whole minutes, so that none starts later than the jitter says", () => {
    const windowOf = (jitter?: string) =>
      scheduleOf(define({ schedule: cron("7 * * * *"), ...(jitter && { jitter }) })).FlexibleTimeWindow;
    expect(windowOf()).toEqual({ Mode: "OFF" });
    expect(windowOf("30s")).toEqual({ Mode: "OFF" });
    expect(windowOf("90s")).toEqual({ Mode: "FLEXIBLE", MaximumWindowInMinutes: 1 });
    expect(windowOf("15m")).toEqual({ Mode: "FLEXIBLE", MaximumWindowInMinutes: 15 });
    expect(windowOf("24h")).toEqual({ Mode: "FLEXIBLE", MaximumWindowInMinutes: 1_440 });
  });

  it("sends an event that the handler understands, with the scheduled time as the tick", () => {
    const attributes: Record<string, string> = {
      "scheduled-time": "2026-03-01T06:30:00Z",
      "attempt-number": "2",
      "execution-id": "d32c5kddcf5bb8c3",
      "schedule-arn": "arn:aws:scheduler:eu-central-1:123456789012:schedule/shop-prod/daily_report",
    };
    const { Input } = scheduleOf(dailyReport).Target;
    const sent = JSON.parse(
      Input.replace(/<aws\.scheduler\.([a-z-]+)>/g, (_: string, name: string) => attributes[name]),
    );
    expect(Object.values(sent)).toEqual([
      "daily_report",
      ...["scheduled-time", "attempt-number", "execution-id", "schedule-arn"].map((name) => attributes[name]),
    ]);
    expect(readEvent("daily_report", sent, "request-1", Number.POSITIVE_INFINITY)).toMatchObject({
      kind: "schedule",
      tick: Date.parse("2026-03-01T06:30:00Z"),
      attempt: 2,
    });
  });

  it("is delivered on a role of its own, which only schedules of the group can take and which can do two things", () => {
    const { JobexpireDashcartsScheduleRole: role } = scheduleResources(deployed(expireCarts)) as Record<
      string,
      Template
    >;
    expect(scheduleOf(expireCarts).Target.RoleArn).toEqual({ "Fn::GetAtt": ["JobexpireDashcartsScheduleRole", "Arn"] });
    expect(role.Properties.AssumeRolePolicyDocument.Statement).toEqual([
      {
        Effect: "Allow",
        Principal: { Service: "scheduler.amazonaws.com" },
        Action: ["sts:AssumeRole"],
        Condition: {
          StringEquals: {
            "aws:SourceAccount": { Ref: "AWS::AccountId" },
            "aws:SourceArn": { "Fn::GetAtt": ["CronfenceScheduleGroup", "Arn"] },
          },
        },
      },
    ]);
    expect(role.Properties.Policies.flatMap(({ PolicyDocument }: Template) => PolicyDocument.Statement)).toEqual([
      {
        Sid: "Invoke",
        Effect: "Allow",
        Action: ["lambda:InvokeFunction"],
        Resource: { "Fn::GetAtt": ["expireCartsLambdaFunction", "Arn"] },
      },
      {
        Sid: "DeadLetters",
        Effect: "Allow",
        Action: ["sqs:SendMessage"],
        Resource: { "Fn::GetAtt": ["CronfenceDeadLetters", "Arn"] },
      },
    ]);
  });
});

describe("Retries", () => {
  const inBoth = (retries?: 0 | 1 | 2) => {
    const job = define({ schedule: cron("7 * * * *"), ...(retries === undefined ? {} : { retries }) });
    const { JobaInvocation } = invocationResources(deployed(job)) as Record<string, Template>;
    return [scheduleOf(job).Target.RetryPolicy.MaximumRetryAttempts, JobaInvocation.Properties.MaximumRetryAttempts];
  };

  it("reach the schedule and the function alike, also where there are to be none", () => {
    expect(inBoth()).toEqual([2, 2]);
    expect(inBoth(1)).toEqual([1, 1]);
    expect(inBoth(0)).toEqual([0, 0]);
  });

  it("that fail end in the queue for dead letters, those of the delivery and those of the function", () => {
    const queue = { "Fn::GetAtt": ["CronfenceDeadLetters", "Arn"] };
    expect(scheduleOf(expireCarts).Target.DeadLetterConfig).toEqual({ Arn: queue });
    expect(invocationResources(deployed(expireCarts)).JobexpireDashcartsInvocation?.Properties).toMatchObject({
      FunctionName: { Ref: "expireCartsLambdaFunction" },
      Qualifier: "$LATEST",
      DestinationConfig: { OnFailure: { Destination: queue } },
    });
  });

  it("end when the watchdog begins to heal, within what each service takes", () => {
    const ages = (job: Job) => [
      retryPolicy(job).MaximumEventAgeInSeconds,
      (invocationResources(deployed(job)) as Record<string, Template>)[`Job${job.name}Invocation`].Properties
        .MaximumEventAgeInSeconds,
    ];
    const hourly = define({ schedule: cron("7 * * * *"), timeout: "4m" });
    expect(ages(hourly)).toEqual([platformTriesMs(hourly) / 1_000, platformTriesMs(hourly) / 1_000]);
    expect(ages(define({ schedule: cron("7 3 1 * *"), jitter: "24h", timeout: "14m" }))).toEqual([86_400, 21_600]);
  });
});

describe("An expression for EventBridge", () => {
  const said = (schedule: Schedule) => scheduleExpression(schedule);

  it("of a rate is the cron that says the same, for any anchor in whole minutes", () => {
    const evenly = [1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60, 120, 180, 240, 360, 480, 720, 1_440];
    fc.assert(
      fc.property(
        fc.constantFrom(...evenly),
        fc.integer({ min: -3_000, max: 30_000_000 }),
        fc.integer({ min: 1_600_000_000_000, max: 2_500_000_000_000 }),
        (minutes, anchor, from) => {
          const schedule = rate(minutes === 1 ? "1 minute" : `${minutes} minutes`, { anchor: anchor * minuteMs });
          const found = said(schedule);
          if ("problem" in found) throw new Error(found.problem);
          const through = from + 3 * minutes * minuteMs;
          expect([...cron(found.expression, { zone: found.zone }).between(from, through)]).toEqual([
            ...schedule.between(from, through),
          ]);
        },
      ),
    );
  });

  it.each([
    ["5 minutes", {}, "cron(0/5 * * * ? *)"],
    ["rate(1 minute)", {}, "cron(* * * * ? *)"],
    ["1 hour", { anchor: 17 * minuteMs }, "cron(17 * * * ? *)"],
    ["6 hours", { anchor: 437 * minuteMs }, "cron(17 1/6 * * ? *)"],
    ["1 day", { anchor: 437 * minuteMs }, "cron(17 7 * * ? *)"],
  ])("of %s, %j is %s", (text, options, expression) => {
    expect(said(rate(text, options))).toEqual({ expression, zone: "UTC" });
  });

  it.each([
    ["7 minutes", {}, "write a rate that divides an hour or a day evenly"],
    ["90 minutes", {}, "no cron says the same"],
    ["5 hours", {}, "EventBridge counts a rate from when the schedule is made"],
    ["7 days", {}, "or a cron"],
    ["5 minutes", { anchor: 30_000 }, "its anchor isn't at a whole minute"],
  ])("of %s, %j is refused, with what to write instead", (text, options, why) => {
    const found = said(rate(text, options));
    expect("problem" in found && found.problem).toContain(`"${text}"`);
    expect("problem" in found && found.problem).toContain(why);
  });

  it("that EventBridge doesn't have is refused, with what to write instead", () => {
    expect(said(cron("0 9 1 * 1"))).toEqual({
      problem: expect.stringMatching(/"0 9 1 \* 1": EventBridge can't take either a day.*run the job every day/),
    });
  });

  it("is refused where it is longer than EventBridge takes", () => {
    const unevenly = (from: number, through: number) =>
      Array.from({ length: through - from + 1 }, (_, at) => at + from).filter((value) => value % 3 !== 2);
    const fields = [unevenly(0, 59), unevenly(0, 23), unevenly(1, 31)].map((values) => values.join(","));
    const years = Array.from({ length: 12 }, (_, at) => 2027 + 2 * at).join(",");
    expect(said(cron(`cron(${fields.join(" ")} * ? ${years})`))).toEqual({
      problem: expect.stringMatching(/is 280 characters long in EventBridge's words, and it takes 256$/),
    });
  });
});
