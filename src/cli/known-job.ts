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
export const knownState = async (store: DynamoStore, job: string, globs?: readonly string[]): Promise<ControlState> => {
  const state = await stateIfKnown(store, job, globs);
  if (state !== undefined) return state;
  throw new CronfenceError("NO_JOB", `${neverRan(store, job)} (it is defined here)`);
};

/**
 * The job's control item; none for a job that is defined here and has never run.
 * @throws CronfenceError for a job that is neither known nor defined, naming the nearest
 */
export const stateIfKnown = async (
  store: DynamoStore,
  job: string,
  globs?: readonly string[],
): Promise<ControlState | undefined> => {
  const state = await store.read(job, patience());
  if (state !== undefined) return state;
  const names = await definedNames(globs);
  if (names.includes(job)) return undefined;
  const near = nearest(job, names);
  throw new CronfenceError("NO_JOB", `${neverRan(store, job)}${near === undefined ? "" : `; did you mean "${near}"?`}`);
};

const neverRan = ({ table }: DynamoStore, job: string): string =>
  `job "${job}" isn't known in table ${table}: it has never run there`;

/** The jobs that are defined where the command is run, if any are; only advice depends on it. */
const definedNames = async (globs: readonly string[] | undefined): Promise<readonly string[]> => {
  try {
    const [{ loadJobs }, { defaultJobs }] = await Promise.all([import("./load-jobs.ts"), import("./arguments.ts")]);
    return (await loadJobs(globs ?? [defaultJobs])).jobs.map(({ job }) => job.name);
  } catch {
    return [];
  }
};
