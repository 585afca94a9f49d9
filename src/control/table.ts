/** The control table itself. infra/control-table.yml describes the same table for CloudFormation. */
import {
  CreateTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  type DynamoDBClient,
  UpdateTimeToLiveCommand,
  waitUntilTableExists,
} from "@aws-sdk/client-dynamodb";
import { InvalidOptionsError } from "../errors.ts";

/**
 * Creates the control table if there is none, and turns its TTL on: on-demand, deletion-protected, key `pk` + `sk`.
 * Doing it twice is harmless; whether it was there already is returned.
 *
 * @throws InvalidOptionsError when another table has that name
 * @throws what the SDK throws; waits at most a minute for the table to become active.
 */
export const createControlTable = async (client: DynamoDBClient, table: string): Promise<"created" | "existed"> => {
  const created = await createUnlessThere(client, table);
  await waitUntilTableExists({ client, maxWaitTime: 60, minDelay: 1, maxDelay: 2 }, { TableName: table });
  const ttl = await client.send(new DescribeTimeToLiveCommand({ TableName: table }));
  const status = ttl.TimeToLiveDescription?.TimeToLiveStatus;
  if (status !== "ENABLED" && status !== "ENABLING") {
    await client.send(
      new UpdateTimeToLiveCommand({
        TableName: table,
        TimeToLiveSpecification: { Enabled: true, AttributeName: "expiresAt" },
      }),
    );
  }
  return created;
};

const createUnlessThere = async (client: DynamoDBClient, table: string): Promise<"created" | "existed"> => {
  try {
    const { Table } = await client.send(new DescribeTableCommand({ TableName: table }));
    const key = (Table?.KeySchema ?? []).map(({ AttributeName }) => AttributeName).join(" and ");
    if (key === "pk and sk") return "existed";
    throw new InvalidOptionsError("control table", [
      `table ${table} exists already and is no control table: its key is ${key}, and must be pk and sk`,
    ]);
  } catch (error) {
    if ((error as { name?: string }).name !== "ResourceNotFoundException") throw error;
  }
  try {
    await client.send(
      new CreateTableCommand({
        TableName: table,
        BillingMode: "PAY_PER_REQUEST",
        DeletionProtectionEnabled: true,
        AttributeDefinitions: [
          { AttributeName: "pk", AttributeType: "S" },
          { AttributeName: "sk", AttributeType: "S" },
        ],
        KeySchema: [
          { AttributeName: "pk", KeyType: "HASH" },
          { AttributeName: "sk", KeyType: "RANGE" },
        ],
      }),
    );
    return "created";
  } catch (error) {
    if ((error as { name?: string }).name === "ResourceInUseException") return "existed";
    throw error;
  }
};
