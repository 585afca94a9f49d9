/** How far a run has got: what its commits add up to. A value; the live run replaces it with each commit. */
import type { TickPart } from "./control/control-store.ts";
import type { PreparedWrites } from "./control/writes.ts";
import type { WriteRejectedError } from "./errors.ts";
import type { Json } from "./json.ts";

/** Writes, and what becomes visible together with them. */
export interface Batch {
  readonly writes: PreparedWrites;
  readonly watermark?: Json;
  /** Completes this tick. */
  readonly tick?: number;
  readonly tickPart?: TickPart | null;
  /** Items that these writes are the work of. */
  readonly items: number;
  readonly itemsSkipped?: number;
  readonly itemsParked?: number;
  /** The same without the writes that DynamoDB rejected, where it can do without them. */
  readonly withoutRejected?: (error: WriteRejectedError) => Batch | undefined;
}

export interface Progress {
  readonly commits: number;
  readonly items: number;
  readonly itemsSkipped: number;
  readonly itemsParked: number;
  readonly watermark?: Json;
  /** The job's last completed tick. */
  readonly completed?: number;
  /** A tick that is half done. */
  readonly tickPart?: TickPart;
}

/** `progress` once `batch` has been applied. */
export const advance = (progress: Progress, batch: Batch): Progress => {
  const { tickPart: _, ...rest } = progress;
  const tickPart = batch.tickPart === undefined ? progress.tickPart : batch.tickPart;
  const completed = latest(progress.completed, batch.tick);
  return {
    ...rest,
    commits: progress.commits + 1,
    items: progress.items + batch.items,
    itemsSkipped: progress.itemsSkipped + (batch.itemsSkipped ?? 0),
    itemsParked: progress.itemsParked + (batch.itemsParked ?? 0),
    ...(batch.watermark === undefined ? {} : { watermark: batch.watermark }),
    ...(completed === undefined ? {} : { completed }),
    ...(tickPart ? { tickPart } : {}),
  };
};

export const latest = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined ? other : other === undefined ? one : Math.max(one, other);
