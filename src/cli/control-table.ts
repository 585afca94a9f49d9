/**
 * The control table that a command reads or changes, as its options or the environment name it: AWS's by region and
 * credentials, one at an endpoint, or one that a local engine keeps in a file.
 */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { type Command, Option } from "commander";
import { type Clock, systemClock } from "../clock.ts";
import type { Budget } from "../control/control-store.ts";
import type { DynamoStore } from "../control/dynamo-store.ts";
import { InvalidOptionsError } from "../errors.ts";
import { atEnd } from "./exit.ts";

export interface TableOptions {
  readonly table?: string;
  readonly endpoint?: string;
  readonly local?: string;
  readonly region?: string;
  readonly profile?: string;
}

export const addTableOptions = (command: Command): Command =>
  command
    .optionsGroup("Control table:")
    .option("--table <name>", "its name (default: the environment's CRONFENCE_TABLE, or else cronfence)")
    .option("--region <region>", "the AWS region (default: AWS_REGION, or the profile's)")
    .option("--profile <name>", "the AWS profile whose credentials are used (default: AWS_PROFILE)")
    .addOption(
      new Option(
        "--endpoint <url>",
        "a DynamoDB endpoint, such as http://127.0.0.1:8000 (default: AWS_ENDPOINT_URL_DYNAMODB, or else AWS)",
      ).conflicts("local"),
    )
    .option("--local <file>", "a local DynamoDB that keeps its tables in this file, as `npm run dev` does")
    .optionsGroup("Options:");

/**
 * Sets the environment that the SDK reads, for the job's own clients too, where the command loads it; starts the local
 * engine, which ends with the command.
 * @param create whether the local engine's file may be a new one
 * @throws InvalidOptionsError
 */
export const useTable = async (options: TableOptions, create = false): Promise<void> => {
  const { table, endpoint, local, region, profile } = options;
  const { env } = process;
  if (table !== undefined) env.CRONFENCE_TABLE = table;
  if (region !== undefined) env.AWS_REGION = region;
  if (profile !== undefined) env.AWS_PROFILE = profile;
  if (endpoint !== undefined) {
    if (!URL.canParse(endpoint)) {
      throw new InvalidOptionsError("control table", [`--endpoint is ${JSON.stringify(endpoint)}, and must be a URL`]);
    }
    env.AWS_ENDPOINT_URL_DYNAMODB = endpoint;
  }
  if (local !== undefined) await useLocal(local, create);
};

/** @throws InvalidOptionsError */
export const openStore = async (options: TableOptions, create = false): Promise<DynamoStore> => {
  await useTable(options, create);
  const { dynamoStore } = await import("../control/dynamo-store.ts");
  return dynamoStore();
};

const useLocal = async (file: string, create: boolean): Promise<void> => {
  const found = await stat(file).catch(() => undefined);
  if (found?.isDirectory()) {
    throw new InvalidOptionsError("control table", [
      `--local is ${JSON.stringify(file)}, and must be a file, such as ${join(file, "dynamodb.db")}`,
    ]);
  }
  if (!found?.isFile() && !create) {
    throw new InvalidOptionsError("control table", [
      `--local is ${JSON.stringify(file)}, and there is no such file; npx cronfence table create --local ${file} makes it`,
    ]);
  }
  const { startEngine } = await import("../local/engine.ts");
  // A server that runs elsewhere isn't this file.
  const engine = await startEngine({ file }, { ...process.env, DYNAMODB_ENDPOINT: "" });
  atEnd(engine.stop);
  for (const name of ["AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"])
    delete process.env[name];
  Object.assign(process.env, {
    AWS_ENDPOINT_URL_DYNAMODB: engine.endpoint,
    AWS_REGION: "local",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
  });
};

/** A person is waiting for the answer. */
export const patience = (clock: Clock = systemClock): Budget => ({
  clock,
  random: Math.random,
  until: clock.now() + longestWaitMs,
});
const longestWaitMs = 10_000;
