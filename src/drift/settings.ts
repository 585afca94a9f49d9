/**
 * What is compared, by the type of resource: each of its settings by a name that people know, in a form in which equal things
 * are equal. Defaults are filled in, lists that are sets are sorted, and a text that is JSON is read: what CloudFormation or
 * AWS write differently isn't drift.
 */
import type { Properties } from "./template.ts";

/** By name, such as `Timeout` or `Environment.TABLE`. */
export type Settings = Readonly<Record<string, unknown>>;

/** https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-scheduler-schedule.html and its like. */
export const settingsByType: Readonly<Record<string, (properties: Properties) => Settings>> = {
  "AWS::Scheduler::Schedule": (schedule) => {
    const target = inner(schedule, "Target");
    const retry = inner(target, "RetryPolicy");
    return {
      State: schedule.State ?? "ENABLED",
      ScheduleExpression: schedule.ScheduleExpression,
      ScheduleExpressionTimezone: schedule.ScheduleExpressionTimezone ?? "UTC",
      FlexibleTimeWindow: windowOf(inner(schedule, "FlexibleTimeWindow")),
      StartDate: instant(schedule.StartDate),
      EndDate: instant(schedule.EndDate),
      GroupName: schedule.GroupName ?? "default",
      Description: schedule.Description ?? "",
      "Target.Arn": target.Arn,
      "Target.RoleArn": target.RoleArn,
      "Target.Input": json(target.Input),
      "Target.RetryPolicy.MaximumRetryAttempts": number(retry.MaximumRetryAttempts ?? 185),
      "Target.RetryPolicy.MaximumEventAgeInSeconds": number(retry.MaximumEventAgeInSeconds ?? 86_400),
      "Target.DeadLetterConfig.Arn": inner(target, "DeadLetterConfig").Arn,
    };
  },
  "AWS::Lambda::Function": (fn) => ({
    ReservedConcurrentExecutions: number(fn.ReservedConcurrentExecutions),
    Timeout: number(fn.Timeout ?? 3),
    MemorySize: number(fn.MemorySize ?? 128),
    Runtime: fn.Runtime,
    Handler: fn.Handler,
    // A role's path isn't known from outside.
    Role: typeof fn.Role === "string" ? fn.Role.slice(fn.Role.lastIndexOf("/") + 1) : fn.Role,
    Description: fn.Description ?? "",
    Architectures: fn.Architectures ?? ["x86_64"],
    EphemeralStorage: number(inner(fn, "EphemeralStorage").Size ?? 512),
    Layers: fn.Layers ?? [],
    TracingConfig: inner(fn, "TracingConfig").Mode ?? "PassThrough",
    ...Object.fromEntries(
      Object.entries(inner(inner(fn, "Environment"), "Variables"))
        .filter(([name]) => name !== versionVariable)
        .map(([name, value]) => [`${environmentPrefix}${name}`, typeof value === "symbol" ? value : String(value)]),
    ),
  }),
  "AWS::Lambda::EventInvokeConfig": (config) => {
    const destinations = inner(config, "DestinationConfig");
    return {
      MaximumRetryAttempts: number(config.MaximumRetryAttempts ?? 2),
      MaximumEventAgeInSeconds: number(config.MaximumEventAgeInSeconds ?? 21_600),
      "DestinationConfig.OnFailure": inner(destinations, "OnFailure").Destination,
      "DestinationConfig.OnSuccess": inner(destinations, "OnSuccess").Destination,
    };
  },
  "AWS::CloudWatch::Alarm": (alarm) => ({
    ActionsEnabled: flag(alarm.ActionsEnabled ?? true),
    AlarmActions: set(alarm.AlarmActions),
    OKActions: set(alarm.OKActions),
    InsufficientDataActions: set(alarm.InsufficientDataActions),
    Namespace: alarm.Namespace,
    MetricName: alarm.MetricName,
    Dimensions: set(alarm.Dimensions),
    Metrics: set(list(alarm.Metrics).map(metricOf)),
    Statistic: alarm.Statistic ?? alarm.ExtendedStatistic,
    Period: number(alarm.Period),
    EvaluationPeriods: number(alarm.EvaluationPeriods),
    DatapointsToAlarm: number(alarm.DatapointsToAlarm ?? alarm.EvaluationPeriods),
    Threshold: number(alarm.Threshold),
    ComparisonOperator: alarm.ComparisonOperator,
    TreatMissingData: alarm.TreatMissingData ?? "missing",
    AlarmDescription: alarm.AlarmDescription ?? "",
  }),
  "AWS::DynamoDB::Table": (table) => {
    const ttl = inner(table, "TimeToLiveSpecification");
    return {
      DeletionProtectionEnabled: flag(table.DeletionProtectionEnabled ?? false),
      PointInTimeRecovery: flag(inner(table, "PointInTimeRecoverySpecification").PointInTimeRecoveryEnabled ?? false),
      TimeToLive: flag(ttl.Enabled ?? false) === true ? ttl.AttributeName : "off",
      BillingMode: table.BillingMode ?? "PROVISIONED",
      KeySchema: table.KeySchema,
      GlobalSecondaryIndexes: set(list(table.GlobalSecondaryIndexes).map((index) => (index as Properties).IndexName)),
      StreamViewType: inner(table, "StreamSpecification").StreamViewType,
    };
  },
  "AWS::Logs::LogGroup": (group) => ({ RetentionInDays: number(group.RetentionInDays) ?? "never ends" }),
};

