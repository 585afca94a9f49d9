/** Where a job's items come from. */
import type { Budget } from "../control/control-store.ts";
import type { TableReader } from "../control/table-reader.ts";
import type { Json } from "../json.ts";

export interface ReadRequest {
  /** The cursor of the last item that has been done; `undefined` at the very start. */
  readonly after: Json | undefined;
  /** The most items wanted. */
  readonly limit: number;
  readonly signal: AbortSignal;
  /** The present, in milliseconds since the epoch, and how long reading may be tried. */
  readonly budget: Budget;
  /** Reads DynamoDB tables over the run's own client. */
  readonly tables: TableReader | undefined;
}

export interface SourcePage<Item> {
  /** In the order of their cursors, each cursor once, all of them after the one asked for. */
  readonly items: readonly { readonly item: Item; readonly cursor: Json }[];
  /** Nothing is left after these. A page without items must say so. */
  readonly done: boolean;
}

export interface Source<Item> {
  /** For error messages. */
  readonly name: string;
  /**
   * Items per page.
   * @default 1000
   */
  readonly pageSize?: number;
  read(request: ReadRequest): Promise<SourcePage<Item>>;
}
