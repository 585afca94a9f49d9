/**
 * Items that are due, found in a sparse index that an item leaves when it is done: the writes that do its work also remove
 * the attribute that the index is on. Every run reads the index from its start, so a row that appears late, however late,
 * isn't lost. That is why it keeps no watermark.
 *
 * An item that is parked (`onItemError: "park"`) stays in the index, and is passed over until somebody retries or drops it.
 * One that is dropped is tried again as long as it is found.
 *
 * An index lags: an item that was done a moment ago may still be found. Give one of its writes a condition that fails then
 * (`attribute_exists(dueAt)`); the item is skipped.
 */
import { orderedQuery, type QueryAfterOptions, refuseOptions } from "./query-after.ts";
import type { Source } from "./source.ts";

/**
 * A source of the items of an index whose time has come, each of which must leave the index in its own transaction.
 * @throws InvalidOptionsError naming every option that can't be accepted.
 */
export const dueItems = <Item = Record<string, unknown>>(options: QueryAfterOptions): Source<Item> => {
  refuseOptions("dueItems", options);
  return { ...orderedQuery<Item>("dueItems", options), resumes: "start" };
};
