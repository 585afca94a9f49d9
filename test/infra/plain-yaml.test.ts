/** The templates for people without the plugin give what the builders give, once their parameters are filled in. */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Job } from "cronfence";
import { describe, expect, it } from "vitest";
import { type DeployedJob, type DeployedService, jobIds, serviceResources } from "../../infra/service.ts";
import { cfnLint, noCfnLint, parseTemplate, type Template } from "./cfn-template.ts";
import { account, region, resolved, resolvedResources } from "./resolved.ts";
import {
  dailyReport,
  deployed,
  expireCarts,
  healer,
  otherAccountsTable,
  rebuild,
  sampleService,
  settings,
  sweep,
  withFunctions,
} from "./sample-service.ts";

const folder = fileURLToPath(new URL("../../infra/", import.meta.url));
const jobTemplate: Template = parseTemplate(await readFile(`${folder}job.yml`, "utf8"));
const serviceTemplate: Template = parseTemplate(await readFile(`${folder}service.yml`, "utf8"));

const own = (service: string, rest: string) => `arn:aws:${service}:${region}:${account}:${rest}`;
const tables = (...names: string[]) => names.map((name) => own("dynamodb", `table/${name}`));
const topic = own("sns", "shop-prod-alarms");

const jobs = sampleService.jobs.map(({ job }) => deployed(job));
const service: DeployedService = {
  jobs,
  settings: {
    ...settings,
    controlTable: { create: false, name: "shop-prod-cronfence" },
    alarmTopic: { arn: topic },
    dashboard: false,
  },
};
const built: Template = {
  Parameters: { Bucket: { Type: "String", Default: "code" } },
  Resources: withFunctions(service, serviceResources(service)),
};

/** What somebody fills in for every job. */
const common = {
  ServiceName: "shop-prod",
  CodeBucket: "code",
  CodeKey: "code.zip",
  Version: settings.version,
  ControlTableName: "shop-prod-cronfence",
  ControlTableArn: own("dynamodb", "table/shop-prod-cronfence"),
  DeadLettersArn: own("sqs", "shop-prod-dead-letters"),
  AlarmTopicArn: topic,
};

/** And for these, by their definitions. */
const filledIn: readonly [Job, Readonly<Record<string, unknown>>][] = [
  [
    expireCarts,
    {
      JobDescription: "Carts that nobody ordered in time expire",
      TimeoutSeconds: 245,
      ScheduleExpression: "cron(0/5 * * * ? *)",
      EventAgeSeconds: 960,
      ReadTableArns: tables("cart-audit"),
      WriteTableArns: tables("cart-audit", "carts"),
      SourceQueryArn: `${tables("carts")}/index/byExpiry`,
      HasSource: "true",
    },
  ],
  [
    dailyReport,
    {
      TimeoutSeconds: 305,
      MemorySize: 1_024,
      ScheduleExpression: "cron(30 6 * * ? *)",
      ScheduleZone: "Europe/Berlin",
      FlexibleMinutes: 15,
      EventAgeSeconds: 2_040,
      ReadTableArns: [otherAccountsTable],
      ReadIndexArns: [`${tables("sales")}/index/byDay`],
      PutsMetrics: "true",
    },
  ],
  [rebuild, { TimeoutSeconds: 605, Retries: 0, EventAgeSeconds: 2_040, RunsAgain: "false", HasAlarms: "false" }],
  [
    sweep,
    {
      TimeoutSeconds: 605,
      ScheduleExpression: "cron(0 0/6 * * ? *)",
      EventAgeSeconds: 2_040,
      LongChain: "true",
      CappedInARow: 22,
      SourceScanArn: `${tables("sessions")}`,
      HasSource: "true",
    },
  ],
  [
    healer,
    {
      TimeoutSeconds: 245,
      ScheduleExpression: "cron(0/5 * * * ? *)",
      EventAgeSeconds: 960,
      WatchedJobs: ["job#daily_report", "job#expire-carts", "job#rebuild", "job#sweep"],
      HealedFunctionArns: ["daily_report", "expire-carts", "rebuild", "sweep"].map((name) =>
        own("lambda", `function:shop-prod-${name}`),
      ),
      HealedFunctionName: "shop-prod-{job}",
    },
  ],
];

/** A job's own resources, called as in job.yml, with everything worked out. */
const builtFor = ({ job, functionLogicalId }: DeployedJob): Template => {
  const prefix = jobIds(job.name).role.replace(/Role$/, "");
  const resources = Object.entries(built.Resources as Record<string, Template>).flatMap(([id, resource]) => {
    const name = id === functionLogicalId ? "Function" : id.startsWith(prefix) ? id.slice(prefix.length) : undefined;
    if (name === undefined) return [];
    const { Type, Properties, DependsOn } = resource;
    const ids = DependsOn?.map((each: string) => each.slice(prefix.length));
    return [[name, { Type, ...(ids && { DependsOn: ids }), Properties: resolved(Properties, built) }]];
  });
  // Roles have no names, and go by their logical ids.
  return JSON.parse(JSON.stringify(Object.fromEntries(resources)).replaceAll(`role/${prefix}`, "role/"));
};

describe("infra/job.yml", () => {
  it.each(filledIn.map(([job, parameters]) => [job.name, parameters] as const))(
    "gives what the builders give for %s",
    (name, parameters) => {
      const one = jobs.find(({ job }) => job.name === name) as DeployedJob;
      const all = { ...common, JobName: name, FunctionName: one.functionName, ...parameters };
      expect(resolvedResources(jobTemplate, all)).toEqual(withoutOwnVariables(one, builtFor(one)));
    },
  );
});

describe("infra/service.yml", () => {
  it("gives what the builders give for all jobs together", () => {
    const made: DeployedService = { ...service, settings: { ...service.settings, alarmTopic: { create: true } } };
    const resources = Object.entries(serviceResources({ ...made, jobs: [] })).map(([id, resource]) => [
      id === "deadDashlettersDeadLettersAlarm" ? "DeadLettersAlarm" : id.replace("Cronfence", ""),
      resource,
    ]);
    const renamed = JSON.parse(JSON.stringify(Object.fromEntries(resources)).replaceAll('"Cronfence', '"'));
    const expected = resolvedResources({ Resources: renamed }, {});
    expect(resolvedResources(serviceTemplate, { ServiceName: "shop-prod" })).toEqual(expected);
  });
});

it("The templates for people without the plugin pass cfn-lint", async ({ skip }) => {
  const said = await cfnLint(...["job.yml", "service.yml", "control-table.yml"].map((file) => `${folder}${file}`));
  skip(said === undefined, noCfnLint);
  expect(said).toBe("");
});

/** A parameter can't hold a function's own variables: they are written into a copy of the template. */
const withoutOwnVariables = <Value extends Template>({ job }: DeployedJob, value: Value): Value => {
  const { Function: made } = value as Template;
  for (const name of Object.keys(job.deployment.environment)) delete made?.Properties.Environment.Variables[name];
  return value;
};
