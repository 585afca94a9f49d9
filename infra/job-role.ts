/**
 * The role of a job's function: its own control items, its own logs, the application's tables as the job's `access` says, and
 * no more than its definition makes it need. Nothing of it can scan the control table, write an application's table outside
 * a transaction, or reach another job's items; the watchdog's can read the control items of all.
 */
import type { Job } from "cronfence";
import { namespace } from "../src/observe/metrics.ts";
import { controlTableArn } from "./control-table.ts";
import {
  type DeployedJob,
  type DeployedService,
  jobIds,
  type ServiceSettings,
  serviceIds,
} from "./deployed-service.ts";
import { tableAccessStatements } from "./table-access.ts";
import { attribute, ownArn, policy, type Resources, type Statement } from "./template.ts";

export const jobRoleResources = (deployed: DeployedJob, service: DeployedService): Resources => ({
  [jobIds(deployed.job.name).role]: {
    Type: "AWS::IAM::Role",
    Properties: {
      AssumeRolePolicyDocument: policy([
        { Effect: "Allow", Principal: { Service: "lambda.amazonaws.com" }, Action: ["sts:AssumeRole"] },
      ]),
      Policies: [{ PolicyName: "run", PolicyDocument: policy(jobStatements(deployed, service)) }],
    },
  },
});

/** All that the role may do. */
export const jobStatements = (deployed: DeployedJob, service: DeployedService): Statement[] => {
  const { job, functionName, statements = [] } = deployed;
  const { settings } = service;
  return [
    {
      Sid: "Logs",
      Effect: "Allow",
      Action: ["logs:CreateLogStream", "logs:PutLogEvents"],
      // Ends with ":*", the group's streams.
      Resource: attribute(jobIds(job.name).logGroup, "Arn"),
    },
    {
      Sid: "OwnControlItems",
      Effect: "Allow",
      Action: controlActions(job),
      Resource: controlTableArn(settings),
      Condition: ofJobs([job.name]),
    },
    ...tableAccessStatements(job),
    ...(startsAnother(job)
      ? [
          {
            Sid: "RunAgain",
            Effect: "Allow" as const,
            Action: ["lambda:InvokeFunction"],
            // By its name: the function depends on this role.
            Resource: functionArn(functionName),
          },
        ]
      : []),
    {
      Sid: "DeadLetters",
      Effect: "Allow",
      Action: ["sqs:SendMessage"],
      Resource: attribute(serviceIds.deadLetters, "Arn"),
    },
    ...(putsMetrics(job, settings)
      ? [
          {
            Sid: "Metrics",
            Effect: "Allow" as const,
            // Takes no resource, but a namespace:
            // https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/iam-cw-condition-keys-namespace.html
            Action: ["cloudwatch:PutMetricData"],
            Resource: "*",
            Condition: { StringEquals: { "cloudwatch:namespace": namespace } },
          },
        ]
      : []),
    ...watchStatements(job, service),
    ...statements,
  ];
};

/**
 * What a run asks of its own items; in a transaction each action needs the permission of its own kind. Deleted are only notes
 * of effects, and parked items that were done after all; only where work is parked are there any to be listed.
 */
const controlActions = ({ work }: Job): string[] => [
  "dynamodb:GetItem",
  ...(work.shape === "source" ? ["dynamodb:Query"] : []),
  "dynamodb:PutItem",
  "dynamodb:UpdateItem",
  "dynamodb:DeleteItem",
];

/**
 * Items of these jobs only. `ForAllValues` is also true of a request that has no keys at all, such as a scan; so there must
 * be some. https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/specifying-conditions.html
 */
const ofJobs = (names: readonly string[]) => ({
  "ForAllValues:StringEquals": { "dynamodb:LeadingKeys": names.map((name) => `job#${name}`) },
  Null: { "dynamodb:LeadingKeys": "false" },
});

/** For a tick that was queued behind a run with no time left for it, and for a backlog. */
const startsAnother = ({ overlap, work }: Job): boolean =>
  overlap === "queue" || (work.shape === "source" && work.onBacklog === "continue");

/** Whether its function sends metrics by requests. */
export const putsMetrics = ({ metrics, watches, deployment }: Job, { environment }: ServiceSettings): boolean =>
  [
    metrics,
    watches?.metrics,
    // What the function finds there isn't what this machine has.
    deployment.environment.CRONFENCE_METRICS ?? environment?.CRONFENCE_METRICS,
  ].includes("cloudwatch");

/**
 * A watchdog reads the control items of the jobs that it looks at, makes those of jobs that never ran, and notes on them what it
 * has started. Where it heals, it invokes the service's functions.
 */
const watchStatements = ({ name, watches }: Job, { jobs, settings }: DeployedService): Statement[] => {
  if (watches === undefined) return [];
  const others = jobs.filter(({ job }) => job.name !== name);
  const names = new Set([...others.map(({ job }) => job.name), ...watches.jobs]);
  names.delete(name);
  if (names.size === 0) return [];
  return [
    {
      Sid: "WatchedControlItems",
      Effect: "Allow",
      Action: ["dynamodb:BatchGetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"],
      Resource: controlTableArn(settings),
      Condition: ofJobs([...names].sort()),
    },
    ...(watches.heals && others.length > 0
      ? [
          {
            Sid: "Heal",
            Effect: "Allow" as const,
            Action: ["lambda:InvokeFunction"],
            Resource: others.map(({ functionName }) => functionArn(functionName)),
          },
        ]
      : []),
  ];
};

const functionArn = (functionName: string) => ownArn("lambda", `function:${functionName}`);
