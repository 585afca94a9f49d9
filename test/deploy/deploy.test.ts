/** A service's life on the local AWS: deployed, fired, changed, deployed again and removed, by the CLI that people use. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { CloudWatchClient, DescribeAlarmsCommand } from "@aws-sdk/client-cloudwatch";
import { CloudWatchLogsClient, DescribeLogGroupsCommand } from "@aws-sdk/client-cloudwatch-logs";
import {
  DescribeContinuousBackupsCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  DynamoDBClient,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import {
  GetRoleCommand,
  GetRolePolicyCommand,
  IAMClient,
  ListRolePoliciesCommand,
  ListRolesCommand,
} from "@aws-sdk/client-iam";
import {
  GetFunctionConfigurationCommand,
  GetFunctionEventInvokeConfigCommand,
  InvokeCommand,
  LambdaClient,
  ListFunctionsCommand,
} from "@aws-sdk/client-lambda";
import { ListTopicsCommand, SNSClient } from "@aws-sdk/client-sns";
import { dumpTable } from "cronfence/testing";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { fireSchedules, schedulesIn } from "./fire.ts";
import { type FixtureService, fixtureService, plainService } from "./fixture-service.ts";
import { cronJob } from "./jobs.ts";
import { noLocalAws, useLocalAws } from "./local-aws.ts";
import { filesIn } from "./zip.ts";

const aws = useLocalAws();
const controlTable = "shop-jobs-dev-cronfence";
let service: FixtureService;

/** With a function and a table of its own, which have nothing to do with cronfence. */
const serverlessYml = (
  version: string,
) => `${plainService.replace("custom: { cronfence: {", `custom: { cronfence: { version: "${version}",`)}
functions:
  - hello: { handler: hello.handler }
package: { excludeDevDependencies: false }
resources:
  Resources:
    Rows:
      Type: AWS::DynamoDB::Table
      Properties:
        TableName: rows
        BillingMode: PAY_PER_REQUEST
        AttributeDefinitions: [{ AttributeName: id, AttributeType: S }]
        KeySchema: [{ AttributeName: id, KeyType: HASH }]
`;

const hourly = (minute: number) => `cron("${minute} * * * *", { zone: "Europe/Berlin" })`;
const files = {
  "serverless.yml": serverlessYml("v1"),
  "hello.mjs": 'export const handler = async () => "hello";',
  "handlers/every-five.ts": cronJob("every-five"),
  "handlers/hourly.ts": cronJob("hourly", 'retries: 0, jitter: "5m",', hourly(17)),
};

const lambda = () => aws.client(LambdaClient);
const configurationOf = (name: string) => lambda().send(new GetFunctionConfigurationCommand({ FunctionName: name }));
const invoke = async (job: string, event: object): Promise<unknown> => {
  const request = { FunctionName: `shop-jobs-dev-${job}`, Payload: JSON.stringify(event) };
  return JSON.parse((await lambda().send(new InvokeCommand(request))).Payload?.transformToString() ?? "null");
};
const functionNames = async () =>
  ((await lambda().send(new ListFunctionsCommand({}))).Functions ?? []).map(({ FunctionName }) => FunctionName).sort();
const records = async (job: string) =>
  (await dumpTable(aws.client(DynamoDBClient), controlTable)).filter(
    ({ pk, sk }) => pk === `job#${job}` && String(sk).startsWith("run#"),
  );

beforeAll(async () => {
  if (noLocalAws !== undefined) return;
  service = await fixtureService(files, { env: () => aws.env });
});

describe("a service, deployed", () => {
  it("says what it has become", async () => {
    const { code, said } = await service.sls("deploy");
    expect(said).toContain("version v1");
    expect(said).toContain(`control table: ${controlTable}`);
    expect(code).toBe(0);
    expect(await functionNames()).toEqual(
      ["every-five", "hello", "hourly", "watchdog"].map((name) => `shop-jobs-dev-${name}`),
    );
    // What the service's own functions are packed into holds no job's bundle.
    const own = Object.keys(filesIn(await readFile(join(service.folder, ".serverless/shop-jobs.zip"))));
    expect(own).toContain("hello.mjs");
    expect(own.filter((name) => name.startsWith(".build"))).toEqual([]);
  }, 300_000);

  it("has a schedule for each job in a group of its own, with zone, window, retries and dead letters", async () => {
    const schedules = await schedulesIn(aws);
    expect(Object.keys(schedules)).toHaveLength(3);
    for (const { GroupName, State } of Object.values(schedules)) {
      expect({ GroupName, State }).toEqual({ GroupName: "shop-jobs-dev", State: "ENABLED" });
    }
    const target = (job: string) => Object.values(schedules).find(({ Target }) => Target?.Arn?.endsWith(`-${job}`));
    expect(target("every-five")).toMatchObject({
      ScheduleExpression: "cron(0/5 * * * ? *)",
      ScheduleExpressionTimezone: "UTC",
      FlexibleTimeWindow: { Mode: "OFF" },
      Target: { RetryPolicy: { MaximumRetryAttempts: 2 }, DeadLetterConfig: { Arn: expect.stringContaining(":sqs:") } },
    });
    expect(target("hourly")).toMatchObject({
      ScheduleExpression: "cron(17 * * * ? *)",
      ScheduleExpressionTimezone: "Europe/Berlin",
      FlexibleTimeWindow: { Mode: "FLEXIBLE", MaximumWindowInMinutes: 5 },
      Target: { RetryPolicy: { MaximumRetryAttempts: 0 } },
    });
  });

  it("has functions that outlive their jobs, report their version, and retry as the job says", async () => {
    expect(await configurationOf("shop-jobs-dev-hourly")).toMatchObject({
      Runtime: "nodejs22.x",
      Timeout: 35,
      MemorySize: 512,
      Environment: {
        Variables: { CRONFENCE_TABLE: controlTable, CRONFENCE_VERSION: "v1", CRONFENCE_SERVICE: "shop-jobs-dev" },
      },
    });
    const settings = await lambda().send(
      new GetFunctionEventInvokeConfigCommand({ FunctionName: "shop-jobs-dev-hourly" }),
    );
    expect(settings).toMatchObject({
      MaximumRetryAttempts: 0,
      DestinationConfig: { OnFailure: { Destination: expect.stringContaining(":sqs:") } },
    });
    const { logGroups = [] } = await aws.client(CloudWatchLogsClient).send(new DescribeLogGroupsCommand({}));
    expect(logGroups.find(({ logGroupName }) => logGroupName?.endsWith("-hourly"))?.retentionInDays).toBe(30);
  });

  it("gives each function a role of its own, which reaches its own control items", async () => {
    const iam = aws.client(IAMClient);
    const { Roles = [] } = await iam.send(new ListRolesCommand({}));
    const role = (await configurationOf("shop-jobs-dev-hourly")).Role;
    const { RoleName } = Roles.find(({ Arn }) => Arn === role) ?? {};
    const { PolicyNames = [] } = await iam.send(new ListRolePoliciesCommand({ RoleName }));
    const policies = await Promise.all(
      PolicyNames.map(async (PolicyName) =>
        decodeURIComponent((await iam.send(new GetRolePolicyCommand({ RoleName, PolicyName }))).PolicyDocument ?? ""),
      ),
    );
    expect(policies.join()).toContain("job#hourly");
    expect(policies.join()).not.toContain("job#every-five");
    expect(new Set(Roles.map(({ Arn }) => Arn)).size).toBe(Roles.length);
    const schedule = Object.values(await schedulesIn(aws))[0];
    const scheduleRole = await iam.send(new GetRoleCommand({ RoleName: schedule?.Target?.RoleArn?.split("/").at(-1) }));
    const trust = decodeURIComponent(scheduleRole.Role?.AssumeRolePolicyDocument ?? "");
    expect(trust).toContain("scheduler.amazonaws.com");
    expect(trust).not.toContain("lambda.amazonaws.com");
  });

  it("has a control table that expires records, can be restored, and isn't deleted by mistake", async () => {
    const dynamo = aws.client(DynamoDBClient);
    const TableName = controlTable;
    const { Table } = await dynamo.send(new DescribeTableCommand({ TableName }));
    expect(Table).toMatchObject({
      DeletionProtectionEnabled: true,
      BillingModeSummary: { BillingMode: "PAY_PER_REQUEST" },
    });
    const { TimeToLiveDescription } = await dynamo.send(new DescribeTimeToLiveCommand({ TableName }));
    expect(TimeToLiveDescription).toMatchObject({ AttributeName: "expiresAt", TimeToLiveStatus: "ENABLED" });
    const { ContinuousBackupsDescription } = await dynamo.send(new DescribeContinuousBackupsCommand({ TableName }));
    expect(ContinuousBackupsDescription?.PointInTimeRecoveryDescription?.PointInTimeRecoveryStatus).toBe("ENABLED");
  });

  it("has alarms for each job and for the watchdog, all of which page the topic that was made", async () => {
    const { Topics = [] } = await aws.client(SNSClient).send(new ListTopicsCommand({}));
    expect(Topics).toHaveLength(1);
    const { MetricAlarms = [] } = await aws.client(CloudWatchClient).send(new DescribeAlarmsCommand({}));
    const names = MetricAlarms.map(({ AlarmName }) => AlarmName);
    for (const name of ["every-five-overdue", "hourly-overdue", "hourly-failures", "watchdog-absent"]) {
      expect(names).toContain(`shop-jobs-dev-${name}`);
    }
    for (const { AlarmActions } of MetricAlarms) expect(AlarmActions).toEqual([Topics[0]?.TopicArn]);
  });

  it("does its work when its schedules fire, and records it with the version that did it", async () => {
    const answers = Object.values(await fireSchedules(aws, "2026-03-01T06:17:00Z"));
    expect(answers.map((answer) => (answer as { outcome: string }).outcome)).toEqual([
      "succeeded",
      "succeeded",
      "succeeded",
    ]);
    const rows = await dumpTable(aws.client(DynamoDBClient), "rows");
    expect(rows.map(({ id }) => id).sort()).toEqual([
      "every-five#2026-03-01T06:17:00.000Z",
      "hourly#2026-03-01T06:17:00.000Z",
    ]);
    for (const job of ["every-five", "hourly", "watchdog"]) {
      expect(await records(job)).toMatchObject([{ outcome: "succeeded", version: "v1" }]);
    }
  });

  it("does the same tick no second time", async () => {
    const answers = Object.values(await fireSchedules(aws, "2026-03-01T06:17:00Z"));
    expect(answers.map((answer) => (answer as { outcome: string }).outcome)).toEqual([
      "duplicate",
      "duplicate",
      "duplicate",
    ]);
    expect(await dumpTable(aws.client(DynamoDBClient), "rows")).toHaveLength(2);
  });
});

describe("a service, deployed again", () => {
  it("isn't touched where nothing has changed", async () => {
    const { code, said } = await service.sls("deploy");
    expect(said).toMatch(/no changes|did not change|skipped/i);
    expect(code).toBe(0);
  }, 300_000);

  it("has what was changed in a job's definition, and keeps the rest with its control items", async () => {
    await service.write({
      "serverless.yml": serverlessYml("v2"),
      "handlers/hourly.ts": cronJob("hourly", "memory: 1024, retries: 1,", hourly(18)),
    });
    const { code, said } = await service.sls("deploy");
    expect(said).toContain("version v2");
    expect(code).toBe(0);
    const schedules = Object.values(await schedulesIn(aws));
    expect(schedules).toHaveLength(3);
    expect(schedules.find(({ Target }) => Target?.Arn?.endsWith("-hourly"))).toMatchObject({
      ScheduleExpression: "cron(18 * * * ? *)",
      FlexibleTimeWindow: { Mode: "OFF" },
      Target: { RetryPolicy: { MaximumRetryAttempts: 1 } },
    });
    expect(await configurationOf("shop-jobs-dev-hourly")).toMatchObject({ MemorySize: 1024 });
    expect(await records("hourly")).toHaveLength(1);
  }, 300_000);

  it("has a watchdog that starts what is overdue", async () => {
    const hourAgo = Date.now() - 3_600_000;
    await aws.client(DynamoDBClient).send(
      new UpdateItemCommand({
        TableName: controlTable,
        Key: { pk: { S: "job#every-five" }, sk: { S: "control" } },
        UpdateExpression: "SET #since = :then, #tick = :then REMOVE activeSince",
        ExpressionAttributeNames: { "#since": "since", "#tick": "tick" },
        ExpressionAttributeValues: { ":then": { N: `${hourAgo}` } },
      }),
    );
    const now = new Date().toISOString();
    const looked = await invoke("watchdog", { job: "watchdog", scheduledTime: now, attempt: "1" });
    expect(looked).toMatchObject({ outcome: "succeeded" });
    // It doesn't wait for what it has started.
    await vi.waitUntil(async () => (await records("every-five")).length === 2, { timeout: 60_000, interval: 200 });
    expect((await records("every-five"))[1]).toMatchObject({ outcome: "succeeded", version: "v2" });
  }, 300_000);

  it("takes one function's code and version alone, and leaves its role", async () => {
    const before = await configurationOf("shop-jobs-dev-hourly");
    await service.write({
      "serverless.yml": serverlessYml("v3"),
      "handlers/hourly.ts": cronJob("hourly", "memory: 1024, retries: 1,", hourly(18)).replace(
        '"hourly#"',
        '"changed#"',
      ),
    });
    const { code } = await service.sls("deploy", "function", "--function", "hourly");
    expect(code).toBe(0);
    const after = await configurationOf("shop-jobs-dev-hourly");
    expect(after.Role).toBe(before.Role);
    expect(after.CodeSha256).not.toBe(before.CodeSha256);
    const dueNow = new Date().toISOString();
    const event = { job: "hourly", scheduledTime: dueNow, attempt: "1" };
    expect(await invoke("hourly", event)).toMatchObject({ outcome: "succeeded" });
    expect((await records("hourly")).map(({ version }) => version)).toEqual(["v1", "v3"]);
    const rows = await dumpTable(aws.client(DynamoDBClient), "rows");
    expect(rows.map(({ id }) => id)).toContain(`changed#${dueNow}`);
    expect(await configurationOf("shop-jobs-dev-every-five")).toMatchObject({
      Environment: { Variables: { CRONFENCE_VERSION: "v2" } },
    });
  }, 300_000);
});

describe("a service, removed", () => {
  it("is gone but for its control table, says so, and needs no job's file for it", async () => {
    await service.write({ "handlers/hourly.ts": "this is not a module" });
    const { code, said } = await service.sls("remove");
    expect(said).toContain(`the control table "${controlTable}" is kept`);
    expect(code).toBe(0);
    expect(await functionNames()).toEqual([]);
    expect(await schedulesIn(aws)).toEqual({});
    expect((await aws.client(CloudWatchClient).send(new DescribeAlarmsCommand({}))).MetricAlarms).toEqual([]);
    expect(await records("hourly")).toHaveLength(2);
  }, 300_000);

  it("isn't deployed again beside its old table, and is on it when told so", async () => {
    await service.write({ "handlers/hourly.ts": files["handlers/hourly.ts"] });
    const refused = await service.sls("deploy");
    expect(refused.said).toContain(`the control table "${controlTable}" is there already`);
    expect(refused.said).toContain(`controlTable: { name: ${controlTable} }`);
    expect(refused.code).toBe(1);
    expect(await functionNames()).toEqual([]);
    const adopting = `controlTable: { name: ${controlTable} }, version:`;
    await service.write({ "serverless.yml": serverlessYml("v4").replace("version:", adopting) });
    expect(await service.sls("deploy")).toMatchObject({ code: 0 });
    expect(Object.values(await fireSchedules(aws, "2026-03-01T06:17:00Z"))).toMatchObject([
      { outcome: "duplicate" },
      { outcome: "duplicate" },
      { outcome: "duplicate" },
    ]);
  }, 300_000);
});
