/** The same two requests by hand, on the bare SDK client: take a lock; write, keep a record and release the lock. */
import { randomUUID } from "node:crypto";
import { DynamoDBClient, TransactWriteItemsCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb";

const client = new DynamoDBClient({});

export const handler = async () => {
  const now = Date.now();
  const owner = randomUUID();
  const pk = { S: `by-hand#${process.env.COLD_JOB}` };
  const lock = { TableName: process.env.COLD_CONTROL, Key: { pk, sk: { S: "lock" } } };
  await client.send(
    new UpdateItemCommand({
      ...lock,
      UpdateExpression: "SET #owner = :me, leaseUntil = :until ADD fence :one",
      ConditionExpression: "attribute_not_exists(#owner) OR leaseUntil < :now",
      ExpressionAttributeNames: { "#owner": "owner" },
      ExpressionAttributeValues: {
        ":me": { S: owner },
        ":until": { N: String(now + 30_000) },
        ":now": { N: String(now) },
        ":one": { N: "1" },
      },
    }),
  );
  const record = { pk, sk: { S: `run#${now}#${owner}` }, outcome: { S: "succeeded" }, startedAt: { N: String(now) } };
  await client.send(
    new TransactWriteItemsCommand({
      TransactItems: [
        {
          Update: {
            ...lock,
            UpdateExpression: "REMOVE #owner, leaseUntil",
            ConditionExpression: "#owner = :me",
            ExpressionAttributeNames: { "#owner": "owner" },
            ExpressionAttributeValues: { ":me": { S: owner } },
          },
        },
        { Put: { TableName: process.env.COLD_CONTROL, Item: record } },
        { Put: { TableName: process.env.COLD_RESULTS, Item: { id: { S: owner }, total: { N: "300" } } } },
      ],
    }),
  );
  console.log(JSON.stringify({ level: "info", run: owner, message: "succeeded" }));
};
