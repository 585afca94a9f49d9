/**
 * Whole items into transactions: an item's writes are never split over two, so that it is done entirely or not at all;
 * items that touch the same thing go into different ones, since a transaction may touch an item only once.
 */
import { joinWrites, mostActions, mostBytes, type PreparedWrites } from "../control/writes.ts";
import type { Json } from "../json.ts";

/** One item's share of a transaction. */
export interface Lot {
  readonly cursor: Json;
  /** Where to go on after it, if that isn't its cursor. */
  readonly end?: Json;
  readonly writes: PreparedWrites;
  /** Absent for an item that is done by these writes. */
  readonly fate?: "skipped" | "parked";
}

export interface Packer {
  /** Adds an item, if it still fits. */
  add(lot: Lot): boolean;
  /** How many items are packed. */
  readonly items: number;
  /** Takes out what is packed. */
  take(): readonly Lot[];
}

export const packer = (): Packer => {
  let lots: Lot[] = [];
  let actions = 0;
  let bytes = 0;
  let touched = new Set<string>();
  const fits = ({ writes }: Lot): boolean =>
    actions + writes.actions.length <= mostActions &&
    bytes + writes.bytes <= mostBytes &&
    !writes.touched.some((item) => touched.has(item));
  return {
    add: (lot) => {
      if (lots.length > 0 && !fits(lot)) return false;
      lots.push(lot);
      actions += lot.writes.actions.length;
      bytes += lot.writes.bytes;
      for (const item of lot.writes.touched) touched.add(item);
      return true;
    },
    get items() {
      return lots.length;
    },
    take: () => {
      const taken = lots;
      lots = [];
      actions = 0;
      bytes = 0;
      touched = new Set();
      return taken;
    },
  };
};

export const endOf = ({ cursor, end }: Lot): Json => end ?? cursor;

/** The lot that each of a joined transaction's writes belongs to. */
export const lotOfWrite = (lots: readonly Lot[], index: number): number => {
  let behind = 0;
  for (const [position, { writes }] of lots.entries()) {
    behind += writes.actions.length;
    if (index < behind) return position;
  }
  return -1;
};

export const joinLots = (lots: readonly Lot[]): PreparedWrites => joinWrites(lots.map(({ writes }) => writes));
