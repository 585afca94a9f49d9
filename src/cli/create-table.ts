/** What `cronfence table create` does. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { systemClock } from "../clock.ts";
import { controlTableName, dynamoStore } from "../control/dynamo-store.ts";
import { createControlTable } from "../control/table.ts";
import { CronfenceError, InvalidOptionsError } from "../errors.ts";
import { isJobName } from "../job-name.ts";
import { patience, type TableOptions, useTable } from "./control-table.ts";
import { print, printJson } from "./exit.ts";

interface CreateOptions extends TableOptions {
  readonly job?: readonly string[];
  readonly json?: boolean;
}

/** Creates the control table and makes jobs known; doing it again changes nothing. */
export const createTable = async (options: CreateOptions): Promise<void> => {
  const { table = controlTableName(), job = [], json } = options;
  const wrong = job.filter((name) => !isJobName(name));
  if (wrong.length > 0) {
    throw new InvalidOptionsError("table create", [
      `--job is ${wrong.map((name) => JSON.stringify(name)).join(", ")}, and must be a name of letters, digits, - and _, at most 64 characters`,
    ]);
  }
  await useTable(options, true);
  const client = new DynamoDBClient({});
  const store = dynamoStore({ table, client });
  const how = await createControlTable(client, table).catch((error) => {
    if (error instanceof InvalidOptionsError) throw error;
    throw new CronfenceError("TABLE_CREATE", "the table wasn't created", { cause: error });
  });
  for (const name of job) await store.create(name, systemClock.now(), patience());
  if (json) return printJson({ table, created: how === "created", jobs: job });
  print(how === "created" ? `created table ${table}` : `table ${table} exists already`);
  for (const name of job) print(`job ${name} is known`);
};
