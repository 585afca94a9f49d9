/**
 * Which Lambda function runs a job: the one that is named, or the one that the environment's pattern gives, or the one that
 * the serverless CLI makes for the service of this folder, SERVICE-STAGE-JOB.
 */
import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { CronfenceError } from "../errors.ts";

export interface FunctionOptions {
  readonly function?: string;
  readonly stage?: string;
}

export const addFunctionOptions = (command: Command): Command =>
  command
    .option(
      "--function <name>",
      "the Lambda function's name or ARN; {job} stands for the job's name (default: the environment's CRONFENCE_FUNCTION_NAME, or else SERVICE-STAGE-JOB)",
    )
    .option("--stage <stage>", "the stage of the service that serverless.yml here describes (default: dev)");

/** A function is in the cloud: no local engine's file has its table, nor do that engine's credentials invoke it. */
export const refuseLocalThere = (options: { readonly local?: string; readonly here?: boolean }, command: Command) => {
  if (options.local !== undefined && !options.here) {
    command.error("error: --local is for a run in this process: say --here, too");
  }
};

/** @throws CronfenceError where nothing says it, or a name would have to be guessed */
export const functionNameOf = async (job: string, options: FunctionOptions, env = process.env): Promise<string> => {
  const pattern = options.function ?? (env.CRONFENCE_FUNCTION_NAME || undefined);
  if (pattern !== undefined) return pattern.replaceAll("{job}", job);
  const text = await readFile("serverless.yml", "utf8").catch(() => undefined);
  const service = text === undefined ? undefined : scalar(text, /^service:[ \t]*(\S+)[ \t]*(#.*)?$/m);
  if (text === undefined || service === undefined) {
    throw unknown(job, "there is no serverless.yml here that names a service");
  }
  if (options.stage === undefined && /^\s+stage:/m.test(text)) {
    throw unknown(job, "serverless.yml says its own stage; give it with --stage, or", "");
  }
  return `${service}-${options.stage ?? "dev"}-${job}`;
};

/** What isn't a plain word would have to be evaluated. */
const scalar = (text: string, line: RegExp): string | undefined => {
  const value = line.exec(text)?.[1]?.replace(/^(["'])(.*)\1$/, "$2");
  return value !== undefined && /^[A-Za-z0-9_-]+$/.test(value) ? value : undefined;
};

const unknown = (job: string, why: string, and = ":"): Error =>
  new CronfenceError(
    "UNKNOWN_FUNCTION",
    `it isn't known which function runs job "${job}": ${why}${and} name it with --function, or set CRONFENCE_FUNCTION_NAME, such as "shop-prod-{job}"`,
  );
