/** What a job's definition says of its function, in CloudFormation's words. */
import type { Job } from "cronfence";
import { type DeployedJob, type DeployedService, fullName, jobIds } from "./deployed-service.ts";
import { attribute, type Value } from "./template.ts";

export interface FunctionSettings {
  readonly Description?: string;
  readonly MemorySize: number;
  /** In seconds: the job's timeout and what a run needs to end well. */
  readonly Timeout: number;
  readonly Role: Value;
  readonly Environment: { readonly Variables: Readonly<Record<string, string>> };
  /** Only where runs follow one another for longer than Lambda lets a function invoke itself. */
  readonly RecursiveLoop?: "Allow";
  /** The log group must be there first, or Lambda makes one that is kept for ever. */
  readonly DependsOn: readonly string[];
}

export const functionSettings = (deployed: DeployedJob, service: DeployedService): FunctionSettings => {
  const { job } = deployed;
  const { memoryMb, description } = job.deployment;
  const ids = jobIds(job.name);
  return {
    ...(description === undefined ? {} : { Description: description }),
    MemorySize: memoryMb ?? service.settings.memoryMb ?? 512,
    Timeout: functionSeconds(job.timeoutMs),
    Role: attribute(ids.role, "Arn"),
    Environment: { Variables: variablesOf(deployed, service) },
    ...(chainsLong(job) ? { RecursiveLoop: "Allow" as const } : {}),
    DependsOn: [ids.logGroup],
  };
};

/**
 * Lambda takes a chain of about 16 invocations for an endless loop and ends it. A backlog's chain is as long as `maxChain`
 * says, and ends by itself; up to the default it stays under Lambda's guard, with room for retries.
 * https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
 */
const chainsLong = ({ work }: Job): boolean =>
  work.shape === "source" && work.onBacklog === "continue" && work.maxChain > 10;

/** A run ends by itself at its timeout, and has this much longer to say so: two requests, and a start that was slow. */
export const reserveSeconds = 5;

export const functionSeconds = (timeoutMs: number): number => Math.ceil(timeoutMs / 1_000) + reserveSeconds;

const variablesOf = ({ job }: DeployedJob, service: DeployedService): Record<string, string> => {
  const { settings } = service;
  const pattern = job.watches?.heals === true ? functionNamePattern(service) : undefined;
  return {
    ...settings.environment,
    ...job.deployment.environment,
    CRONFENCE_TABLE: settings.controlTable.name,
    CRONFENCE_SERVICE: fullName(settings),
    CRONFENCE_VERSION: settings.version,
    ...(pattern === undefined ? {} : { CRONFENCE_FUNCTION_NAME: pattern }),
  };
};

/** By which a watchdog finds a job's function, such as "shop-jobs-prod-{job}"; undefined where they have no common one. */
export const functionNamePattern = ({ jobs }: DeployedService): string | undefined => {
  const patterns = jobs.map(({ job, functionName }) =>
    functionName.endsWith(job.name) ? `${functionName.slice(0, -job.name.length)}{job}` : undefined,
  );
  return new Set(patterns).size === 1 ? patterns[0] : undefined;
};
