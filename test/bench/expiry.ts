/**
 * Expiring 10,000 carts: as a cronfence job, and as the loop that one would write by hand for the same transactions. The
 * loop is no straw man: it reads the same pages ahead, marshals the next transaction while one is under way, and sends
 * request tokens; it has no lease, no fence, no watermark, no record, no limits and no deadline.
 */
import { randomUUID } from "node:crypto";
import {
  type AttributeValue,
  type DynamoDBClient,
  QueryCommand,
  type TransactWriteItem,
  TransactWriteItemsCommand,
} from "@aws-sdk/client-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import { defineJob, type Job, type RunReport, runJob, type Write } from "cronfence";
import { queryAfter } from "cronfence/sources";
import { carts, cartsIndex, cartsTable, depsOn, scheduled } from "./scene.ts";

const pageSize = 1_000;
export const itemsPerTransaction = 99;

interface Cart {
  readonly id: string;
  readonly expiresAtId: string;
}

const expire = ({ id }: Cart): Write => ({
  Update: {
    TableName: cartsTable,
    Key: { id },
    UpdateExpression: "SET #status = :expired, expiredAt = :at",
    ConditionExpression: "attribute_exists(id)",
    ExpressionAttributeNames: { "#status": "status" },
    ExpressionAttributeValues: { ":expired": "expired", ":at": "2026-01-01T00:00:00.000Z" },
  },
});

const expiryJob = (name: string): Job =>
  defineJob({
    name,
    timeout: "5m",
    limit: { items: carts },
    source: queryAfter<Cart>({
      table: cartsTable,
      index: cartsIndex,
      partition: { shop: "eu" },
      sort: "expiresAtId",
      pageSize,
    }),
    process: (cart) => [expire(cart)],
  });

export const expireByJob = async (client: DynamoDBClient, name: string): Promise<RunReport> => {
  const report = await runJob(expiryJob(name), scheduled, depsOn(client));
  if (report.items !== carts)
    throw new Error(`the job did ${report.items} of ${carts} items: ${JSON.stringify(report)}`);
  return report;
};

export const expireByHand = async (client: DynamoDBClient): Promise<void> => {
  let done = 0;
  let open: Promise<unknown> = Promise.resolve();
  let actions: TransactWriteItem[] = [];
  const send = async () => {
    await open;
    open = client.send(new TransactWriteItemsCommand({ ClientRequestToken: randomUUID(), TransactItems: actions }));
    actions = [];
  };
  const now = new Date().toISOString();
  const readPage = async (after: string | undefined) => {
    const { Items = [], LastEvaluatedKey } = await client.send(
      new QueryCommand({
        TableName: cartsTable,
        IndexName: cartsIndex,
        KeyConditionExpression: `#partition = :partition AND #sort ${after === undefined ? "<= :through" : "BETWEEN :from AND :through"}`,
        ExpressionAttributeNames: { "#partition": "shop", "#sort": "expiresAtId" },
        ExpressionAttributeValues: marshall(
          { ":partition": "eu", ":from": after, ":through": now },
          { removeUndefinedValues: true },
        ),
        Limit: after === undefined ? pageSize : pageSize + 1,
      }),
    );
    const items = Items.map((item) => unmarshall(item) as Cart).filter(({ expiresAtId }) => expiresAtId !== after);
    return { items, done: LastEvaluatedKey === undefined };
  };
  let page = await readPage(undefined);
  for (;;) {
    const next = page.done || done + page.items.length >= carts ? undefined : readPage(page.items.at(-1)?.expiresAtId);
    for (const cart of page.items) {
      if (actions.length === itemsPerTransaction) await send();
      actions.push(marshalled(expire(cart)));
      done += 1;
    }
    if (next === undefined) break;
    page = await next;
  }
  await send();
  await open;
  if (done !== carts) throw new Error(`the loop did ${done} of ${carts} items`);
};

const marshalled = ({ Update }: Write): TransactWriteItem => {
  const { Key, ExpressionAttributeValues, ...rest } = Update as NonNullable<Write["Update"]>;
  return {
    Update: {
      ...rest,
      Key: marshall(Key) as Record<string, AttributeValue>,
      ExpressionAttributeValues: marshall(ExpressionAttributeValues) as Record<string, AttributeValue>,
    },
  } as TransactWriteItem;
};
