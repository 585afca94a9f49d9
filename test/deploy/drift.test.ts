/** Drift on the local AWS: what was changed by hand is found, whatever it was, and is gone after a deployment. */
import { execFile } from "node:child_process";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import {
  CloudWatchClient,
  DescribeAlarmsCommand,
  PutMetricAlarmCommand,
  type PutMetricAlarmCommandInput,
} from "@aws-sdk/client-cloudwatch";
import { CloudWatchLogsClient, PutRetentionPolicyCommand } from "@aws-sdk/client-cloudwatch-logs";
import { DynamoDBClient, UpdateTimeToLiveCommand } from "@aws-sdk/client-dynamodb";
import {
  GetFunctionConfigurationCommand,
  LambdaClient,
  PutFunctionEventInvokeConfigCommand,
  UpdateFunctionConfigurationCommand,
} from "@aws-sdk/client-lambda";
import {
  CreateScheduleCommand,
  DeleteScheduleCommand,
  GetScheduleCommand,
  SchedulerClient,
  UpdateScheduleCommand,
  type UpdateScheduleCommandInput,
} from "@aws-sdk/client-scheduler";
import { beforeAll, expect, it } from "vitest";
import { type Ended, type FixtureService, fixtureService, plainService } from "./fixture-service.ts";
import { cronJob } from "./jobs.ts";
import { noLocalAws, useLocalAws } from "./local-aws.ts";

const aws = useLocalAws();
const group = "shop-jobs-dev";
let service: FixtureService;

const serverlessYml = (version: string) =>
  plainService.replace("custom: { cronfence: {", `custom: { cronfence: { version: "${version}",`);
const at = (minute: number) => `cron("${minute} * * * *")`;

beforeAll(async () => {
  if (noLocalAws !== undefined) return;
  service = await fixtureService(
    {
      "serverless.yml": serverlessYml("v1"),
      "handlers/hourly.ts": cronJob("hourly", 'environment: { TOKEN: "hush" },', at(17)),
    },
    { env: () => aws.env },
  );
  await deploy();
}, 120_000);

/** The CLI clears its own folder at the next packaging. */
const packaged = "packaged/cloudformation-template-update-stack.json";
const deploy = async () => {
  expect(await service.sls("deploy")).toMatchObject({ code: 0 });
  for (const file of ["cloudformation-template-update-stack.json", "serverless-state.json"]) {
    await cp(join(service.folder, ".serverless", file), join(service.folder, "packaged", file));
  }
};

const drift = (...args: readonly string[]): Promise<Ended & { readonly stdout: string }> =>
  new Promise((resolve) => {
    const command = join(service.folder, "../node_modules/cronfence/dist/src/cli/main.js");
    const options = { cwd: service.folder, env: { ...aws.env, NO_COLOR: "1" } };
    execFile(process.execPath, [command, "drift", ...args], options, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), said: stdout + stderr, stdout }),
    );
  });
const findings = async () => {
  const { code, stdout } = await drift("--json", "--template", packaged);
  const { findings: found, ...rest } = JSON.parse(stdout);
  return { code, found, ...rest };
};

const scheduler = () => aws.client(SchedulerClient);
const lambda = () => aws.client(LambdaClient);
const changeSchedule = async (changes: (now: UpdateScheduleCommandInput) => Partial<UpdateScheduleCommandInput>) => {
  const now = await scheduler().send(new GetScheduleCommand({ GroupName: group, Name: "hourly" }));
  const input = now as UpdateScheduleCommandInput;
  await scheduler().send(new UpdateScheduleCommand({ ...input, ...changes(input) }));
};

it("a service that was deployed and not touched has no drift, by its own CLI's package", async () => {
  const { code, said } = await drift();
  expect(said).toMatch(/^shop-jobs-dev in eu-central-1: no drift \(\d\d+ settings of \d\d+ resources\)\n$/);
  expect(code).toBe(0);
}, 120_000);

