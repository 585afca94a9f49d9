/**
 * The watchdog of a service that defines none: a module that looks at every job, made when the service is packaged. A job
 * whose module can't be loaded beside it is reported as unwatched, which pages, and hides none of the others.
 */
import { relative } from "node:path";
import type { Job } from "cronfence";
import { watchdog } from "cronfence/watchdog";
import type { FoundJob } from "../../src/cli/load-jobs.ts";
import type { PluginOptions } from "./options.ts";

type Settings = NonNullable<PluginOptions["watchdog"]>;

/** Its definition, for its function and alarms. */
export const watchdogOf = (found: readonly FoundJob[], { every, heal }: Settings): Job =>
  watchdog({ jobs: found.map(({ job }) => job), every, ...(heal ? { heal, start: neverHere } : {}) });

/**
 * The module's source.
 * @param folder where it will lie, as jobs' files are relative to the working directory
 */
export const watchdogSource = (found: readonly FoundJob[], { every, heal }: Settings, folder: string): string => {
  const entries = found.map(({ file, job }) => {
    const path = relative(folder, file).replaceAll("\\", "/");
    const specifier = path.startsWith(".") ? path : `./${path}`;
    return `    async () => named(await import(${JSON.stringify(specifier)}), ${JSON.stringify(job.name)}),`;
  });
  return `/** Made by cronfence: no handler defines a watchdog, so this one looks at every job. */
import { lambdaHandler${heal ? ", startByInvoking" : ""} } from "cronfence/lambda";
import { watchdog } from "cronfence/watchdog";

const named = (exported, name) => {
  const job = Object.values(exported).find((each) => each?.name === name && each.timeoutMs !== undefined);
  if (job === undefined) throw new Error(\`its module exports no job "\${name}"\`);
  return job;
};

export const job = watchdog({
  jobs: [
${entries.join("\n")}
  ],
  every: ${JSON.stringify(every)},${heal ? "\n  heal: true,\n  start: startByInvoking()," : ""}
});

export const handler = lambdaHandler(job);
`;
};

/** This definition is only looked at. */
const neverHere = async (): Promise<void> => {
  throw new Error("this watchdog is made for packaging, and doesn't run");
};
