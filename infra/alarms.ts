/**
 * Alarms as CloudFormation resources: pure functions, from job definitions to what a template holds. What each alarm looks at,
 * and why, is told in `cronfence/watchdog`; here it gets a name, somebody to page, and its place in the template.
 * https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudwatch-alarm.html
 */
import {
  type Alarm,
  type AlarmedJob,
  alarmProblems,
  deadLetterAlarm,
  jobAlarms,
  watchdogAlarm,
} from "cronfence/watchdog";
import { type Intrinsic, logical } from "./template.ts";

export interface AlarmResource {
  readonly Type: "AWS::CloudWatch::Alarm";
  readonly Properties: Omit<Alarm, "Dimensions"> & {
    readonly AlarmName: string;
    readonly Dimensions: readonly { readonly Name: string; readonly Value: string | Intrinsic }[];
    readonly AlarmActions: readonly (string | Intrinsic)[];
    readonly OKActions: readonly (string | Intrinsic)[];
  };
}

/** By logical id. */
export type AlarmResources = Readonly<Record<string, AlarmResource>>;

export interface AlarmSettings {
  /** The first part of alarms' names. */
  readonly service: string;
  /** The first dimension of the watchdog's metrics: its CRONFENCE_SERVICE. @default `service` */
  readonly dimension?: string;
  /** How often the watchdog looks, in milliseconds. */
  readonly everyMs: number;
  /** ARNs of SNS topics, or other actions, for the alarm and its end. */
  readonly actions: readonly (string | Intrinsic)[];
}

/** An alarm that CloudWatch would refuse. */
export class InvalidAlarmError extends Error {
  override readonly name = "InvalidAlarmError";
  readonly code = "INVALID_ALARM";

  constructor(alarm: string, problems: readonly string[]) {
    super(`alarm "${alarm}": ${problems.join("; ")}`);
  }
}

/**
 * One job's alarms.
 * @throws InvalidAlarmError
 */
export const jobAlarmResources = (job: AlarmedJob, settings: AlarmSettings): AlarmResources =>
  Object.fromEntries(
    Object.entries(jobAlarms(job, settings.dimension ?? settings.service, settings.everyMs)).map(([purpose, alarm]) => [
      `Job${logical(job.name)}${purpose[0]?.toUpperCase()}${purpose.slice(1)}Alarm`,
      resource(`${job.name}-${purpose}`, alarm, settings),
    ]),
  );

/**
 * The alarm on the watchdog itself.
 * @param watchdog the name of the watchdog's job
 * @throws InvalidAlarmError
 */
export const watchdogAlarmResources = (watchdog: string, settings: AlarmSettings): AlarmResources => ({
  [`Job${logical(watchdog)}AbsentAlarm`]: resource(
    `${watchdog}-absent`,
    watchdogAlarm(watchdog, settings.dimension ?? settings.service, settings.everyMs),
    settings,
  ),
});

/**
 * The alarm on a queue for dead letters.
 * @param label what the queue is for, in a name's characters, unique in the service
 * @param queueName the queue's name, such as `{ "Fn::GetAtt": ["DeadLetters", "QueueName"] }`
 * @throws InvalidAlarmError
 */
export const deadLetterAlarmResources = (
  label: string,
  queueName: string | Intrinsic,
  settings: AlarmSettings,
): AlarmResources => {
  const alarm = resource(label, deadLetterAlarm(typeof queueName === "string" ? queueName : label), settings);
  const Dimensions = [{ Name: "QueueName", Value: queueName }];
  return { [`${logical(label)}DeadLettersAlarm`]: { ...alarm, Properties: { ...alarm.Properties, Dimensions } } };
};

const resource = (name: string, alarm: Alarm, { service, actions }: AlarmSettings): AlarmResource => {
  const AlarmName = `${service}-${name}`;
  const problems = [
    ...alarmProblems(alarm),
    ...(/^[\x20-\x7e]{1,255}$/.test(AlarmName) ? [] : ["its name must be 1 to 255 printable ASCII characters"]),
  ];
  if (problems.length > 0) throw new InvalidAlarmError(AlarmName, problems);
  return {
    Type: "AWS::CloudWatch::Alarm",
    Properties: { AlarmName, ...alarm, AlarmActions: actions, OKActions: actions },
  };
};
