/** What `cronfence table create` does. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { systemClock } from "../clock.ts";
import { controlTableName, dynamoStore } from "../control/dynamo-store.ts";
import { createControlTable } from "../control/table.ts";
import { CronfenceError, InvalidOptionsError } from "../errors.ts";
import { print } from "./exit.ts";

interface CreateOptions {
  readonly table?: string;
  readonly endpoint?: string;
  readonly job?: readonly string[];
}

/** Creates the control table and makes jobs known; doing it again changes nothing. */
export const createTable = async ({ table = controlTableName(), endpoint, job = [] }: CreateOptions): Promise<void> => {
  const wrong = job.filter((name) => !/^[A-Za-z0-9_-]{1,64}$/.test(name));
  if (wrong.length > 0) {
    throw new InvalidOptionsError("table create", [
      `--job is ${wrong.map((name) => JSON.stringify(name)).join(", ")}, and must be a name of letters, digits, - and _, at most 64 characters`,
    ]);
  }
  if (endpoint !== undefined && !URL.canParse(endpoint)) {
    throw new InvalidOptionsError("table create", [`--endpoint is ${JSON.stringify(endpoint)}, and must be a URL`]);
  }
  const client = new DynamoDBClient(endpoint === undefined ? {} : { endpoint });
  const store = dynamoStore({ table, client });
  const how = await createControlTable(client, table).catch((error) => explain(error, endpoint));
  print(how === "created" ? `created table ${table}` : `table ${table} exists already`);
  for (const name of job) {
    const now = systemClock.now();
    await store.create(name, now, { clock: systemClock, random: Math.random, until: now + 10_000 });
    print(`job ${name} is known`);
  }
};

/** What went wrong, in a sentence that says what to do. */
const explain = (error: { name?: string; message?: string; code?: string }, endpoint: string | undefined): never => {
  if (error instanceof InvalidOptionsError) throw error;
  const advice: Record<string, string> = {
    CredentialsProviderError:
      "no AWS credentials were found; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    AccessDeniedException:
      "these credentials may not create the table (dynamodb:CreateTable, DescribeTable, UpdateTimeToLive, DescribeTimeToLive)",
    UnrecognizedClientException: "AWS doesn't accept these credentials",
    ExpiredTokenException: "these AWS credentials have expired",
  };
  const known =
    advice[error.name ?? ""] ??
    (error.message?.includes("Region is missing") ? "no region is set; set AWS_REGION" : undefined);
  const unreachable =
    error.code === "ECONNREFUSED" || error.code === "ENOTFOUND"
      ? `nothing answers at ${endpoint ?? process.env.AWS_ENDPOINT_URL_DYNAMODB ?? "DynamoDB's own endpoint"}`
      : undefined;
  throw new CronfenceError("TABLE_CREATE", `the table wasn't created: ${known ?? unreachable ?? error.message}`, {
    cause: error,
  });
};
