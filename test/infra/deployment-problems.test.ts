/** What is found before anything is packaged. */
import { cron, defineJob, type Job, rate } from "cronfence";
import { queryAfter } from "cronfence/sources";
import { settableClock } from "cronfence/testing";
import { watchdog } from "cronfence/watchdog";
import { describe, expect, it } from "vitest";
import { type DeployedJob, deploymentProblems, type ServiceSettings } from "../../infra/service.ts";
import { deployed, expireCarts, healer, sampleService, settings } from "./sample-service.ts";

const clock = settableClock("2026-03-01T00:00:00Z");
const define = (name: string, options: object = {}): Job =>
  defineJob({ name, timeout: "1m", run: () => {}, alarms: false, ...options } as Parameters<typeof defineJob>[0], {
    clock,
  });

const problemsOf = (jobs: readonly (Job | DeployedJob)[], more: Partial<ServiceSettings> = {}): string[] =>
  deploymentProblems({
    jobs: jobs.map((each) => ("job" in each ? each : deployed(each))),
    settings: { ...settings, ...more },
  });

it("A service of which nothing is wrong has no problems", () => {
  expect(deploymentProblems(sampleService)).toEqual([]);
});

describe("A job is refused", () => {
  it.each([
    [
      "timeout",
      { timeout: "15m" },
      /timeout is 900 s, and must be at most 895 s: a Lambda function runs for at most 900 s/,
    ],
    [
      "jitter",
      { schedule: cron("7 3 1 * *"), jitter: "25h" },
      /jitter is 1500 minutes, and EventBridge's flexible window has at most 1440/,
    ],
    ["schedule", { schedule: rate("7 minutes") }, /schedule "7 minutes": EventBridge counts .* write a rate that/],
    ["schedule of either day", { schedule: cron("7 9 1 * 1") }, /schedule "7 9 1 \* 1": .*; run the job every day/],
    [
      "access to the control table",
      { access: [{ table: "shop-prod-cronfence", read: true }] },
      /the control table, which only cronfence/,
    ],
    [
      "access to the control table by its ARN",
      { access: [{ table: "arn:aws:dynamodb:eu-central-1:123456789012:table/shop-prod-cronfence", read: true }] },
      /the control table, which only cronfence/,
    ],
    [
      "variable of cronfence's own",
      { environment: { CRONFENCE_TABLE: "x" } },
      /environment has CRONFENCE_TABLE, which the deployment sets itself/,
    ],
    [
      "variable of Lambda's",
      { environment: { AWS_REGION: "x" } },
      /environment has AWS_REGION, which Lambda keeps for itself/,
    ],
    [
      "environment over 4 KB",
      { environment: { BIG: "ä".repeat(2_020) } },
      /its environment has 41\d\d bytes, and Lambda takes at most 4096/,
    ],
  ])("for %s that can't be, naming it, its value and what is allowed", (_, options, problem) => {
    expect(problemsOf([define("late", options)])).toEqual([expect.stringMatching(problem)]);
    expect(problemsOf([define("late", options)])[0]).toMatch(/^job "late": /);
  });

  it("for a source that reads the control table", () => {
    const source = queryAfter({ table: "shop-prod-cronfence", partition: { pk: "job#other" }, sort: "sk" });
    const job = define("reader", { run: undefined, source, process: () => [] });
    expect(problemsOf([job])).toEqual([expect.stringContaining("the control table")]);
  });

  it("for a function's name that is too long, which isn't cut", () => {
    const name = "x".repeat(64);
    expect(problemsOf([define(name)])).toEqual([
      expect.stringMatching(/function's name is "shop-prod-x+" \(74 characters\), and must be at most 64 letters/),
    ]);
    expect(problemsOf([deployed(define(name), { functionName: name })])).toEqual([]);
    expect(problemsOf([deployed(define("a"), { functionName: "a.b" })])).toHaveLength(1);
  });

  it("for a name, a function or a logical id that another has, too", () => {
    expect(problemsOf([define("a"), deployed(define("a"), { functionName: "f", functionLogicalId: "F" })])).toEqual([
      '2 jobs have the job name "a", and each needs one of its own: "a" (shop-prod-a), "a" (f)',
    ]);
    expect(problemsOf([define("a"), deployed(define("b"), { functionName: "shop-prod-a" })])).toEqual([
      expect.stringContaining('2 jobs have the function name "shop-prod-a"'),
    ]);
    expect(problemsOf([define("a"), deployed(define("b"), { functionLogicalId: "aLambdaFunction" })])).toEqual([
      expect.stringContaining('2 jobs have the function\'s logical id "aLambdaFunction"'),
    ]);
    expect(problemsOf([define("a-b"), define("aDashb")])).toEqual([
      expect.stringContaining('2 jobs have the logical id "JobaDashbRole"'),
    ]);
  });

  it("for a policy that is longer than IAM takes", () => {
    const access = Array.from({ length: 120 }, (_, at) => ({ table: `a-table-with-a-long-name-${at}`, read: true }));
    expect(problemsOf([define("greedy", { access })])).toEqual([
      expect.stringMatching(
        /job "greedy": its role's policy comes to about \d{5} characters, and IAM takes at most 10240: name fewer tables/,
      ),
    ]);
  });
});

describe("A service is refused", () => {
  it.each([
    [{ service: "s".repeat(70), dashboard: false }, ["64 letters", "at most 80"]],
    [{ service: "shop.jobs" }, ['the name "shop.jobs-prod"']],
    [{ controlTable: { create: true, name: "x" } }, ['controlTable is "x", and must be a table\'s name']],
    [{ logRetentionDays: 31 }, ["logRetentionDays is 31, and must be one of 1, 3, 5"]],
    [{ version: "" }, ['version is "", and must be']],
  ] as const)("for settings that can't be: %j", (more, problems) => {
    const job = deployed(define("a"), { functionName: "a" });
    expect(problemsOf([job], more)).toEqual(problems.map((problem) => expect.stringContaining(problem)));
  });

  it("for alarms that no watchdog's metrics feed", () => {
    expect(problemsOf([define("a", { alarms: true }), define("b")])).toEqual([
      'no job is a watchdog, and without its metrics the alarms of "a" could never go off: export watchdog({ jobs }) from a handler, or say alarms: false for each',
    ]);
    const onlyB = watchdog({ jobs: [define("b")] });
    expect(problemsOf([define("a", { alarms: true }), define("b", { alarms: true }), onlyB])).toEqual([
      'the watchdog "watchdog" isn\'t given "a", whose alarms could never go off: add them to its jobs, or say alarms: false for each',
    ]);
    expect(problemsOf([define("a", { alarms: true }), healer])).toEqual([]);
  });

  it("for two watchdogs", () => {
    expect(problemsOf([healer, watchdog({ name: "other", jobs: [] })])).toEqual([
      expect.stringContaining('2 jobs are watchdogs ("watchdog", "other")'),
    ]);
  });

  it("for a watchdog that heals and couldn't find the functions", () => {
    const odd = deployed(define("a"), { functionName: "something-else" });
    expect(problemsOf([healer, odd])).toEqual([
      expect.stringMatching(/^job "watchdog": it heals, and the functions' names have no common pattern/),
    ]);
    expect(problemsOf([watchdog({ jobs: [] }), odd])).toEqual([]);
  });

  it("for an alarm that CloudWatch would refuse", () => {
    const seldom = { ...healer, watches: { ...healer.watches!, everyMs: 86_400_000 } };
    expect(problemsOf([seldom])).toEqual([
      'alarm "shop-prod-watchdog-absent": Period × EvaluationPeriods is 172920 seconds, and must be at most 86400 where Period is less than an hour',
    ]);
  });

  it("for more jobs than a stack takes", () => {
    const many = Array.from({ length: 70 }, (_, at) => ({ ...expireCarts, name: `job-${at}` }));
    expect(problemsOf([...many, watchdog({ jobs: many })])).toEqual([
      expect.stringMatching(
        /^71 jobs come to \d{3} resources with their functions, and a stack takes at most 500: divide the service/,
      ),
    ]);
  });
});

it("Everything that is wrong is told at once", () => {
  const jobs = [
    define("a", { timeout: "15m", environment: { AWS_REGION: "x" } }),
    define("b", { alarms: true, schedule: rate("7 days") }),
  ];
  expect(problemsOf(jobs, { logRetentionDays: 2 })).toHaveLength(5);
});
