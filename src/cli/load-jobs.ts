/**
 * Finds the jobs of a project: every value made by `defineJob` that a module exports, under whatever name. A module that
 * can't be loaded doesn't hide the others, and neither does a name that is used twice: each is a problem with its file.
 */
import { relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { CronfenceError, hasCode, type InvalidOptionsError } from "../errors.ts";
import type { Job } from "../job.ts";
import { isJob, isLocalSetup, type LocalSetup } from "../local/job-modules.ts";
import { nearest } from "../unknown-option.ts";
import { openScratch, type Scratch } from "./bundle.ts";

export interface FoundJob {
  /** Relative to the working directory. */
  readonly file: string;
  readonly job: Job;
  /** The module's export `local`: what its jobs need on a local DynamoDB. */
  readonly local: LocalSetup | undefined;
  /** Whether the module exports a function `handler`, as one that is deployed does. */
  readonly handles: boolean;
}

/** Something in a file that keeps jobs from being loaded. */
interface FileProblem {
  readonly file: string;
  /** One sentence for each thing that is wrong. */
  readonly messages: readonly string[];
  readonly error?: unknown;
}

export interface FoundJobs {
  /** In the order of their files, and of the names of their exports. */
  readonly jobs: readonly FoundJob[];
  readonly problems: readonly FileProblem[];
  /** Where jobs were looked for. */
  readonly globs: readonly string[];
}

/**
 * The jobs in the files that match `globs`; a folder stands for all files below it. Type declarations and tests are passed
 * over, and so are modules that export no job.
 *
 * @throws CronfenceError when no file matches.
 */
export const loadJobs = async (globs: readonly string[]): Promise<FoundJobs> => {
  const paths = await pathsOf(globs);
  if (paths.length === 0) {
    throw new CronfenceError(
      "NO_JOBS",
      `no file matches ${globs.join(", ")}; say where jobs are defined with --jobs GLOB`,
    );
  }
  const jobs: FoundJob[] = [];
  const problems: FileProblem[] = [];
  // Their places in an error's stack are those of the modules, not of the bundles.
  process.setSourceMapsEnabled(true);
  // What a module logs while it is loaded would come between the lines of our output.
  process.env.CRONFENCE_LOG_LEVEL = "silent";
  const scratch = openScratch();
  try {
    for (const path of paths) {
      const file = relative(process.cwd(), path) || path;
      try {
        jobs.push(...jobsIn(file, await importModule(path, scratch)));
      } catch (error) {
        problems.push({ file, messages: messagesOf(error, scratch), error });
      }
    }
  } finally {
    await scratch.remove();
  }
  return { jobs, problems: [...problems, ...twins(jobs)], globs };
};

const pathsOf = async (globs: readonly string[]): Promise<string[]> => {
  const { glob } = await import("tinyglobby");
  const paths = await glob([...globs], { absolute: true, ignore: ["**/node_modules/**"] });
  return paths
    .map((path) => resolve(path))
    .filter((path) => /\.[cm]?[jt]s$/.test(path) && !/\.(d|test|spec)\.[cm]?[jt]s$/.test(path))
    .sort();
};

const importModule = async (path: string, scratch: Scratch): Promise<Record<string, unknown>> =>
  await import(pathToFileURL(await scratch.bundle(path)).href);

const jobsIn = (file: string, exported: Record<string, unknown>): FoundJob[] => {
  // One job may be exported under two names, as `job` and as the default.
  const jobs = new Set(Object.values(exported).filter(isJob));
  const { local } = exported;
  if (jobs.size === 0) return [];
  if (local !== undefined && !isLocalSetup(local)) {
    throw new Error(
      "its export `local` must be { tables: [{ name, key: { hash, range? } }], seed?: (now) => items by table }",
    );
  }
  return [...jobs].map((job) => ({ file, job, local, handles: typeof exported.handler === "function" }));
};

const messagesOf = (error: unknown, scratch: Scratch): string[] => {
  if (hasCode(error, "INVALID_OPTIONS")) {
    const { message, problems } = error as InvalidOptionsError;
    const subject = message.slice(0, message.indexOf(problems[0] as string));
    return problems.map((problem) => `${subject}${problem}`);
  }
  const message = error instanceof Error ? error.message : String(error);
  return [scratch.named(message).replace(/\s*\n\s*/g, "; ") || "it can't be loaded, and doesn't say why"];
};

/** Each name that is used more than once, at each file but the first. */
const twins = (jobs: readonly FoundJob[]): FileProblem[] =>
  jobs.flatMap(({ file, job }, index) => {
    const first = jobs.findIndex((other) => other.job.name === job.name);
    return first === index ? [] : [{ file, messages: [twinMessage(job.name, jobs[first] as FoundJob)] }];
  });

const twinMessage = (name: string, { file }: FoundJob): string =>
  `job "${name}" is defined in ${file} too; names must be unique`;

/**
 * The job called `name`.
 * @throws CronfenceError naming the nearest one, or both files of two.
 */
export const pickJob = ({ jobs, globs, problems }: FoundJobs, name: string): FoundJob => {
  const [found, twin] = jobs.filter(({ job }) => job.name === name);
  if (twin !== undefined) throw new CronfenceError("NO_JOB", `${twin.file}: ${twinMessage(name, found as FoundJob)}`);
  if (found !== undefined) return found;
  const names = jobs.map(({ job }) => job.name);
  const near = nearest(name, names);
  const instead =
    near !== undefined
      ? `did you mean "${near}"?`
      : names.length === 0
        ? problems.length === 0
          ? "no job is"
          : "what is there can't be loaded"
        : `defined are ${names.join(", ")}`;
  throw new CronfenceError("NO_JOB", `job "${name}" isn't defined in ${globs.join(", ")}; ${instead}`);
};
