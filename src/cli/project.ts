/** What commands about jobs of the project work with: its definitions, and the control table. */
import type { Job } from "../job.ts";
import type { OperateDeps } from "../operate/operator.ts";
import { openStore, type TableOptions } from "./control-table.ts";
import type { FoundJobs } from "./load-jobs.ts";

export interface ProjectOptions extends TableOptions {
  readonly jobs: readonly string[];
}

/** All jobs of the project; files with problems are reported, and hide no others. */
export const projectJobs = async ({ jobs }: Pick<ProjectOptions, "jobs">): Promise<FoundJobs> => {
  const [{ loadJobs }, { reportProblems }] = await Promise.all([import("./load-jobs.ts"), import("./problems.ts")]);
  const found = await loadJobs(jobs);
  reportProblems(found);
  return found;
};

/** @throws CronfenceError for a job that isn't defined, naming the nearest */
export const projectJob = async (name: string, options: Pick<ProjectOptions, "jobs">): Promise<Job> => {
  const { pickJob } = await import("./load-jobs.ts");
  return pickJob(await projectJobs(options), name).job;
};

/** The control table is opened first: a job's own clients talk to the same place. */
export const openProject = async (options: TableOptions) => {
  const store = await openStore(options);
  const deps: OperateDeps = { store };
  return { store, deps };
};
