/** A service with a job of every kind, for tests of what is made of it. */
import { cron, defineJob, type Job, rate } from "cronfence";
import { queryAfter, scanAll } from "cronfence/sources";
import { settableClock } from "cronfence/testing";
import { watchdog } from "cronfence/watchdog";
import { type DeployedJob, type DeployedService, functionSettings, type ServiceSettings } from "../../infra/service.ts";
import { type Resources, ref } from "../../infra/template.ts";

const clock = settableClock("2026-03-01T00:00:00Z");

/** A job, as those who deploy it have it: its function is named after service, stage and job. */
export const deployed = (job: Job, more: Partial<DeployedJob> = {}): DeployedJob => ({
  job,
  functionName: `shop-prod-${job.name}`,
  functionLogicalId: `${job.name.replace(/[-_](.)/g, (_, letter: string) => letter.toUpperCase())}LambdaFunction`,
  ...more,
});

export const settings: ServiceSettings = {
  service: "shop",
  stage: "prod",
  controlTable: { create: true, name: "shop-prod-cronfence" },
  alarmTopic: { create: true },
  logRetentionDays: 30,
  version: "1a2b3c4",
};

export const otherAccountsTable = "arn:aws:dynamodb:eu-west-1:210987654321:table/prices";

/** Reads a source by an index, and writes two tables. */
export const expireCarts = defineJob(
  {
    name: "expire-carts",
    schedule: cron("*/5 * * * *"),
    timeout: "4m",
    description: "Carts that nobody ordered in time expire",
    access: [
      { table: "carts", write: true },
      { table: "cart-audit", read: true, write: true },
    ],
    source: queryAfter({ table: "carts", index: "byExpiry", partition: { shop: "eu" }, sort: "expiresAtId" }),
    process: () => [],
  },
  { clock },
);

/** In a zone, spread over a quarter of an hour, reading a table of another account and an index. */
export const dailyReport = defineJob(
  {
    name: "daily_report",
    schedule: cron("30 6 * * *", { zone: "Europe/Berlin" }),
    timeout: "5m",
    jitter: "15m",
    memory: 1_024,
    metrics: "cloudwatch",
    environment: { REPORTS_BUCKET: "reports" },
    access: [
      { table: "sales", index: "byDay", read: true },
      { table: otherAccountsTable, read: true },
    ],
    tick: () => [],
  },
  { clock },
);

/** Runs only by hand, never twice, and pages nobody. */
export const rebuild = defineJob({
  name: "rebuild",
  timeout: "10m",
  retries: 0,
  overlap: "skip",
  alarms: false,
  run: () => {},
});

/** By a rate, over a whole table, in runs that follow one another while there is a backlog. */
export const sweep = defineJob(
  {
    name: "sweep",
    schedule: rate("6 hours"),
    timeout: "10m",
    onBacklog: "continue",
    maxChain: 20,
    source: scanAll({ table: "sessions" }),
    process: () => [],
  },
  { clock },
);

export const healer = watchdog({ jobs: () => [], heal: true, start: async () => {}, clock });

export const sampleService: DeployedService = {
  jobs: [
    deployed(expireCarts),
    deployed(dailyReport, {
      statements: [{ Sid: "Files", Effect: "Allow", Action: ["s3:PutObject"], Resource: "arn:aws:s3:::reports/*" }],
    }),
    deployed(rebuild),
    deployed(sweep),
    deployed(healer),
  ],
  settings,
};

/** A template with the functions that the resources refer to. */
export const withFunctions = (service: DeployedService, resources: Resources): Resources => ({
  ...Object.fromEntries(
    service.jobs.map((each) => {
      const { DependsOn, ...properties } = functionSettings(each, service);
      return [
        each.functionLogicalId,
        {
          Type: "AWS::Lambda::Function",
          DependsOn,
          Properties: {
            FunctionName: each.functionName,
            Runtime: "nodejs22.x",
            Handler: "index.handler",
            Code: { S3Bucket: ref("Bucket"), S3Key: "code.zip" },
            ...properties,
          },
        },
      ];
    }),
  ),
  ...resources,
});
