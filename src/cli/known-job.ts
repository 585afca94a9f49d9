/** Jobs by their names, for commands that need no definition: what the control table knows of them. */
import type { ControlState } from "../control/control-store.ts";
import type { DynamoStore } from "../control/dynamo-store.ts";
import { CronfenceError } from "../errors.ts";
import { nearest } from "../unknown-option.ts";
import { patience } from "./control-table.ts";

/**
 * The job's control item.
 * @throws CronfenceError for a job that the table has nothing of: most likely its name, or the table's, is wrong
 */
export const knownState = async (
  store: DynamoStore,
  job: string,
  globs: readonly string[] | undefined = undefined,
): Promise<ControlState> => {
  const state = await store.read(job, patience());
  if (state !== undefined) return state;
  throw new CronfenceError("NO_JOB", await unknown(store, job, globs));
};

const unknown = async (store: DynamoStore, job: string, globs: readonly string[] | undefined): Promise<string> => {
  const names = await definedNames(globs);
  const never = `job "${job}" isn't known in table ${store.table}: it has never run there`;
  if (names.includes(job)) return `${never} (it is defined here)`;
  const near = nearest(job, names);
  return near === undefined ? never : `${never}; did you mean "${near}"?`;
};

/** The jobs that are defined where the command is run, if any are; only advice depends on it. */
const definedNames = async (globs: readonly string[] | undefined): Promise<readonly string[]> => {
  try {
    const [{ loadJobs }, { defaultJobs }] = await Promise.all([import("./load-jobs.ts"), import("./arguments.ts")]);
    return (await loadJobs(globs ?? [defaultJobs])).jobs.map(({ job }) => job.name);
  } catch {
    return [];
  }
};
