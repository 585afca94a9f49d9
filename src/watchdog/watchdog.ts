/**
 * The watchdog: a job that looks at all the others every few minutes, since a cron can't report its own absence. It needs
 * a schedule of its own; that it is absent itself is told by an alarm on its metrics (`watchdogAlarm`).
 */
import { type Clock, systemClock } from "../clock.ts";
import { type DynamoStore, dynamoStore } from "../control/dynamo-store.ts";
import type { DeploymentOptions } from "../deployment.ts";
import { type Duration, milliseconds } from "../duration.ts";
import { CronfenceError, InvalidOptionsError } from "../errors.ts";
import { defineJob, type Job, type Watches } from "../job.ts";
import { checkService, type MetricsKind, type MetricsSink, metricsKinds } from "../observe/metrics.ts";
import { sinkOf } from "../observe/run-metrics.ts";
import { cron } from "../schedule/index.ts";
import { unknownOption } from "../unknown-option.ts";
import type { Finding } from "./findings.ts";
import { type StartJob, type WatchReport, watch } from "./watch.ts";
import type { WatchedEntry } from "./watched-job.ts";

export interface WatchdogOptions extends Pick<DeploymentOptions, DeploymentKey> {
  /**
   * The jobs to look at, or functions that load one. What can't be loaded counts as unwatched, which pages, and hides
   * none of the others; so does a name that comes twice.
   */
  readonly jobs: readonly WatchedEntry[] | (() => Iterable<WatchedEntry> | AsyncIterable<WatchedEntry>);
  /** @default "watchdog" */
  readonly name?: string;
  /** How often it looks: a whole number of minutes that divides an hour, at most 30. @default "5m" */
  readonly every?: Duration;
  /** The first dimension of the metrics. @default the environment's CRONFENCE_SERVICE, or else "cronfence" */
  readonly service?: string;
  /** Where the metrics go that the alarms stand on: a kind, or a sink of your own. @default "emf" */
  readonly metrics?: MetricsKind | MetricsSink;
  /**
   * Also start jobs that are overdue, and ticks that EventBridge leaves out when the clocks skip them. Each tick is started
   * at most once, not while a run holds the lease or the platform may still try, and less and less often while a job
   * keeps failing. Needs `start`.
   * @default false
   */
  readonly heal?: boolean;
  /** How a job is started for a tick: `startByInvoking` of `cronfence/lambda`, or a function of your own. */
  readonly start?: StartJob;
  /** The most jobs that are started in one look; the others wait for the next. @default 100 */
  readonly mostStarts?: number;
  /** A job that is paused or in a dry run for longer is remarked on in the log. @default "7d" */
  readonly tooLong?: Duration;
  /** @default the DynamoDB table of the environment */
  readonly store?: DynamoStore;
  /** @default the machine's clock */
  readonly clock?: Clock;
  /** Called with what each look came to. */
  readonly onReport?: (report: WatchReport) => void;
}

/** The options of a job's deployment that a watchdog has, too. */
const deploymentKeys = ["memory", "environment", "alarms", "description"] as const;
type DeploymentKey = (typeof deploymentKeys)[number];

/** Some jobs couldn't be judged, so that nobody would notice if they stopped. */
export class UnwatchedError extends CronfenceError {
  override readonly name = "UnwatchedError";
  readonly findings: readonly Finding[];

  constructor(count: number, unwatched: readonly Finding[]) {
    const first = unwatched
      .slice(0, mostNamed)
      .map(({ job, ...what }) => `${job} (${"problem" in what ? what.problem : ""})`);
    const more = count > first.length ? ` and ${count - first.length} more` : "";
    super("UNWATCHED", `${count} of the watched jobs couldn't be judged: ${first.join(", ")}${more}`);
    this.findings = unwatched;
  }
}

const mostNamed = 5;

/**
 * A job that looks at `jobs` every few minutes. Run it like any other: `lambdaHandler(watchdog({ jobs }))`.
 *
 * Its run fails, after everything else is done, when some jobs couldn't be judged.
 *
 * @throws InvalidOptionsError naming every option that can't be accepted.
 * @example
 * ```ts
 * export const job = watchdog({ jobs: [expireCarts, dailyReport], heal: true, start: startByInvoking() });
 * export const handler = lambdaHandler(job);
 * ```
 */
