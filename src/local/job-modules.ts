/**
 * The jobs of a directory, as `npm run dev` runs them. A module there may export
 *
 * - `job`, made by `defineJob`: modules without one are passed over;
 * - `local`, what the job needs on the local engine: `tables` to create, and `seed(now)`, which returns the items by
 *   table that are written when a table has just been created. Nothing but the local engine ever uses it.
 */
import { readdir } from "node:fs/promises";
import { basename, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { CronfenceError } from "../errors.ts";
import type { Job } from "../job.ts";
import type { Item, TableDefinition } from "../testing/tables.ts";

/** What a job needs on the local engine: the module's export `local`. */
export interface LocalSetup {
  readonly tables: readonly TableDefinition[];
  /** The first items, by table. @param now the present, in milliseconds since the epoch */
  readonly seed?: (now: number) => Readonly<Record<string, readonly Item[]>>;
}

export interface JobModule {
  /** Relative to the working directory. */
  readonly file: string;
  readonly job: Job;
  readonly local: LocalSetup;
}

/** Something in the directory of jobs that can't be run; the message says where and what to do. */
class JobModuleError extends CronfenceError {
  override readonly name = "JobModuleError";
  readonly file: string;

  constructor(file: string, problem: string, options?: ErrorOptions) {
    super("JOB_MODULE", `${file}: ${problem}`, options);
    this.file = file;
  }
}

/**
 * Imports every module of `directory` and returns those that export a job, in the order of their files' names.
 * @throws JobModuleError for a module that can't be imported, an export that isn't what it must be, or one name twice.
 */
export const loadJobModules = async (directory: string): Promise<readonly JobModule[]> => {
  const modules: JobModule[] = [];
  for (const name of await filesIn(directory)) {
    const path = join(directory, name);
    const loaded = await loadModule(path, relative(process.cwd(), path) || name);
    if (loaded === undefined) continue;
    const twin = modules.find(({ job }) => job.name === loaded.job.name);
    if (twin !== undefined) {
      throw new JobModuleError(loaded.file, `job "${loaded.job.name}" is defined in ${twin.file} too`);
    }
    modules.push(loaded);
  }
  return modules;
};

const filesIn = async (directory: string): Promise<readonly string[]> => {
  try {
    const names = await readdir(directory);
    return names.filter((name) => /\.m?[jt]s$/.test(name) && !/\.(d|test)\.m?ts$/.test(name)).sort();
  } catch (cause) {
    throw new JobModuleError(directory, "there is no such directory of jobs", { cause });
  }
};

const loadModule = async (path: string, file: string): Promise<JobModule | undefined> => {
  const exported = await importModule(path, file);
  const { job, local } = exported;
  if (job === undefined) return undefined;
  if (!isJob(job)) throw new JobModuleError(file, "its export `job` isn't what defineJob returns");
  if (local !== undefined && !isLocalSetup(local)) {
    throw new JobModuleError(
      file,
      "its export `local` must be { tables: [{ name, key: { hash, range? }, indexes? }], seed?: (now) => items by table }",
    );
  }
  return { file, job, local: local ?? { tables: [] } };
};

const importModule = async (path: string, file: string): Promise<Record<string, unknown>> => {
  try {
    return await import(pathToFileURL(path).href);
  } catch (cause) {
    throw new JobModuleError(file, `${basename(file)} can't be imported: ${(cause as Error).message ?? cause}`, {
      cause,
    });
  }
};

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

/** Whether it was made by `defineJob`, of whatever copy of the library. */
export const isJob = (value: unknown): value is Job =>
  isRecord(value) && typeof value.name === "string" && typeof value.ttlMs === "number" && isRecord(value.work);

export const isLocalSetup = (value: unknown): value is LocalSetup =>
  isRecord(value) &&
  Array.isArray(value.tables) &&
  value.tables.every((table) => isRecord(table) && typeof table.name === "string" && isRecord(table.key)) &&
  (value.seed === undefined || typeof value.seed === "function");