/** Settings whose values may be secrets: they are named, and never shown. */
export const environmentPrefix = "Environment.";
/** Each build has another: it is reported by itself. */
const versionVariable = "CRONFENCE_VERSION";

/** The build that a function's environment names. */
export const versionIn = (fn: Properties): string | undefined => {
  const version = inner(inner(fn, "Environment"), "Variables")[versionVariable];
  return typeof version === "string" ? version : undefined;
};

const inner = (of: Properties, name: string): Properties => {
  const value = of[name];
  return typeof value === "object" && value !== null ? (value as Properties) : {};
};

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** A set's order means nothing. What is unknown stays as it is. */
const set = (value: unknown): unknown =>
  typeof value === "symbol" ? value : [...list(value)].sort((one, other) => (stable(one) < stable(other) ? -1 : 1));

/** Templates may have numbers as texts. */
const number = (value: unknown): unknown =>
  typeof value === "string" && value.trim() !== "" && !Number.isNaN(Number(value)) ? Number(value) : value;

const flag = (value: unknown): unknown => (value === "true" ? true : value === "false" ? false : value);

const instant = (value: unknown): unknown => {
  if (value instanceof Date) return value.toISOString();
  return typeof value === "string" && !Number.isNaN(Date.parse(value)) ? new Date(value).toISOString() : value;
};

const json = (value: unknown): unknown => {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
};

const windowOf = ({ Mode, MaximumWindowInMinutes }: Properties): unknown =>
  Mode === "FLEXIBLE" ? `${String(MaximumWindowInMinutes)} minutes` : Mode;

/** One of an alarm's metrics, without what AWS adds. */
const metricOf = (query: unknown): unknown => {
  const { Id, Expression, Label, Period, ReturnData, MetricStat } = query as Properties;
  const stat = typeof MetricStat === "object" && MetricStat !== null ? (MetricStat as Properties) : undefined;
  return {
    Id,
    Expression,
    Label,
    Period: number(Period),
    ReturnData: flag(ReturnData ?? true),
    MetricStat: stat && {
      Namespace: inner(stat, "Metric").Namespace,
      MetricName: inner(stat, "Metric").MetricName,
      Dimensions: set(inner(stat, "Metric").Dimensions),
      Period: number(stat.Period),
      Stat: stat.Stat,
    },
  };
};

/** The same text for the same value, in whatever order its keys came. */
export const stable = (value: unknown): string =>
  JSON.stringify(value, (_key, each) =>
    typeof each === "object" && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([one], [other]) => (one < other ? -1 : 1)))
      : each,
  ) ?? "";
