/**
 * `npm run dev`: runs the jobs of a directory on their schedules, on a local DynamoDB that keeps its data in
 * `.cronfence/`, until Ctrl-C. Then runs that are going end as `interrupted`, and are recorded; a second Ctrl-C exits
 * at once.
 *
 *     node --import tsx src/local/dev.ts [directory, by default handlers]
 *
 * What a module of the directory may export is described in job-modules.ts.
 */
import { resolve } from "node:path";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { systemClock } from "../clock.ts";
import { controlTableName, dynamoStore } from "../control/dynamo-store.ts";
import { createControlTable } from "../control/table.ts";
import { CronfenceError } from "../errors.ts";
import type { Job } from "../job.ts";
import { localClientConfig, startEngine } from "./engine.ts";
import { type JobModule, loadJobModules } from "./job-modules.ts";
import { createMissing } from "./local-tables.ts";
import { type Level, plainLog } from "./plain-log.ts";
import { runSchedules } from "./scheduler.ts";

const dataFile = ".cronfence/dynamodb.db";

const develop = async (directory: string, signal: AbortSignal): Promise<void> => {
  const engine = await startEngine({ file: dataFile });
  try {
    // Before the jobs are loaded, so that clients of their own are local too.
    useLocally(engine.endpoint);
    const modules = await loadJobModules(resolve(directory));
    if (modules.length === 0) {
      throw new CronfenceError("NO_JOBS", `no module in ${directory}/ exports a job (export const job = defineJob(…))`);
    }
    const client = new DynamoDBClient({ ...localClientConfig(engine.endpoint), maxAttempts: 1 });
    const table = controlTableName();
    await createControlTable(client, table);
    for (const { local } of modules) await createMissing(client, local, systemClock.now());
    const where = engine.kind === "external" ? "" : `, kept in ${dataFile}`;
    print(`local DynamoDB at ${engine.endpoint}${where}; control table ${table}`);
    for (const module of modules) print(describe(module, systemClock.now()));
    print("Ctrl-C stops\n");
    const jobs = modules.map(({ job }) => job);
    await runSchedules(jobs, {
      clock: systemClock,
      deps: {
        store: dynamoStore({ client, table }),
        log: plainLog({ print, now: systemClock.now, level: logLevel() }),
      },
      signal,
      onFailure: (job, error) => print(`${job}: the tick wasn't delivered: ${(error as Error).message}`),
    });
    await aborted(signal);
  } finally {
    await engine.stop();
  }
};

const useLocally = (endpoint: string): void => {
  const { env } = process;
  // The SDK's advice on the version of Node is for who deploys, and would stand between the lines.
  env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= "true";
  env.AWS_ENDPOINT_URL_DYNAMODB = endpoint;
  env.AWS_REGION ||= "local";
  if (env.AWS_ACCESS_KEY_ID || env.AWS_PROFILE) return;
  env.AWS_ACCESS_KEY_ID = "local";
  env.AWS_SECRET_ACCESS_KEY = "local";
};

const describe = ({ file, job }: JobModule, now: number): string =>
  job.schedule === undefined
    ? `${job.name} (${file}) has no schedule, and isn't run here`
    : `${job.name} (${file}) runs at ${job.schedule.source}, zone ${job.schedule.zone}; next: ${nextTicks(job, now)}`;

const nextTicks = ({ schedule }: Job, now: number): string => {
  const ticks: string[] = [];
  for (let tick = schedule?.next(now); tick !== undefined && ticks.length < 3; tick = schedule?.next(tick)) {
    ticks.push(new Date(tick).toISOString().replace(/:00\.000Z$/, "Z"));
  }
  return ticks.join(", ") || "never";
};

const logLevel = (): Level => (process.env.CRONFENCE_LOG_LEVEL as Level | undefined) || "info";

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });

const print = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const stopping = new AbortController();
const stop = (signal: NodeJS.Signals) => {
  // The engine ends with this process.
  if (stopping.signal.aborted) process.exit(130);
  print(`\n${signal}: stopping; once more exits at once`);
  stopping.abort(signal);
};
process.on("SIGINT", stop).on("SIGTERM", stop);
// Nothing else keeps the process alive between two ticks.
setInterval(() => {}, 60_000);

try {
  await develop(process.argv[2] ?? "handlers", stopping.signal);
  process.exit(0);
} catch (error) {
  // What a person can act on needs no stack.
  console.error(error instanceof CronfenceError ? `cronfence: ${error.message}` : error);
  process.exit(1);
}
