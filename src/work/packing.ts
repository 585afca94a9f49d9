/**
 * Whole items into transactions: an item's writes are never split over two, so that it is done entirely or not at all;
 * items that touch the same thing go into different ones, since a transaction may touch an item only once.
 */
import { fitTogether, joinWrites, noWrites, type PreparedWrites } from "../control/writes.ts";
import type { Json } from "../json.ts";
import type { Batch } from "../progress.ts";

export interface Packer {
  /** Adds an item, if it still fits. */
  add(writes: PreparedWrites, cursor: Json): boolean;
  /** How many items are packed. */
  readonly items: number;
  /** Takes out what is packed, with the last item's cursor as watermark. */
  take(): Batch;
}

export const packer = (): Packer => {
  let lots: PreparedWrites[] = [];
  let packed = noWrites;
  let cursor: Json | undefined;
  return {
    add: (writes, at) => {
      if (lots.length > 0 && !fitTogether(packed, writes)) return false;
      lots.push(writes);
      // Only the sums and the touched items are needed to go on; the actions are joined once, when they are taken.
      packed = {
        actions: { length: packed.actions.length + writes.actions.length } as PreparedWrites["actions"],
        bytes: packed.bytes + writes.bytes,
        touched: packed.touched.concat(writes.touched),
      };
      cursor = at;
      return true;
    },
    get items() {
      return lots.length;
    },
    take: () => {
      const batch: Batch = {
        writes: joinWrites(lots),
        items: lots.length,
        ...(cursor === undefined ? {} : { watermark: cursor }),
      };
      lots = [];
      packed = noWrites;
      return batch;
    },
  };
};
