/** Writing many items at once on a local engine: batches of 25, several at a time, until all are written. */
import { BatchWriteItemCommand, type DynamoDBClient, type WriteRequest } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import type { Item } from "../testing/tables.ts";

/** https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html */
const mostPerBatch = 25;
const atOnce = 8;

/** Puts all `items` into `table`. Not atomic: what was written before a failure stays. */
export const putAll = async (client: DynamoDBClient, table: string, items: readonly Item[]): Promise<void> => {
  let next = 0;
  const writer = async () => {
    while (next < items.length) {
      const from = next;
      next += mostPerBatch;
      await putBatch(client, table, items.slice(from, next));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, writer));
};

const putBatch = async (client: DynamoDBClient, table: string, items: readonly Item[]): Promise<void> => {
  // What DynamoDB leaves out comes back with status 200.
  let left: WriteRequest[] = items.map((item) => ({ PutRequest: { Item: marshall(item) } }));
  while (left.length > 0) {
    const answer = await client.send(new BatchWriteItemCommand({ RequestItems: { [table]: left } }));
    left = answer.UnprocessedItems?.[table] ?? [];
  }
};