it("what was changed by hand is found, the schedule that was disabled first, and no variable's value is shown", async () => {
  await changeSchedule(({ Target }) => ({
    State: "DISABLED",
    Target: {
      Arn: `${Target?.Arn}-old`,
      RoleArn: Target?.RoleArn,
      Input: Target?.Input,
      RetryPolicy: Target?.RetryPolicy,
    },
  }));
  const FunctionName = "shop-jobs-dev-hourly";
  const { Environment } = await lambda().send(new GetFunctionConfigurationCommand({ FunctionName }));
  await lambda().send(
    new UpdateFunctionConfigurationCommand({
      FunctionName,
      Timeout: 900,
      Environment: { Variables: { ...Environment?.Variables, TOKEN: "changed", EXTRA: "secret" } },
    }),
  );
  await lambda().send(new PutFunctionEventInvokeConfigCommand({ FunctionName, MaximumRetryAttempts: 0 }));
  const cloudWatch = aws.client(CloudWatchClient);
  const AlarmNames = [`${group}-hourly-overdue`];
  const { MetricAlarms = [] } = await cloudWatch.send(new DescribeAlarmsCommand({ AlarmNames }));
  const alarm = MetricAlarms[0] as PutMetricAlarmCommandInput;
  await cloudWatch.send(new PutMetricAlarmCommand({ ...alarm, ActionsEnabled: false }));
  await aws
    .client(CloudWatchLogsClient)
    .send(new PutRetentionPolicyCommand({ logGroupName: "/aws/lambda/shop-jobs-dev-hourly", retentionInDays: 1 }));
  await aws.client(DynamoDBClient).send(
    new UpdateTimeToLiveCommand({
      TableName: `${group}-cronfence`,
      TimeToLiveSpecification: { AttributeName: "expiresAt", Enabled: false },
    }),
  );
  const { code, found, drift: any, otherVersions, remedies } = await findings();
  expect({ code, any, otherVersions }).toEqual({ code: 2, any: true, otherVersions: [] });
  expect(found[0]).toMatchObject({ name: "hourly", setting: "State", repo: "ENABLED", deployed: "DISABLED" });
  const causes = new Set(found.map(({ cause }: { cause: string }) => cause));
  expect([...causes]).toEqual(["changed_by_hand"]);
  const settings = found.map(({ name, setting }: { name: string; setting: string }) => `${name} ${setting}`).sort();
  expect(settings).toEqual(
    [
      "hourly State",
      "hourly Target.Arn",
      "hourly Target.DeadLetterConfig.Arn",
      "shop-jobs-dev-hourly Timeout",
      "shop-jobs-dev-hourly Environment.TOKEN",
      "shop-jobs-dev-hourly Environment.EXTRA",
      "shop-jobs-dev-hourly MaximumRetryAttempts",
      "shop-jobs-dev-hourly MaximumEventAgeInSeconds",
      "shop-jobs-dev-hourly DestinationConfig.OnFailure",
      "shop-jobs-dev-hourly-overdue ActionsEnabled",
      "/aws/lambda/shop-jobs-dev-hourly RetentionInDays",
      "shop-jobs-dev-cronfence TimeToLive",
    ].sort(),
  );
  expect(JSON.stringify(remedies)).toContain("--deployment-mode REVERT_DRIFT");
  const { code: status, said } = await drift("--template", packaged);
  expect(status).toBe(2);
  expect(said).toContain("the schedule is disabled: the job isn't started");
  expect(said).not.toMatch(/hush|changed"|secret/);
  const table = said.split("\n\n")[0] as string;
  expect(Math.max(...table.split("\n").map((line) => line.length))).toBeLessThanOrEqual(100);
}, 120_000);

it("a schedule that was deleted, or made, by hand is found, and what the repo has changed meanwhile isn't called that", async () => {
  await service.write({
    "serverless.yml": serverlessYml("v2"),
    "handlers/hourly.ts": cronJob("hourly", 'timeout: "50s", retries: 1, environment: { TOKEN: "new" },', at(18)),
  });
  const now = await scheduler().send(new GetScheduleCommand({ GroupName: group, Name: "hourly" }));
  await scheduler().send(new CreateScheduleCommand({ ...(now as UpdateScheduleCommandInput), Name: "by-hand" }));
  await scheduler().send(new DeleteScheduleCommand({ GroupName: group, Name: "watchdog" }));
  await changeSchedule(() => ({ State: "ENABLED" }));
  const { code, said } = await drift();
  expect(code).toBe(2);
  expect(said).toContain("it was deleted by hand: the job isn't started any more");
  expect(said).toContain("it was made by hand: no template has this schedule");
  expect(said).toMatch(/schedule hourly +ScheduleExpression +cron\(18 .* +in the repo/);
  expect(said).toContain("another version is deployed: shop-jobs-dev-hourly runs v1, and the repo is at v2");
  expect(said).toContain("npx osls deploy\n");
  expect(said).toContain(`aws scheduler delete-schedule --group-name ${group} --name by-hand`);
}, 120_000);

it("is gone from what a deployment writes anew", async () => {
  await deploy();
  await scheduler().send(new DeleteScheduleCommand({ GroupName: group, Name: "by-hand" }));
  const { found } = await findings();
  const left = found.map(({ name, setting }: { name: string; setting: string | null }) => `${name} ${setting ?? ""}`);
  expect(left.filter((text: string) => /^(hourly|shop-jobs-dev-hourly) /.test(text))).toEqual([]);
}, 120_000);

it("--stage and --region say which stack is looked at, also where serverless.yml has neither", async () => {
  const { code, said } = await drift("--stage", "prod", "--region", "eu-west-1");
  expect(said).toContain('there is no stack "shop-jobs-prod" in eu-west-1');
  expect(code).toBe(1);
}, 120_000);

it("a stack that isn't deployed is an error, and says where it was looked for", async () => {
  const { code, said } = await drift("--template", packaged, "--stack", "no-such");
  expect(said).toContain('there is no stack "no-such" in eu-central-1');
  expect(code).toBe(1);
});
