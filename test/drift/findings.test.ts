/** The comparison on templates as the builders make them, and on what AWS answers. */
import { cron, defineJob } from "cronfence";
import { describe, expect, it } from "vitest";
import { functionSettings, serviceResources } from "../../infra/service.ts";
import { compare, type Finding } from "../../src/drift/findings.ts";
import { remediesFor } from "../../src/drift/remedies.ts";
import { resolved, type Stack } from "../../src/drift/stack.ts";
import type { Properties, Template } from "../../src/drift/template.ts";

interface Sample {
  readonly minute?: number;
  readonly version?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

/** A template, as the plugin makes one. */
const templateOf = ({ minute = 7, version = "v1", environment = { TOKEN: "hush" } }: Sample = {}): Template => {
  const job = defineJob({
    name: "hourly",
    schedule: cron(`${minute} * * * *`),
    timeout: "1m",
    environment,
    run: () => {},
  });
  const deployed = { job, functionName: "shop-prod-hourly", functionLogicalId: "HourlyLambdaFunction" };
  const settings = {
    service: "shop",
    stage: "prod",
    controlTable: { create: true, name: "shop-prod-cronfence" },
    alarmTopic: { create: true },
    logRetentionDays: 30,
    version,
  } as const;
  const service = { jobs: [deployed], settings };
  const { DependsOn: _, ...properties } = functionSettings(deployed, service);
  const fn = {
    Type: "AWS::Lambda::Function",
    Properties: { ...properties, FunctionName: deployed.functionName, Runtime: "nodejs22.x", Handler: "index.handler" },
  };
  // As JSON, as a template is read.
  return JSON.parse(JSON.stringify({ Resources: { ...serviceResources(service), HourlyLambdaFunction: fn } }));
};

const stackOf = (template: Template): Stack => ({
  name: "shop-prod",
  region: "eu-central-1",
  account: "123456789012",
  partition: "aws",
  parameters: {},
  resources: Object.fromEntries(
    Object.entries(template.Resources).map(([id, { Type, Properties = {} }]) => {
      const name = ["Name", "FunctionName", "AlarmName", "TableName", "LogGroupName", "QueueName", "TopicName"]
        .map((key) => Properties[key])
        .find((value) => typeof value === "string");
      return [id, { type: Type, physicalId: String(name ?? `physical-${id}`) }];
    }),
  ),
});

/** What AWS has right after a deployment. */
const asDeployed = (template: Template, stack: Stack): Map<string, Properties | undefined> =>
  new Map(
    Object.entries(template.Resources).map(([id, { Properties = {} }]) => [
      id,
      resolved(Properties, stack) as Properties,
    ]),
  );

const schedule = "JobhourlySchedule";
const fn = "HourlyLambdaFunction";
const alarmId = (template: Template) =>
  Object.keys(template.Resources).find((id) => template.Resources[id]?.Type === "AWS::CloudWatch::Alarm") as string;

/** Compares after a change of what AWS has, by resource. */
const drift = (
  changes: Readonly<Record<string, (now: Properties) => Properties | undefined>>,
  repo = templateOf(),
  deployed = templateOf(),
) => {
  const stack = stackOf(deployed);
  const actual = asDeployed(deployed, stack);
  for (const [id, change] of Object.entries(changes)) actual.set(id, change(actual.get(id) ?? {}));
  return compare(repo, deployed, actual, [], stack);
};
const variablesOf = ({ Environment }: Properties) => (Environment as { readonly Variables: object }).Variables;
const short = ({ name, setting, repo, deployed, cause }: Finding) => ({ name, setting, repo, deployed, cause });

describe("what is as it was deployed", () => {
  it("has no drift, and something was compared", () => {
    const { findings, otherVersions, resources, settings, unknown } = drift({});
    expect({ findings, otherVersions, unknown }).toEqual({ findings: [], otherVersions: [], unknown: [] });
    expect(resources).toBeGreaterThanOrEqual(6);
    expect(settings).toBeGreaterThan(50);
  });

  it("has none for defaults that AWS fills in or leaves out, for numbers as texts, nor for the order of sets (case 29)", () => {
    const topics = ["arn:aws:sns:eu-central-1:1:b", "arn:aws:sns:eu-central-1:1:a"];
    const repo = templateOf();
    const id = alarmId(repo);
    const [template, last] = [repo, templateOf()].map(({ Resources }) => ({
      Resources: {
        ...Resources,
        Plain: {
          Type: "AWS::Scheduler::Schedule",
          Properties: {
            ScheduleExpression: "rate(1 hour)",
            FlexibleTimeWindow: { Mode: "OFF" },
            Target: { Arn: "arn:x", RoleArn: "arn:y", Input: '{"a":1,"b":2}' },
          },
        },
        [id]: {
          Type: "AWS::CloudWatch::Alarm",
          Properties: { ...Resources[id]?.Properties, Period: "300", AlarmActions: topics },
        },
      },
    })) as unknown as [Template, Template];
    const changes = {
      Plain: () => ({
        GroupName: "default",
        State: "ENABLED",
        ScheduleExpression: "rate(1 hour)",
        ScheduleExpressionTimezone: "UTC",
        FlexibleTimeWindow: { Mode: "OFF" },
        Target: {
          Arn: "arn:x",
          RoleArn: "arn:y",
          Input: '{ "b": 2, "a": 1 }',
          RetryPolicy: { MaximumRetryAttempts: 185, MaximumEventAgeInSeconds: 86_400 },
        },
      }),
      [id]: (now: Properties) => ({ ...now, Period: 300, ActionsEnabled: true, AlarmActions: topics.toReversed() }),
      [fn]: (now: Properties) => ({
        ...now,
        Architectures: ["x86_64"],
        EphemeralStorage: { Size: 512 },
        TracingConfig: { Mode: "PassThrough" },
        Layers: [],
      }),
    };
    expect(drift(changes, template, last).findings).toEqual([]);
  });
});

describe("a change by hand", () => {
  it("to a schedule's state comes first, and says that the job isn't started", () => {
    const { findings } = drift({
      [fn]: (now) => ({ ...now, Timeout: 900 }),
      [schedule]: (now) => ({ ...now, State: "DISABLED" }),
    });
    expect(findings.map(short)).toEqual([
      { name: "hourly", setting: "State", repo: "ENABLED", deployed: "DISABLED", cause: "by hand" },
      { name: "shop-prod-hourly", setting: "Timeout", repo: 65, deployed: 900, cause: "by hand" },
    ]);
    expect(findings[0]?.means).toBe("the schedule is disabled: the job isn't started");
  });

  it("of a schedule's target to an old function is drift (case 29)", () => {
    const { findings } = drift({
      [schedule]: ({ Target, ...now }) => ({ ...now, Target: { ...(Target as object), Arn: "arn:aws:lambda:x:old" } }),
    });
    expect(findings).toMatchObject([{ setting: "Target.Arn", means: "the schedule starts another function" }]);
  });

  it.each([
    ["an end", schedule, { EndDate: new Date("2026-04-01T00:00:00Z") }, "EndDate", "2026-04-01T00:00:00.000Z"],
    ["another time", schedule, { ScheduleExpression: "rate(1 day)" }, "ScheduleExpression", "rate(1 day)"],
    [
      "another zone",
      schedule,
      { ScheduleExpressionTimezone: "Asia/Tokyo" },
      "ScheduleExpressionTimezone",
      "Asia/Tokyo",
    ],
    [
      "a window",
      schedule,
      { FlexibleTimeWindow: { Mode: "FLEXIBLE", MaximumWindowInMinutes: 9 } },
      "FlexibleTimeWindow",
      "9 minutes",
    ],
    ["no concurrency", fn, { ReservedConcurrentExecutions: 0 }, "ReservedConcurrentExecutions", 0],
    ["another runtime", fn, { Runtime: "nodejs20.x" }, "Runtime", "nodejs20.x"],
    ["another role", fn, { Role: "arn:aws:iam::1:role/admin" }, "Role", "admin"],
    ["fewer retries", "JobhourlyInvocation", { MaximumRetryAttempts: 0 }, "MaximumRetryAttempts", 0],
    ["no destination", "JobhourlyInvocation", { DestinationConfig: {} }, "DestinationConfig.OnFailure", null],
    [
      "no protection",
      "CronfenceControlTable",
      { DeletionProtectionEnabled: false },
      "DeletionProtectionEnabled",
      false,
    ],
    ["no backups", "CronfenceControlTable", { PointInTimeRecoverySpecification: {} }, "PointInTimeRecovery", false],
    ["no expiry", "CronfenceControlTable", { TimeToLiveSpecification: { Enabled: false } }, "TimeToLive", "off"],
    ["logs for ever", "JobhourlyLogGroup", { RetentionInDays: undefined }, "RetentionInDays", "never ends"],
  ])("that sets %s is found", (_what, id, change, setting, deployed) => {
    const { findings } = drift({ [id]: (now) => ({ ...now, ...change }) });
    expect(findings).toMatchObject([{ logicalId: id, setting, deployed, cause: "by hand" }]);
  });

  it("to an alarm is found, whichever part of it", () => {
    const id = alarmId(templateOf());
    for (const change of [
      { ActionsEnabled: false },
      { AlarmActions: [] },
      { Threshold: 1e9 },
      { TreatMissingData: "breaching" },
    ]) {
      const { findings } = drift({ [id]: (now) => ({ ...now, ...change }) });
      expect(findings).toMatchObject([{ setting: Object.keys(change)[0], cause: "by hand" }]);
    }
  });

  it("to a variable is found, with its name and without its value", () => {
    const { findings } = drift({
      [fn]: (now) => ({ ...now, Environment: { Variables: { ...variablesOf(now), TOKEN: "secret", MORE: "secret" } } }),
    });
    expect(findings.map(({ setting }) => setting)).toEqual(["Environment.MORE", "Environment.TOKEN"]);
    expect(JSON.stringify(findings)).not.toMatch(/secret|hush/);
  });

  it("that deleted something is found", () => {
    const { findings } = drift({ [schedule]: () => undefined, JobhourlyLogGroup: () => undefined });
    expect(findings).toMatchObject([
      { name: "hourly", means: "it was deleted by hand: the job isn't started any more" },
      { name: "/aws/lambda/shop-prod-hourly", means: "it was deleted by hand" },
    ]);
  });
});

describe("what the repo has changed since the last deployment", () => {
  it("isn't called a change by hand, unless somebody also changed it", () => {
    const { findings } = drift({ [fn]: (now) => ({ ...now, Timeout: 900 }) }, templateOf({ minute: 8 }));
    expect(findings.map(short)).toEqual([
      { name: "shop-prod-hourly", setting: "Timeout", repo: 65, deployed: 900, cause: "by hand" },
      {
        name: "hourly",
        setting: "ScheduleExpression",
        repo: "cron(8 * * * ? *)",
        deployed: "cron(7 * * * ? *)",
        cause: "not deployed",
      },
    ]);
  });

  it("is said of what isn't deployed yet, and of what the repo has no more", () => {
    const { JobhourlySchedule: moved, ...Resources } = templateOf().Resources;
    const { findings } = drift({}, { Resources: { ...Resources, Another: moved as never } });
    expect(findings.map(({ logicalId, cause, means }) => ({ logicalId, cause, means }))).toEqual([
      { logicalId: "Another", cause: "not deployed", means: "it isn't deployed yet" },
      { logicalId: schedule, cause: "not deployed", means: "it is deployed, and the repo has it no more" },
    ]);
  });

  it("may be another version, which is no drift", () => {
    const { findings, otherVersions } = drift({}, templateOf({ version: "v2" }));
    expect(findings).toEqual([]);
    expect(otherVersions).toEqual([{ name: "shop-prod-hourly", repo: "v2", deployed: "v1" }]);
  });
});

it("a value that only CloudFormation knows is no drift, and is named", () => {
  const template = templateOf();
  const { Properties = {} } = template.Resources[fn] ?? {};
  const imported = { ...Properties, Description: { "Fn::ImportValue": "shared" } };
  const repo = { Resources: { ...template.Resources, [fn]: { Type: "AWS::Lambda::Function", Properties: imported } } };
  const { findings, unknown } = drift({ [fn]: (now) => ({ ...now, Description: "whatever" }) }, repo, repo);
  expect(findings).toEqual([]);
  expect(unknown).toEqual([`${fn}.Description`]);
});

describe("the command that puts it right", () => {
  const stack = stackOf(templateOf());
  const commands = (findings: readonly Finding[]) =>
    remediesFor(findings, "npx osls deploy --stage prod", stack).flatMap((remedy) => remedy.commands);

  it("is a drift-aware change set where the template is unchanged, since a deployment changes nothing then", () => {
    const { findings } = drift({ [schedule]: (now) => ({ ...now, State: "DISABLED" }) });
    const [create, wait, execute] = commands(findings);
    expect(create).toMatch(
      /create-change-set --stack-name shop-prod .*--use-previous-template --deployment-mode REVERT_DRIFT/,
    );
    expect(wait).toContain("wait change-set-create-complete");
    expect(execute).toContain("execute-change-set");
  });

  it("is a deployment where the resource's template has changed, for CloudFormation then writes all of it", () => {
    const { findings } = drift({ [schedule]: (now) => ({ ...now, State: "DISABLED" }) }, templateOf({ minute: 8 }));
    expect(commands(findings)).toEqual(["npx osls deploy --stage prod"]);
  });

  it("deletes a schedule that no template has", () => {
    const { findings } = compare(
      templateOf(),
      templateOf(),
      asDeployed(templateOf(), stack),
      [{ group: "shop-prod", name: "test" }],
      stack,
    );
    expect(commands(findings)).toEqual([
      "aws scheduler delete-schedule --group-name shop-prod --name test --region eu-central-1",
    ]);
  });

  it("is none where nothing differs", () => {
    expect(commands([])).toEqual([]);
  });
});