export const watchdog = (options: WatchdogOptions): Job => {
  refuseOptions(options);
  const { jobs, name = "watchdog", every = "5m", metrics = "emf", heal = false, clock = systemClock } = options;
  const everyMs = milliseconds(every) as number;
  const deployment = Object.fromEntries(deploymentKeys.map((key) => [key, options[key]]));
  let store = options.store;
  const job = defineJob(
    {
      ...deployment,
      name,
      schedule: cron(`*/${everyMs / minuteMs} * * * *`),
      timeout: everyMs * timeShare,
      exact: true,
      run: async (run) => {
        // At the first run, so that nothing is looked for in the environment before it is needed.
        store ??= dynamoStore();
        const kept = typeof metrics === "string" ? sinkOf(metrics, run.log, options.service) : metrics;
        const sink = run.dryRun ? undefined : kept;
        const report = await watch({
          jobs: typeof jobs === "function" ? jobs() : jobs,
          store: run.dryRun ? { ...store, create: noNote, noteSchedule: noNote } : store,
          clock,
          log: run.log,
          ...(sink === undefined ? {} : { metrics: sink }),
          name,
          everyMs,
          tooLongMs: milliseconds(options.tooLong ?? "7d") as number,
          ...(heal && options.start !== undefined && !run.dryRun ? { start: options.start } : {}),
          mostStarts: options.mostStarts ?? 100,
          signal: run.signal,
          random: Math.random,
        });
        options.onReport?.(report);
        if (report.unwatched > 0) {
          const unwatched = report.findings.filter(({ kind }) => kind === "unwatched");
          throw new UnwatchedError(report.unwatched, unwatched);
        }
        run.commitAtEnd([], { items: report.jobs });
      },
    },
    { clock },
  );
  return { ...job, watches: watchesOf(options, everyMs) };
};

const watchesOf = ({ jobs, metrics = "emf", heal = false, service }: WatchdogOptions, everyMs: number): Watches => ({
  everyMs,
  heals: heal,
  metrics: typeof metrics === "string" ? metrics : "own",
  ...(service === undefined ? {} : { service }),
  jobs: typeof jobs === "function" ? [] : jobs.flatMap(nameOf),
  knowsAll: typeof jobs !== "function" && !jobs.some((entry) => typeof entry === "function"),
});

/** Of what can't be loaded only a look tells. */
const nameOf = (entry: WatchedEntry): string[] => {
  const { name } = (typeof entry === "object" ? entry : undefined) ?? {};
  return typeof name === "string" ? [name] : [];
};

const noNote = async (): Promise<void> => {};

const minuteMs = 60_000;
/** Some of the interval is left for a look that starts late. */
const timeShare = 0.8;

const refuseOptions = (options: WatchdogOptions): void => {
  const { jobs, every, metrics, heal, service, start, mostStarts, tooLong } = options ?? {};
  const problems = Object.keys(options ?? {})
    .filter((key) => !known.includes(key))
    .map((key) => unknownOption(key, known));
  const minutes = (milliseconds(every ?? "5m") ?? 0) / minuteMs;
  if (!(Number.isInteger(minutes) && minutes <= 30 && 60 % minutes === 0)) {
    problems.push(
      `every is ${JSON.stringify(every)}, and must be a whole number of minutes that divides an hour, at most 30`,
    );
  }
  if (!Array.isArray(jobs) && typeof jobs !== "function") {
    problems.push(`jobs is ${JSON.stringify(jobs)}, and must be a list of jobs, or a function that returns one`);
  }
  if (typeof metrics === "string" ? !metricsKinds.includes(metrics) : metrics !== undefined && !isSink(metrics)) {
    problems.push(`metrics is ${JSON.stringify(metrics)}, and must be "emf", "cloudwatch", "off" or a sink`);
  }
  if (heal !== undefined && typeof heal !== "boolean")
    problems.push(`heal is ${JSON.stringify(heal)}, and must be true or false`);
  if (start !== undefined && typeof start !== "function") problems.push("start must be a function");
  if (heal === true && start === undefined) problems.push("heal needs start, which starts a job for a tick");
  if (heal !== true && (start !== undefined || mostStarts !== undefined)) {
    problems.push("start and mostStarts are for heal: true");
  }
  if (mostStarts !== undefined && !(Number.isInteger(mostStarts) && mostStarts >= 1)) {
    problems.push(`mostStarts is ${JSON.stringify(mostStarts)}, and must be a whole number of at least 1`);
  }
  if (tooLong !== undefined && milliseconds(tooLong) === undefined) {
    problems.push(`tooLong is ${JSON.stringify(tooLong)}, and must be a duration such as "7d"`);
  }
  try {
    if (service !== undefined) checkService(service);
  } catch (error) {
    problems.push((error as Error).message);
  }
  if (problems.length > 0) throw new InvalidOptionsError("watchdog", problems);
};

const isSink = (value: object): boolean => "record" in value && "flush" in value;

const known = [
  ...deploymentKeys,
  "jobs",
  "name",
  "every",
  "service",
  "metrics",
  "heal",
  "start",
  "mostStarts",
  "tooLong",
  "store",
  "clock",
  "onReport",
];
