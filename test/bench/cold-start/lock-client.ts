/** The same work under a lock of npm dynamodb-lock-client, which takes a client of the SDK's version 2. */
import { randomUUID } from "node:crypto";
import DynamoDB from "aws-sdk/clients/dynamodb.js";
import { FailOpen, type Lock } from "dynamodb-lock-client";

const endpoint = process.env.AWS_ENDPOINT_URL_DYNAMODB as string;
const dynamodb = new DynamoDB.DocumentClient({ endpoint });
const lockTable = process.env.COLD_RESULTS as string;
const locks = new FailOpen({
  dynamodb,
  lockTable,
  partitionKey: "id",
  heartbeatPeriodMs: 10_000,
  leaseDurationMs: 30_000,
});

export const handler = async () => {
  const id = randomUUID();
  const lock = await new Promise<Lock>((resolve, reject) =>
    locks.acquireLock(`lock-${id}`, (error, acquired) => (error ? reject(error) : resolve(acquired))),
  );
  await dynamodb.put({ TableName: lockTable, Item: { id, total: 300 } }).promise();
  await new Promise<void>((resolve, reject) => lock.release((error) => (error ? reject(error) : resolve())));
  console.log(JSON.stringify({ level: "info", run: id, message: "succeeded" }));
};
