/** What `cronfence run` is told, wherever the run is to be. */
import type { TableOptions } from "./control-table.ts";
import type { FunctionOptions } from "./function-name.ts";

export interface RunOptions extends TableOptions, FunctionOptions {
  readonly tick?: number;
  readonly dryRun?: boolean;
  readonly wait?: boolean;
  readonly waitFor?: string;
  readonly here?: boolean;
  /** In milliseconds. */
  readonly timeout?: number;
  readonly why?: string;
  readonly by?: string;
  readonly jobs: readonly string[];
  readonly json?: boolean;
}
