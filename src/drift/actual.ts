/**
 * What AWS has, asked of each service itself and told in a template's words. CloudFormation isn't asked: it says what it once
 * made.
 */
import type { Clients } from "./clients.ts";
import type { StraySchedule } from "./findings.ts";
import { resolved, type Stack } from "./stack.ts";
import type { Properties, Template } from "./template.ts";

/** One resource of the stack, with its properties as they were deployed. */
interface Located {
  readonly logicalId: string;
  readonly physicalId: string;
  readonly properties: Properties;
}

type Found = Properties | undefined;
type Read = (located: Located, clients: Clients) => Promise<Found>;

/** By logical id; undefined for what isn't there any more. */
export const readActual = async (
  template: Template,
  stack: Stack,
  clients: Clients,
): Promise<ReadonlyMap<string, Found>> => {
  const located = locate(template, stack);
  const actual = new Map<string, Found>(await readAlarms(located.get("AWS::CloudWatch::Alarm") ?? [], clients));
  for (const [type, read] of Object.entries(readers)) {
    await atMost(requestsAtOnce, located.get(type) ?? [], async (each) => {
      actual.set(each.logicalId, await read(each, clients));
    });
  }
  return actual;
};

/** Schedules of the stack's groups that the stack doesn't have. */
export const readStrays = async (template: Template, stack: Stack, clients: Clients): Promise<StraySchedule[]> => {
  const { scheduler, sdk } = clients;
  const located = locate(template, stack);
  const own = new Set((located.get("AWS::Scheduler::Schedule") ?? []).map((each) => placeOf(each).join("/")));
  const strays: StraySchedule[] = [];
  for (const { physicalId } of located.get("AWS::Scheduler::ScheduleGroup") ?? []) {
    const group = lastPart(physicalId);
    let NextToken: string | undefined;
    do {
      const page = await orNothing(
        scheduler.send(
          new sdk.scheduler.ListSchedulesCommand({
            GroupName: group,
            ...(NextToken === undefined ? {} : { NextToken }),
          }),
        ),
      );
      for (const { Name = "" } of page?.Schedules ?? [])
        if (!own.has(`${group}/${Name}`)) strays.push({ group, name: Name });
      NextToken = page?.NextToken;
    } while (NextToken !== undefined);
  }
  return strays;
};

const requestsAtOnce = 8;

const locate = ({ Resources }: Template, stack: Stack): ReadonlyMap<string, readonly Located[]> => {
  const located = new Map<string, Located[]>();
  for (const [logicalId, { physicalId }] of Object.entries(stack.resources)) {
    const resource = Resources[logicalId];
    if (resource === undefined) continue;
    const properties = resolved(resource.Properties ?? {}, stack) as Properties;
    const ofType = located.get(resource.Type) ?? [];
    located.set(resource.Type, [...ofType, { logicalId, physicalId, properties }]);
  }
  return located;
};

/** A schedule's group and name: its id in the stack is the name alone. */
const placeOf = ({ physicalId, properties }: Located): readonly [string, string] => [
  typeof properties.GroupName === "string" ? properties.GroupName : "default",
  lastPart(physicalId),
];

const lastPart = (id: string): string => id.slice(Math.max(id.lastIndexOf("/"), id.lastIndexOf("|")) + 1);

const readers: Readonly<Record<string, Read>> = {
  "AWS::Scheduler::Schedule": async (located, { scheduler, sdk }) => {
    const [GroupName, Name] = placeOf(located);
    return (await orNothing(scheduler.send(new sdk.scheduler.GetScheduleCommand({ GroupName, Name })))) as Found;
  },
  "AWS::Lambda::Function": async ({ physicalId: FunctionName }, { lambda, sdk }) => {
    const fn = await orNothing(lambda.send(new sdk.lambda.GetFunctionConfigurationCommand({ FunctionName })));
    if (fn === undefined) return undefined;
    const { ReservedConcurrentExecutions } = await lambda.send(
      new sdk.lambda.GetFunctionConcurrencyCommand({ FunctionName }),
    );
    return { ...fn, ReservedConcurrentExecutions, Layers: (fn.Layers ?? []).map(({ Arn }) => Arn) };
  },
  "AWS::Lambda::EventInvokeConfig": async ({ properties }, { lambda, sdk }) => {
    const { FunctionName, Qualifier } = properties as { FunctionName: string; Qualifier: string };
    const at = Qualifier === "$LATEST" ? { FunctionName } : { FunctionName, Qualifier };
    return (await orNothing(lambda.send(new sdk.lambda.GetFunctionEventInvokeConfigCommand(at)))) as Found;
  },
  "AWS::DynamoDB::Table": async ({ physicalId: TableName }, { dynamo, sdk }) => {
    const described = await orNothing(dynamo.send(new sdk.dynamo.DescribeTableCommand({ TableName })));
    if (described?.Table === undefined) return undefined;
    const { TimeToLiveDescription: ttl } = await dynamo.send(new sdk.dynamo.DescribeTimeToLiveCommand({ TableName }));
    const { ContinuousBackupsDescription: backups } = await dynamo.send(
      new sdk.dynamo.DescribeContinuousBackupsCommand({ TableName }),
    );
    const { Table } = described;
    return {
      ...Table,
      BillingMode: Table.BillingModeSummary?.BillingMode,
      TimeToLiveSpecification: {
        Enabled: /^ENABL/.test(ttl?.TimeToLiveStatus ?? ""),
        AttributeName: ttl?.AttributeName,
      },
      PointInTimeRecoverySpecification: {
        PointInTimeRecoveryEnabled: backups?.PointInTimeRecoveryDescription?.PointInTimeRecoveryStatus === "ENABLED",
      },
    };
  },
  "AWS::Logs::LogGroup": async ({ physicalId }, { logs, sdk }) => {
    const { logGroups = [] } = await logs.send(
      new sdk.logs.DescribeLogGroupsCommand({ logGroupNamePrefix: physicalId }),
    );
    const found = logGroups.find(({ logGroupName }) => logGroupName === physicalId);
    return found && { RetentionInDays: found.retentionInDays };
  },
};

/** https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarms.html */
const alarmsAtOnce = 100;

const readAlarms = async (
  alarms: readonly Located[],
  { cloudWatch, sdk }: Clients,
): Promise<(readonly [string, Found])[]> => {
  const found = new Map<string | undefined, Properties>();
  for (let from = 0; from < alarms.length; from += alarmsAtOnce) {
    const AlarmNames = alarms.slice(from, from + alarmsAtOnce).map(({ physicalId }) => physicalId);
    const { MetricAlarms = [] } = await cloudWatch.send(
      new sdk.cloudWatch.DescribeAlarmsCommand({ AlarmNames, MaxRecords: alarmsAtOnce }),
    );
    for (const alarm of MetricAlarms) found.set(alarm.AlarmName, { ...alarm });
  }
  return alarms.map(({ logicalId, physicalId }) => [logicalId, found.get(physicalId)] as const);
};

/** What isn't there is no error here. */
const orNothing = <T>(answer: Promise<T>): Promise<T | undefined> =>
  answer.catch((error: Error) => {
    if (error.name === "ResourceNotFoundException") return undefined;
    throw error;
  });

const atMost = async <T>(count: number, items: readonly T[], act: (item: T) => Promise<void>): Promise<void> => {
  const left = items.values();
  const work = async () => {
    for (const item of left) await act(item);
  };
  await Promise.all(Array.from({ length: count }, work));
};
