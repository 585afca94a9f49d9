/** The tables that jobs want on a local engine: those that aren't there are created, and filled. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { createTable } from "../testing/tables.ts";
import type { LocalSetup } from "./job-modules.ts";
import { putAll } from "./put-all.ts";

/**
 * @param now the present, in milliseconds since the epoch, for the first items
 * @returns the names of the tables that were created
 */
export const createMissing = async (
  client: DynamoDBClient,
  local: LocalSetup | undefined,
  now: number,
): Promise<readonly string[]> => {
  const { tables, seed } = local ?? { tables: [] };
  const created: string[] = [];
  for (const table of tables) {
    try {
      await createTable(client, table);
      created.push(table.name);
    } catch (error) {
      if ((error as Error).name !== "ResourceInUseException") throw error;
    }
  }
  if (created.length === 0) return created;
  const items = seed?.(now) ?? {};
  for (const name of created) await putAll(client, name, items[name] ?? []);
  return created;
};
