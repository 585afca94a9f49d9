/**
 * After the control table was restored from a backup: the items show leases and fences of the past, and runs that are
 * still going hold greater ones. Every fence is raised above the present in seconds, which no fence that was handed out
 * before can have reached (it starts there and grows by one per run), and leases are taken away.
 *
 * To be done before any schedule is enabled again. Each job's record says who did it and why.
 */
import { randomUUID } from "node:crypto";
import { ScanCommand, TransactWriteItemsCommand } from "@aws-sdk/client-dynamodb";
import { putAct } from "./act-transaction.ts";
import { type Connection, forEachRequest, readUntilKnown, sendUntilKnown, unanswered } from "./connection.ts";
import type { Act, Budget } from "./control-store.ts";
import { type Item, namesIn, valuesOf } from "./items.ts";

/**
 * Resolves with the names of the jobs whose items were put right. Doing it again is harmless.
 * @param budget each job has as much time as it gives from now on
 */
export const markRestored = async (
  connection: Connection,
  act: Act,
  at: number,
  budget: Budget,
): Promise<readonly string[]> => {
  const each = forEachRequest(budget);
  const jobs: string[] = [];
  let start: Item | undefined;
  do {
    const filter = "#sk = :control";
    const page = await readUntilKnown<{ Items?: Item[]; LastEvaluatedKey?: Item }>(
      connection,
      new ScanCommand({
        TableName: connection.table,
        FilterExpression: filter,
        ExpressionAttributeNames: namesIn(filter),
        ExpressionAttributeValues: valuesOf({ ":control": "control" }),
        ConsistentRead: true,
        ...(start === undefined ? {} : { ExclusiveStartKey: start }),
      }),
      each(),
      `table "${connection.table}"`,
      "read of all jobs",
    );
    for (const item of page.Items ?? []) jobs.push(await raise(connection, item, act, at, each()));
    start = page.LastEvaluatedKey;
  } while (start !== undefined);
  return jobs;
};

const raise = async (
  connection: Connection,
  item: Item,
  { by, why }: Act,
  at: number,
  budget: Budget,
): Promise<string> => {
  const job = (item.pk?.S ?? "").replace(/^job#/, "");
  const fence = Math.max(Number(item.fence?.N ?? 0), Math.floor(at / 1000)) + 1;
  const update = "SET #fence = :fence, #unfinished = :none, #activeSince = :at REMOVE #owner, #leaseUntil, #run, #prev";
  const condition = "attribute_exists(#pk) AND #fence < :fence";
  const settled = await sendUntilKnown(
    connection,
    new TransactWriteItemsCommand({
      ClientRequestToken: randomUUID(),
      TransactItems: [
        {
          Update: {
            TableName: connection.table,
            Key: { pk: item.pk, sk: item.sk } as Item,
            UpdateExpression: update,
            ConditionExpression: condition,
            ExpressionAttributeNames: namesIn(update, condition),
            // What has been done since the backup isn't known: it is late only when the next run hasn't done it.
            ExpressionAttributeValues: valuesOf({ ":fence": fence, ":none": 0, ":at": at }),
          },
        },
        putAct(connection, job, { kind: "restored", by, why, fence }, at, randomUUID()),
      ],
    }),
    budget,
  );
  // Refused: an earlier try of this was applied, or a run has been granted a higher fence since it was read.
  const refused = settled.kind === "cancelled" && settled.reasons.some(({ code }) => code === "ConditionalCheckFailed");
  if (settled.kind === "done" || refused) return job;
  throw unanswered(connection, job, "raising of its fence", settled as { doubt: boolean; error: unknown });
};
