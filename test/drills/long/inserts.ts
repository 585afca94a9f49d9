/**
 * Carts that are put in while the job runs, each well before it expires: a source's `settle` says how late an insert may
 * come, and one that came later would be lost by right. How close the latest was is part of what the drill says.
 */
import { BatchWriteItemCommand, type DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { cartExpiring } from "../../../handlers/expire-carts.ts";
import type { Chance } from "./deck.ts";
import { mostOffsetMs } from "./deliveries.ts";
import { pass, type WorldTime } from "./world-time.ts";

/** How long before it expires a cart is put in, in the drill's time. */
const leastAheadMs = 90_000;
export const mostAheadMs = 150_000;
const perBatch = 25;
const everyMs = 250;
const retryMs = 20;
/** As the source says: a cart is read this long after it has expired. */
const settleMs = 30_000;

export interface Inserted {
  readonly carts: number;
  /** What was left of the time in which an insert may come, at the latest one; below zero the drill proves nothing. */
  readonly leastSpareMs: number;
}

/** Puts carts in until `signal` aborts. The engine may go away meanwhile. */
export const insertCarts = async (
  client: DynamoDBClient,
  { time, chance, signal }: { readonly time: WorldTime; readonly chance: Chance; readonly signal: AbortSignal },
): Promise<Inserted> => {
  let carts = 0;
  let leastSpareMs = Number.POSITIVE_INFINITY;
  while (!signal.aborted) {
    const ahead = Array.from({ length: perBatch }, () => chance.between(leastAheadMs, mostAheadMs));
    const expiring = ahead.map((ms) => Math.floor(time.now() + ms));
    const batch = expiring.map((at, index) => cartExpiring(at, `cart-${String(carts + index).padStart(7, "0")}`));
    await putUntilDone(client, batch);
    carts += batch.length;
    leastSpareMs = Math.min(leastSpareMs, Math.min(...expiring) + settleMs - mostOffsetMs - time.now());
    await pass(everyMs, signal);
  }
  return { carts, leastSpareMs };
};

/** The same carts until they are in: what was put in before is the same. */
const putUntilDone = async (client: DynamoDBClient, carts: readonly object[]): Promise<void> => {
  let left = carts.map((cart) => ({ PutRequest: { Item: marshall(cart) } }));
  while (left.length > 0) {
    try {
      const { UnprocessedItems } = await client.send(new BatchWriteItemCommand({ RequestItems: { carts: left } }));
      left = (UnprocessedItems?.carts ?? []) as typeof left;
    } catch (error) {
      if (!isGoneAway(error)) throw error;
      await pass(retryMs, new AbortController().signal);
    }
  }
};

const isGoneAway = (error: unknown): boolean =>
  ["ECONNREFUSED", "ECONNRESET", "EPIPE", "TimeoutError"].some(
    (sign) => (error as { code?: string }).code === sign || (error as Error).name === sign,
  );
