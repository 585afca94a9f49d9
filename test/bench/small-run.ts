/**
 * A small run, and the three requests that one would send by hand: take a lock, write, release the lock. The lock is the
 * naive one: it has no fence, so a paused holder writes after its successor.
 */
import { randomUUID } from "node:crypto";
import { type DynamoDBClient, TransactWriteItemsCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { defineJob, type Job, runJob } from "cronfence";
import { controlTable, depsOn, tenWrites } from "./scene.ts";

export const smallJob = (name: string): Job =>
  defineJob({ name, timeout: "1m", run: (run) => run.commitAtEnd(tenWrites()) });

/** One after the other, as the invocations of one function would be. */
export const runByJob = async (client: DynamoDBClient, name: string, times: number): Promise<void> => {
  const job = smallJob(name);
  const deps = depsOn(client);
  for (let i = 0; i < times; i += 1) {
    const { outcome } = await runJob(job, { kind: "manual" }, deps);
    if (outcome !== "succeeded") throw new Error(`a small run ended as ${outcome}`);
  }
};

export const runByHand = async (client: DynamoDBClient, name: string, times: number): Promise<void> => {
  const key = marshall({ pk: name, sk: "lock" });
  for (let i = 0; i < times; i += 1) {
    const owner = randomUUID();
    const now = Date.now();
    await client.send(
      new UpdateItemCommand({
        TableName: controlTable,
        Key: key,
        UpdateExpression: "SET #owner = :me, leaseUntil = :until",
        ConditionExpression: "attribute_not_exists(#owner) OR leaseUntil < :now",
        ExpressionAttributeNames: { "#owner": "owner" },
        ExpressionAttributeValues: marshall({ ":me": owner, ":until": now + 30_000, ":now": now }),
      }),
    );
    await client.send(
      new TransactWriteItemsCommand({
        ClientRequestToken: randomUUID(),
        TransactItems: tenWrites().map(({ Put }) => ({
          Put: { TableName: Put?.TableName, Item: marshall(Put?.Item) },
        })),
      }),
    );
    await client.send(
      new UpdateItemCommand({
        TableName: controlTable,
        Key: key,
        UpdateExpression: "REMOVE #owner, leaseUntil",
        ConditionExpression: "#owner = :me",
        ExpressionAttributeNames: { "#owner": "owner" },
        ExpressionAttributeValues: marshall({ ":me": owner }),
      }),
    );
  }
};
