/**
 * What the watchdog reads and notes on control items. None of it touches a lease, a fence, a watermark or a tick: at worst a
 * note is lost, and the watchdog is late or starts a job once more, which the job's own lease makes harmless.
 */
import { BatchGetItemCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { pause } from "../clock.ts";
import { StoreUnavailableError } from "../errors.ts";
import { type Connection, readUntilKnown, sendUntilKnown, unanswered } from "./connection.ts";
import type { Budget, ControlState, Healed } from "./control-store.ts";
import { controlKey, type Item, jobOf, namesIn, readState, valuesOf } from "./items.ts";

/** https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html */
export const mostKeys = 100;

/**
 * The control items of several jobs, by job; those that don't exist are left out. One that can't be decoded is there as the
 * error, so that it hides none of the others.
 * @throws StoreUnavailableError when some couldn't be read within the budget
 */
export const readMany = async (
  connection: Connection,
  jobs: readonly string[],
  budget: Budget,
): Promise<ReadonlyMap<string, ControlState | Error>> => {
  const found = new Map<string, ControlState | Error>();
  const wanted = [...new Set(jobs)].map(controlKey);
  for (let from = 0; from < wanted.length; from += mostKeys) {
    for (const item of await readBatch(connection, wanted.slice(from, from + mostKeys), budget)) {
      const job = jobOf(item);
      found.set(job, decode(job, item));
    }
  }
  return found;
};

const decode = (job: string, item: Item): ControlState | Error => {
  try {
    return readState(job, item);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
};

/** DynamoDB may answer a part of a batch, as much as it has capacity for; the rest is asked for again. */
const readBatch = async (connection: Connection, batch: readonly Item[], budget: Budget): Promise<Item[]> => {
  const subject = `control items of ${batch.length} jobs`;
  const items: Item[] = [];
  let keys: Item[] = [...batch];
  for (let tries = 0; ; tries += 1) {
    const answer = await readUntilKnown<{
      Responses?: Record<string, Item[]>;
      UnprocessedKeys?: Record<string, { Keys?: Item[] }>;
    }>(
      connection,
      new BatchGetItemCommand({ RequestItems: { [connection.table]: { Keys: keys, ConsistentRead: true } } }),
      budget,
      subject,
      "read",
    );
    items.push(...Object.values(answer.Responses ?? {}).flat());
    keys = Object.values(answer.UnprocessedKeys ?? {}).flatMap(({ Keys }) => Keys ?? []);
    if (keys.length === 0) return items;
    const delayMs = budget.random() * Math.min(longestDelayMs, firstDelayMs * 2 ** tries);
    if (budget.clock.now() + delayMs >= budget.until) {
      throw new StoreUnavailableError(subject, "read", {
        cause: new Error(`DynamoDB left ${keys.length} of them unprocessed, throttled`),
      });
    }
    await pause(budget.clock, delayMs);
  }
};

const firstDelayMs = 50;
const longestDelayMs = 2_000;

/**
 * Notes that a tick is about to be started by the watchdog, so that nobody does it twice.
 *
 * | condition | without it |
 * | --- | --- |
 * | the item exists | the note would make an item without a fence |
 * | no start of this tick or a later one is noted | two watchdogs would start it |
 * | the tick isn't done | it would be started though a run has just done it |
 */
export const noteHealed = async (
  connection: Connection,
  job: string,
  healed: Healed,
  budget: Budget,
): Promise<"noted" | "refused"> => {
  const update = "SET #healed = :healed";
  const condition =
    "attribute_exists(#pk) AND (attribute_not_exists(#healed) OR #healed.#tick < :tick) " +
    "AND (attribute_not_exists(#tick) OR #tick < :tick)";
  const settled = await sendUntilKnown(
    connection,
    new UpdateItemCommand({
      TableName: connection.table,
      Key: controlKey(job),
      UpdateExpression: update,
      ConditionExpression: condition,
      ExpressionAttributeNames: namesIn(update, condition),
      ExpressionAttributeValues: valuesOf({ ":healed": healed, ":tick": healed.tick }),
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    }),
    budget,
  );
  if (settled.kind === "done") return "noted";
  if (settled.kind === "refused") {
    const state = settled.item && readState(job, settled.item);
    // Our own earlier try, whose reply was lost.
    return state?.healed?.by === healed.by && state.healed.tick === healed.tick ? "noted" : "refused";
  }
  throw unanswered(connection, job, "note of a start", settled as { doubt: boolean; error: unknown });
};

/**
 * Notes that the job has another schedule since `at`, by which `nextTick` is the tick after its last success. Refused, and
 * that is fine, where the item no longer expects `seen`: a run has succeeded, or another watchdog was first.
 */
export const noteSchedule = async (
  connection: Connection,
  job: string,
  { nextTick, seen, at }: { readonly nextTick: number; readonly seen: number; readonly at: number },
  budget: Budget,
): Promise<void> => {
  const update = "SET #activeSince = :at, #nextTick = :next";
  const condition = "#nextTick = :seen";
  const settled = await sendUntilKnown(
    connection,
    new UpdateItemCommand({
      TableName: connection.table,
      Key: controlKey(job),
      UpdateExpression: update,
      ConditionExpression: condition,
      ExpressionAttributeNames: namesIn(update, condition),
      ExpressionAttributeValues: valuesOf({ ":at": at, ":next": nextTick, ":seen": seen }),
    }),
    budget,
  );
  if (settled.kind === "done" || settled.kind === "refused") return;
  throw unanswered(connection, job, "note of a schedule", settled as { doubt: boolean; error: unknown });
};
