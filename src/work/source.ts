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
  /** Nothing is left after these. A page without items must say so, or give an `end`. */
  readonly done: boolean;
  /** Where the next page starts, if that isn't the last item's cursor. Becomes the watermark once the page is done. */
  readonly end?: Json;
}

export interface Source<Item> {
  /** For error messages. */
  readonly name: string;
  /** What it reads of DynamoDB, for those who deploy the job: its role may do that and needs no `access` for it. */
  readonly reads?: {
    /** A name, or an ARN. */
    readonly table: string;
    readonly index?: string;
    readonly by: "query" | "scan";
  };
  /**
   * Items per page.
   * @default 1000
   */
  readonly pageSize?: number;
  /**
   * `watermark`: a run goes on after the last item that was done. `start`: every run reads from the very start, because
   * items that are done are no longer found there.
   * @default "watermark"
   */
  readonly resumes?: "watermark" | "start";
  /**
   * The order of two cursors, negative if `one` comes first: an item out of order ends the run with an error.
   * @default numbers by value; others aren't compared
   */
  compare?(one: Json, other: Json): number;
  read(request: ReadRequest): Promise<SourcePage<Item>>;
  /** Reads one item again by its cursor, for a parked item that is retried; `undefined` if it's gone. */
  readOne?(cursor: Json, request: Pick<ReadRequest, "budget" | "tables">): Promise<Item | undefined>;
  /** What is left after `after`, in a few words, if that can be said at little cost. */
  left?(request: Omit<ReadRequest, "limit">): Promise<string | undefined>;
}
