/** The main job's tables, filled so that each tick brings its share of carts. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { createTable, dumpTable, type Item } from "cronfence/testing";
import { cartExpiring, local } from "../../handlers/expire-carts.ts";
import { putAll } from "../../src/local/put-all.ts";

/** From one tick of the main job to the next. */
export const tickMs = 5 * 60_000;

/**
 * How long after its tick a run's clock starts. The carts of a tick expire from three minutes to one minute before it,
 * so they are settled by then, and those of the next tick aren't due for as long as any drill takes.
 */
export const deliveryMs = 1_000;

export const cartsDueBy = (tick: number, count: number): Item[] =>
  Array.from({ length: count }, (_, index) => ({
    ...cartExpiring(
      tick - 3 * 60_000 + Math.floor((index * 120_000) / count),
      `cart-${new Date(tick).toISOString().slice(11, 16)}-${String(index).padStart(5, "0")}`,
    ),
  }));

export const createCartTables = async (client: DynamoDBClient): Promise<void> => {
  for (const table of local.tables) await createTable(client, table);
};

export const cartTables = local.tables.map(({ name }) => name);

export const putCarts = (client: DynamoDBClient, carts: readonly Item[]): Promise<void> =>
  putAll(client, "carts", carts);

/** What the tables say was done. */
export interface Effects {
  /** Audit rows: one per cart that expired. */
  readonly rows: number;
  /** How often the carts in the audit expired: the fewest and the most. */
  readonly fewest: number;
  readonly most: number;
  /** Audit rows by the run that wrote them. */
  readonly byRun: Readonly<Record<string, number>>;
  /** Carts that are still open. */
  readonly open: number;
}

export const readEffects = async (client: DynamoDBClient): Promise<Effects> => {
  const [carts, audit] = await Promise.all([dumpTable(client, "carts"), dumpTable(client, "cart-audit")]);
  const byRun: Record<string, number> = {};
  let fewest = Number.POSITIVE_INFINITY;
  let most = 0;
  for (const { runId, times } of audit as { runId: string; times: number }[]) {
    byRun[runId] = (byRun[runId] ?? 0) + 1;
    fewest = Math.min(fewest, times);
    most = Math.max(most, times);
  }
  return {
    rows: audit.length,
    fewest: audit.length === 0 ? 0 : fewest,
    most,
    byRun,
    open: carts.filter(({ status }) => status !== "expired").length,
  };
};
