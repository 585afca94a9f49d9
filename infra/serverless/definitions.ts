/**
 * The jobs of a service, loaded as their functions will load them: with the variables that they will have. Everything that
 * keeps one from being deployed is a problem with its file, and hides no other.
 */
import { relative, resolve } from "node:path";
import { hasCode } from "cronfence";
import { type FoundJob, loadJobs } from "../../src/cli/load-jobs.ts";

export interface Definitions {
  readonly found: readonly FoundJob[];
  /** One sentence for each. */
  readonly problems: readonly string[];
}

/**
 * @param root the folder that globs are relative to
 * @param environment variables that are set while modules are loaded
 */
export const loadDefinitions = async (
  root: string,
  globs: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<Definitions> => {
  const { jobs, problems } = await withEnvironment(environment, async () => {
    try {
      // The CLI runs in the folder of serverless.yml; files are named from there.
      return await loadJobs(globs.map((glob) => relative(process.cwd(), resolve(root, glob)) || glob));
    } catch (error) {
      if (hasCode(error, "NO_JOBS")) return { jobs: [], problems: [] };
      throw error;
    }
  });
  if (jobs.length === 0 && problems.length === 0) {
    return { found: [], problems: [`custom.cronfence.jobs: no job is defined in ${globs.join(", ")}`] };
  }
  return {
    found: jobs,
    problems: [
      ...problems.flatMap(({ file, messages }) => messages.map((message) => `${file}: ${message}`)),
      ...shapeProblems(jobs),
    ],
  };
};

/** A function is a module, and runs one job. */
const shapeProblems = (jobs: readonly FoundJob[]): string[] => {
  const byFile = new Map<string, FoundJob[]>();
  for (const each of jobs) byFile.set(each.file, [...(byFile.get(each.file) ?? []), each]);
  return [...byFile].flatMap(([file, inFile]) => {
    const names = inFile.map(({ job }) => `"${job.name}"`).join(" and ");
    if (inFile.length > 1)
      return [`${file}: it defines ${names}, and a function runs one job: give each a file of its own`];
    return inFile[0]?.handles
      ? []
      : [`${file}: job ${names} has no handler; export const handler = lambdaHandler(job)`];
  });
};

const withEnvironment = async <Result>(
  environment: Readonly<Record<string, string>>,
  work: () => Promise<Result>,
): Promise<Result> => {
  const before = { ...process.env };
  Object.assign(process.env, environment);
  try {
    return await work();
  } finally {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
    Object.assign(process.env, before);
  }
};
