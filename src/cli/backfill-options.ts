/** What `cronfence backfill` is told. */
import type { JobActOptions } from "./act-options.ts";
import type { FunctionOptions } from "./function-name.ts";

export interface BackfillOptions extends JobActOptions, FunctionOptions {
  readonly from: number;
  readonly to: number;
  readonly max: number;
  readonly here?: boolean;
}
