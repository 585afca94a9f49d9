/** The local AWS that deployments are tested on: what moto alone gets wrong about schedules, functions and tables. */
import {
  CloudFormationClient,
  CreateStackCommand,
  DeleteStackCommand,
  UpdateStackCommand,
} from "@aws-sdk/client-cloudformation";
import { CloudWatchClient, DescribeAlarmsCommand } from "@aws-sdk/client-cloudwatch";
import {
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  DynamoDBClient,
  TransactWriteItemsCommand,
} from "@aws-sdk/client-dynamodb";
import { CreateRoleCommand, IAMClient } from "@aws-sdk/client-iam";
import {
  CreateFunctionCommand,
  GetFunctionEventInvokeConfigCommand,
  InvokeCommand,
  LambdaClient,
  PutFunctionEventInvokeConfigCommand,
} from "@aws-sdk/client-lambda";
import { GetScheduleCommand, ListSchedulesCommand, SchedulerClient } from "@aws-sdk/client-scheduler";
import { CreateQueueCommand, ReceiveMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { createTable, dumpTable } from "cronfence/testing";
import { expect, it } from "vitest";
import { useLocalAws } from "./local-aws.ts";
import { zipOf } from "./zip.ts";

const aws = useLocalAws();

const schedule = (expression: string) => ({
  Type: "AWS::Scheduler::Schedule",
  Properties: {
    Name: "nightly",
    GroupName: { Ref: "Group" },
    ScheduleExpression: expression,
    FlexibleTimeWindow: { Mode: "OFF" },
    Target: { Arn: { "Fn::GetAtt": ["Dead", "Arn"] }, RoleArn: "arn:aws:iam::123456789012:role/scheduler" },
  },
});

const retainedTable = {
  Type: "AWS::DynamoDB::Table",
  DeletionPolicy: "Retain",
  Properties: {
    TableName: "kept",
    BillingMode: "PAY_PER_REQUEST",
    DeletionProtectionEnabled: true,
    AttributeDefinitions: [{ AttributeName: "pk", AttributeType: "S" }],
    KeySchema: [{ AttributeName: "pk", KeyType: "HASH" }],
    TimeToLiveSpecification: { AttributeName: "expiresAt", Enabled: true },
  },
};

const template = (expression: string, seconds: number, table = true) =>
  JSON.stringify({
    Resources: {
      Group: { Type: "AWS::Scheduler::ScheduleGroup", Properties: { Name: "jobs" } },
      Dead: { Type: "AWS::SQS::Queue", Properties: { QueueName: "dead" } },
      Schedule: schedule(expression),
      Alarm: {
        Type: "AWS::CloudWatch::Alarm",
        Properties: {
          AlarmName: "overdue",
          Namespace: "cronfence",
          MetricName: "Overdue",
          Dimensions: [{ Name: "Job", Value: "nightly" }],
          Period: seconds,
          EvaluationPeriods: 1,
          Threshold: 0,
          Statistic: "Maximum",
          ComparisonOperator: "GreaterThanThreshold",
        },
      },
      ...(table ? { Table: retainedTable } : {}),
    },
  });

it("a stack makes, changes and removes schedules and alarms, and keeps a retained table with its settings", async () => {
  const cloudFormation = aws.client(CloudFormationClient);
  const scheduler = aws.client(SchedulerClient);
  const alarmPeriod = async () =>
    (await aws.client(CloudWatchClient).send(new DescribeAlarmsCommand({}))).MetricAlarms?.map(({ Period }) => Period);
  const expression = async () =>
    (await scheduler.send(new GetScheduleCommand({ GroupName: "jobs", Name: "nightly" }))).ScheduleExpression;

  await cloudFormation.send(new CreateStackCommand({ StackName: "jobs", TemplateBody: template("rate(1 hour)", 300) }));
  expect(await expression()).toBe("rate(1 hour)");
  expect(await alarmPeriod()).toEqual([300]);

  await cloudFormation.send(
    new UpdateStackCommand({ StackName: "jobs", TemplateBody: template("rate(2 hours)", 600, false) }),
  );
  expect(await expression()).toBe("rate(2 hours)");
  expect(await alarmPeriod()).toEqual([600]);

  await cloudFormation.send(new DeleteStackCommand({ StackName: "jobs" }));
  expect((await scheduler.send(new ListSchedulesCommand({}))).Schedules).toEqual([]);
  expect(await alarmPeriod()).toEqual([]);
  const dynamo = aws.client(DynamoDBClient);
  const { Table } = await dynamo.send(new DescribeTableCommand({ TableName: "kept" }));
  expect(Table?.DeletionProtectionEnabled).toBe(true);
  const { TimeToLiveDescription } = await dynamo.send(new DescribeTimeToLiveCommand({ TableName: "kept" }));
  expect(TimeToLiveDescription).toMatchObject({ TimeToLiveStatus: "ENABLED", AttributeName: "expiresAt" });
});

const createFunction = async (name: string, source: string, timeout = 5) => {
  const zip = zipOf({ "index.mjs": source });
  const trust = { Effect: "Allow", Principal: { Service: "lambda.amazonaws.com" }, Action: "sts:AssumeRole" };
  const document = JSON.stringify({ Version: "2012-10-17", Statement: [trust] });
  const { Role } = await aws
    .client(IAMClient)
    .send(new CreateRoleCommand({ RoleName: name, AssumeRolePolicyDocument: document }));
  await aws.client(LambdaClient).send(
    new CreateFunctionCommand({
      FunctionName: name,
      Role: Role?.Arn,
      Runtime: "nodejs22.x",
      Handler: "index.handler",
      Timeout: timeout,
      Environment: { Variables: { GREETING: "hello" } },
      Code: { ZipFile: zip },
    }),
  );
};

it("a function runs from its zip, with its environment, its request's id and the time that is left", async () => {
  await createFunction(
    "greeter",
    `export const handler = async ({ name }, context) => {
      console.log("greeting", name);
      return { said: process.env.GREETING + " " + name, request: context.awsRequestId, left: context.getRemainingTimeInMillis() };
    };`,
  );
  const answer = await aws
    .client(LambdaClient)
    .send(new InvokeCommand({ FunctionName: "greeter", Payload: JSON.stringify({ name: "Ada" }), LogType: "Tail" }));
  const returned = JSON.parse(answer.Payload?.transformToString() ?? "");
  expect(returned).toEqual({ said: "hello Ada", request: answer.$metadata.requestId, left: expect.any(Number) });
  expect(returned.left).toBeGreaterThan(0);
  expect(returned.left).toBeLessThanOrEqual(5_000);
  expect(Buffer.from(answer.LogResult ?? "", "base64").toString()).toBe("greeting Ada\n");
});

it("a function that throws, or takes too long, is an error of the function's", async () => {
  await createFunction("thrower", `export const handler = async () => { throw new TypeError("no"); };`);
  await createFunction("sleeper", "export const handler = () => new Promise((done) => setTimeout(done, 60_000));", 1);
  const lambda = aws.client(LambdaClient);
  const thrown = await lambda.send(new InvokeCommand({ FunctionName: "thrower" }));
  expect(thrown.FunctionError).toBe("Unhandled");
  expect(JSON.parse(thrown.Payload?.transformToString() ?? "")).toMatchObject({
    errorType: "TypeError",
    errorMessage: "no",
  });
  const late = await lambda.send(new InvokeCommand({ FunctionName: "sleeper" }));
  expect(late.FunctionError).toBe("Unhandled");
  expect(late.Payload?.transformToString()).toContain("Task timed out after 1.00 seconds");
});

it("an asynchronous invocation that fails is repeated as the settings say, and then lies in the on-failure queue", async () => {
  await createFunction("failing", `export const handler = async () => { throw new Error("still no"); };`);
  const queues = aws.client(SQSClient);
  const { QueueUrl } = await queues.send(new CreateQueueCommand({ QueueName: "failures" }));
  const lambda = aws.client(LambdaClient);
  const Destination = `arn:aws:sqs:${aws.region}:${aws.account}:failures`;
  for (const MaximumRetryAttempts of [0, 1]) {
    await lambda.send(
      new PutFunctionEventInvokeConfigCommand({
        FunctionName: "failing",
        MaximumRetryAttempts,
        DestinationConfig: { OnFailure: { Destination } },
      }),
    );
  }
  expect(await lambda.send(new GetFunctionEventInvokeConfigCommand({ FunctionName: "failing" }))).toMatchObject({
    MaximumRetryAttempts: 1,
  });
  await lambda.send(new InvokeCommand({ FunctionName: "failing", InvocationType: "Event", Payload: '{"n":1}' }));
  const { Messages } = await queues.send(new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds: 20 }));
  expect(JSON.parse(Messages?.[0]?.Body ?? "{}")).toMatchObject({
    requestContext: { condition: "RetriesExhausted", approximateInvokeCount: 2 },
    requestPayload: { n: 1 },
    responsePayload: { errorMessage: "still no" },
  });
});

it("writes beside transactions that fail are kept", async () => {
  const dynamo = aws.client(DynamoDBClient);
  await createTable(dynamo, { name: "busy", key: { hash: "id" } });
  const refused = {
    ConditionCheck: { TableName: "busy", Key: { id: { S: "none" } }, ConditionExpression: "attribute_exists(id)" },
  };
  // Enough for a copy of the table to take its time.
  const some = { L: Array.from({ length: 60 }, (_, index) => ({ N: `${index}` })) };
  const writes = Array.from({ length: 60 }, (_, index) => {
    const Put = { TableName: "busy", Item: { id: { S: `${index}` }, some } };
    const TransactItems = index % 2 === 0 ? [{ Put }] : [{ Put }, refused];
    return dynamo.send(new TransactWriteItemsCommand({ TransactItems })).then(
      () => 1,
      () => 0,
    );
  });
  const applied = (await Promise.all(writes)).reduce((sum: number, one) => sum + one, 0);
  expect(applied).toBe(30);
  expect(await dumpTable(dynamo, "busy")).toHaveLength(30);
});
