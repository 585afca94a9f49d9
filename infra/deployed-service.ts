/** What is deployed: jobs with their functions, and the settings that they share. */
import type { Job } from "cronfence";
import { logical, type Statement, type Value } from "./template.ts";

/** A job and the function that runs it. The function itself is made elsewhere: by the serverless plugin, or by hand. */
export interface DeployedJob {
  readonly job: Job;
  /** At most 64 letters, digits, - and _. */
  readonly functionName: string;
  /** Of the AWS::Lambda::Function in the same template. */
  readonly functionLogicalId: string;
  /** What its role may do besides, such as deleting files on S3. */
  readonly statements?: readonly Statement[];
}

export interface ServiceSettings {
  readonly service: string;
  readonly stage: string;
  /** One that is made with the stack and outlives it, or one that is there. `arn` where it isn't of the stack's own account and Region. */
  readonly controlTable:
    | { readonly create: true; readonly name: string }
    | { readonly create: false; readonly name: string; readonly arn?: Value };
  /** Whom alarms page: a topic that is made with the stack, or the ARN of one that is there. @default nobody */
  readonly alarmTopic?: { readonly create: true } | { readonly arn: Value } | undefined;
  /** One of the numbers that CloudWatch Logs takes, such as 30. */
  readonly logRetentionDays: number;
  /** Of functions whose job doesn't say, in MB, 128 to 10240. @default 512 */
  readonly memoryMb?: number;
  /** Of the build: the functions' CRONFENCE_VERSION. */
  readonly version: string;
  /** What all functions' environments hold; a job's own variables go before these. */
  readonly environment?: Readonly<Record<string, string>>;
  /** @default true */
  readonly dashboard?: boolean;
}

export interface DeployedService {
  readonly jobs: readonly DeployedJob[];
  readonly settings: ServiceSettings;
}

/** What the service's things are named after: its CRONFENCE_SERVICE, schedule group, alarms, queue, topic and dashboard. */
export const fullName = ({ service, stage }: Pick<ServiceSettings, "service" | "stage">): string =>
  `${service}-${stage}`;

/** Logical ids of what a job has in the template. They never change: CloudFormation would make the thing anew. */
export const jobIds = (jobName: string) => {
  const id = `Job${logical(jobName)}`;
  return {
    role: `${id}Role`,
    logGroup: `${id}LogGroup`,
    /** AWS::Lambda::EventInvokeConfig. */
    invocation: `${id}Invocation`,
    schedule: `${id}Schedule`,
    scheduleRole: `${id}ScheduleRole`,
  };
};

/** Logical ids of what all jobs share. */
export const serviceIds = {
  controlTable: "CronfenceControlTable",
  scheduleGroup: "CronfenceScheduleGroup",
  deadLetters: "CronfenceDeadLetters",
  deadLettersPolicy: "CronfenceDeadLettersPolicy",
  alarmTopic: "CronfenceAlarmTopic",
  alarmTopicPolicy: "CronfenceAlarmTopicPolicy",
  alarmKey: "CronfenceAlarmKey",
  dashboard: "CronfenceDashboard",
} as const;
