/** By hand on the bare SDK: take a lock that expires, work, release it. A second delivery finds it taken and is content. */
import { randomUUID } from "node:crypto";
import { ConditionalCheckFailedException, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import type { Handler, Surroundings } from "../contender.ts";
import { expireAll, locksTable, readDue } from "../expiry.ts";

export const open = ({ connect, leaseMs }: Surroundings): Handler => {
  const client = connect();
  const lock = { TableName: locksTable, Key: marshall({ id: "lock by hand" }) };
  const ExpressionAttributeNames = { "#owner": "owner" };
  return async () => {
    const owner = randomUUID();
    const now = Date.now();
    try {
      await client.send(
        new UpdateItemCommand({
          ...lock,
          UpdateExpression: "SET #owner = :me, leaseUntil = :until",
          ConditionExpression: "attribute_not_exists(#owner) OR leaseUntil < :now",
          ExpressionAttributeNames,
          ExpressionAttributeValues: marshall({ ":me": owner, ":until": now + leaseMs, ":now": now }),
        }),
      );
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException) return "held";
      throw error;
    }
    await expireAll(client, await readDue(client));
    await client
      .send(
        new UpdateItemCommand({
          ...lock,
          UpdateExpression: "REMOVE #owner, leaseUntil",
          ConditionExpression: "#owner = :me",
          ExpressionAttributeNames,
          ExpressionAttributeValues: marshall({ ":me": owner }),
        }),
      )
      .catch((error) => {
        if (!(error instanceof ConditionalCheckFailedException)) throw error;
      });
    return "done";
  };
};
