/** The control table that a command reads or changes, as its options or the environment name it. */
import type { Command } from "commander";
import { type Clock, systemClock } from "../clock.ts";
import type { Budget } from "../control/control-store.ts";
import type { DynamoStore } from "../control/dynamo-store.ts";
import { CronfenceError, InvalidOptionsError } from "../errors.ts";

export interface TableOptions {
  readonly table?: string;
  readonly endpoint?: string;
}

export const addTableOptions = (command: Command): Command =>
  command
    .option("--table <name>", "the control table (default: the environment's CRONFENCE_TABLE, or else cronfence)")
    .option(
      "--endpoint <url>",
      "a DynamoDB endpoint, such as http://127.0.0.1:8000 (default: AWS_ENDPOINT_URL_DYNAMODB, or else AWS)",
    );

/** @throws InvalidOptionsError */
export const openStore = async ({ table, endpoint }: TableOptions): Promise<DynamoStore> => {
  if (endpoint !== undefined) {
    if (!URL.canParse(endpoint)) {
      throw new InvalidOptionsError("control table", [`--endpoint is ${JSON.stringify(endpoint)}, and must be a URL`]);
    }
    // For the job's own clients too, where the command loads it.
    process.env.AWS_ENDPOINT_URL_DYNAMODB = endpoint;
  }
  const { dynamoStore } = await import("../control/dynamo-store.ts");
  return dynamoStore(table === undefined ? {} : { table });
};

/** A person is waiting for the answer. */
export const patience = (clock: Clock = systemClock): Budget => ({
  clock,
  random: Math.random,
  until: clock.now() + longestWaitMs,
});
const longestWaitMs = 10_000;

/** @throws CronfenceError for a job that the table has nothing of: most likely its name, or the table's, is wrong. */
export const refuseUnknown = async (store: DynamoStore, job: string): Promise<void> => {
  if ((await store.read(job, patience())) !== undefined) return;
  throw new CronfenceError("NO_JOB", `job "${job}" isn't known in table ${store.table}: it has never run there`);
};
