/**
 * A job: a named piece of scheduled work, defined once in code. Its options are checked here and nowhere else
 * (job-options.ts): everything behind trusts them.
 */
import { type Alert, type AlertOptions, alertOf } from "./alert.ts";
import type { LeaseSpec, OverlapPolicy } from "./attempt.ts";
import type { CatchUp } from "./catch-up.ts";
import { type Clock, systemClock } from "./clock.ts";
import type { Write } from "./control/writes.ts";
import { type Deployment, type DeploymentOptions, deploymentOf } from "./deployment.ts";
import { type Duration, milliseconds } from "./duration.ts";
import { InvalidOptionsError } from "./errors.ts";
import { readOptions, show } from "./job-options.ts";
import type { Json } from "./json.ts";
import type { MetricsKind } from "./observe/metrics.ts";
import type { PingUrls } from "./observe/ping.ts";
import { defaultMetrics } from "./observe/standard-observers.ts";
import type { OnUnknown } from "./on-unknown.ts";
import type { Run, RunInfo, Tick, TickRun } from "./run-context.ts";
import { calendar, type Exception, lintSchedule, type Schedule, withCalendar } from "./schedule/index.ts";
import type { Destructive } from "./work/guard.ts";
import type { Source } from "./work/source.ts";

/** Where a run stops with work left: it ends as `capped`, and the next run goes on from there. */
export interface Limit {
  /** Items per run. */
  readonly items?: number;
  /** Pages read per run. */
  readonly pages?: number;
  /** Transactions per run. */
  readonly transactions?: number;
}

export interface JobOptions extends DeploymentOptions {
  /** Unique in the control table: letters, digits, `-` and `_`, at most 64. */
  readonly name: string;
  /** When the job is due. Without one it runs only by hand. */
  readonly schedule?: Schedule;
  /** How long a run may take. Must be shorter than the shortest interval of the schedule. */
  readonly timeout: Duration;
  /**
   * How long a lease lasts that nobody renews: how soon work resumes after a crash. Safety doesn't depend on it.
   * @default "30s"
   */
  readonly ttl?: Duration;
  /**
   * How far two machines' clocks may differ before a live lease is tried for. Safety doesn't depend on it.
   * @default "10s"
   */
  readonly skew?: Duration;
  /**
   * Removes ticks: dates ("2026-12-25"), ranges ("2026-12-24..2026-12-27"), freezes ({ from, to }) and calendars. A removed
   * tick isn't owed, and isn't missed.
   */
  readonly except?: readonly Exception[];
  /**
   * Spreads starts over this long after each tick. Lateness within it isn't lateness. On EventBridge it is the schedule's
   * flexible window, within which AWS chooses the moment; other hosts start a job at a place that is stable for its name.
   * @default 0
   */
  readonly jitter?: Duration;
  /** The minute that the schedule names is meant: no warning about minute 0. @default false */
  readonly exact?: boolean;
  /**
   * The first tick that may be owed, for a job that should catch up from a past instant or begin at a later one. ISO 8601.
   * @default when the job is first known to the control table: no flood of old ticks
   */
  readonly startAt?: string;
  /**
   * A tick that would start later than this after its time (and the jitter) is left out and recorded as missed.
   * @default no limit
   */
  readonly startWithin?: Duration;
  /**
   * What a tick does that is delivered while another run holds the lease. `queue`: the holder goes round once more for
   * it. `skip`: it stays owed, and the next run covers it. `takeover`: the holder is fenced out.
   * @default "queue"
   */
  readonly overlap?: OverlapPolicy;
  /**
   * What to do about an effect (`run.once`) that an earlier run began and whose end nobody knows: see `OnUnknown`.
   * @default "block"
   */
  readonly onUnknown?: OnUnknown;
  /**
   * The job deletes or overwrites what can't be had back: its runs are planned, counted and compared with these limits
   * before their first write, and end as `guard_tripped`, with nothing written, when they exceed one. A person may approve
   * the plan for one run. A job with `run` needs `plan` for it.
   */
  readonly destructive?: Destructive;
  /** When the job's alarms go off. */
  readonly alert?: AlertOptions;
  /** URLs of an outside dead man's switch that are asked for when a run starts, succeeds and fails; see `PingUrls`. */
  readonly ping?: PingUrls;
  /**
   * Where the metrics of the job's runs go. `emf`: lines on standard output, which CloudWatch Logs turns into metrics.
   * `cloudwatch`: PutMetricData. Each metric of each job costs money; the alarms need none of these, only the watchdog's.
   * @default the environment's CRONFENCE_METRICS, or else "off"
   */
  readonly metrics?: MetricsKind;
  /** @default false: takes the lease and is recorded, and writes nothing else. The environment's CRONFENCE_DRY_RUN=1 does the same. */
  readonly dryRun?: boolean;
}

interface RunWork<Watermark extends Json> {
  /** Full control: commit what and when you like. */
  readonly run: (run: Run<Watermark>) => unknown;
  /**
   * For a destructive job: the keys of everything that the run is about to affect. Called before `run`, which may then
   * commit at most that many items (see `CommitOptions.items`).
   */
  readonly plan?: (run: RunInfo<Watermark>) => readonly Json[] | Promise<readonly Json[]>;
}

/** What a tick's function may return. */
export interface TickResult<Watermark extends Json = Json> {
  /** Committed together with the completion of the tick; over 99 in several transactions, resumed where they broke off. */
  readonly writes: readonly Write[];
  /** Becomes visible with the last of the writes. */
  readonly watermark?: Watermark;
}

interface TickWork<Watermark extends Json> {
  /**
   * What becomes of ticks that were missed. `all`: each is done, oldest first. `latest`: only the newest (`maxTicks` of
   * them), and the others are recorded as skipped. `none`: only ticks that were delivered are done.
   * @default "all"
   */
  readonly catchUp?: CatchUp;
  /** The most ticks that one run does; the rest stays owed. @default no limit, and 1 with catchUp "latest" */
  readonly maxTicks?: number;
  /**
   * Called for each due tick, oldest first; the writes it returns are committed with that tick.
   * For more than 99 writes it must return the same ones in the same order when it is called again for the same tick.
   */
  readonly tick: (
    tick: Tick,
    run: TickRun<Watermark>,
  ) =>
    | readonly Write[]
    | TickResult<Watermark>
    | undefined
    | Promise<readonly Write[] | TickResult<Watermark> | undefined>;
}

interface SourceWork<Item> {
  /** Where items come from, in the order of a cursor. */
  readonly source: Source<Item>;
  /** The writes that do one item's work: at most 99. An empty array passes the item over. */
  readonly process: (item: Item, run: RunInfo) => readonly Write[] | Promise<readonly Write[]>;
  readonly limit?: Limit;
  /**
   * What follows a run that stopped at a bound. `wait`: the next tick. `continue`: another run at once, at most `maxChain` in
   * a row.
   * @default "wait"
   */
  readonly onBacklog?: "wait" | "continue";
  /** @default 10 */
  readonly maxChain?: number;
  /**
   * How many items are processed at once; they are committed in order all the same.
   * @default 1
   */
  readonly concurrency?: number;
  /**
   * What an item does whose `process` fails. `stop`: the run fails, with everything before the item committed. `park`: after
   * `maxAttempts` it is set aside with its error, for a person to retry or drop, and the run goes on. A retry takes at most
   * 98 writes: one more takes the item out of the parked ones.
   * @default "stop"
   */
  readonly onItemError?: "stop" | "park";
  /** How often a failing item is tried in one run before it is parked. @default 3 */
  readonly maxAttempts?: number;
  /** The most items that one run parks; one more and it stops, since a broken dependency mustn't park everything. @default 10 */
  readonly maxParked?: number;
}

/** A job's work, by its shape. */
export type Work =
  | {
      readonly shape: "run";
      readonly run: (run: Run) => unknown;
      readonly plan: RunWork<Json>["plan"];
      readonly destructive: Destructive | undefined;
    }
  | { readonly shape: "tick"; readonly tick: TickWork<Json>["tick"]; readonly destructive: Destructive | undefined }
  | {
      readonly shape: "source";
      readonly destructive: Destructive | undefined;
      readonly source: Source<unknown>;
      readonly process: SourceWork<unknown>["process"];
      readonly limit: Limit;
      readonly onBacklog: "wait" | "continue";
      readonly maxChain: number;
      readonly concurrency: number;
      readonly onItemError: "stop" | "park";
      readonly maxAttempts: number;
      readonly maxParked: number;
    };

/** A job that has been checked. */
export interface Job extends LeaseSpec {
  readonly timeoutMs: number;
  readonly jitterMs: number;
  readonly alert: Alert;
  readonly metrics: MetricsKind;
  readonly work: Work;
  /** Where and how it runs, for those who deploy it. */
  readonly deployment: Deployment;
  /** Set for a watchdog: what those who deploy it must know of it. */
  readonly watches?: Watches;
  /** What is allowed, but seldom meant. */
  readonly warnings: readonly string[];
}

/** A watchdog's own, for its role and the alarms that stand on its metrics. */
export interface Watches {
  /** How often it looks, in milliseconds. */
  readonly everyMs: number;
  /** Whether it also starts jobs. */
  readonly heals: boolean;
  /** Where its metrics go; "own" is a sink that the definition brings. */
  readonly metrics: MetricsKind | "own";
  /** The first dimension of its metrics, where that isn't the environment's CRONFENCE_SERVICE. */
  readonly service?: string;
  /** The names of the jobs it was given. */
  readonly jobs: readonly string[];
  /** Whether these are all: those that a function loads aren't known before it looks. */
  readonly knowsAll: boolean;
}

/** What a definition is checked with. */
export interface DefineDeps {
  /** The present, from which the schedule's next two years are looked at. @default the machine's clock */
  readonly clock?: Clock;
}

/**
 * Defines a job of one of three shapes: `run`, `tick`, or `source` with `process`.
 *
 * @throws InvalidOptionsError naming every option that can't be accepted, its value, and what is allowed.
 * @example
 * ```ts
 * export const job = defineJob({
 *   name: "daily-report",
 *   schedule: cron("30 6 * * *", { zone: "Europe/Berlin" }),
 *   timeout: "5m",
 *   tick: async (tick) => [{ Put: { TableName: "reports", Item: { id: tick.id, ...(await figures(tick.at)) } } }],
 * });
 * ```
 */
export function defineJob<Item>(options: JobOptions & SourceWork<Item>, deps?: DefineDeps): Job;
export function defineJob<Watermark extends Json = Json>(
  options: JobOptions & TickWork<Watermark>,
  deps?: DefineDeps,
): Job;
export function defineJob<Watermark extends Json = Json>(
  options: JobOptions & RunWork<Watermark>,
  deps?: DefineDeps,
): Job;
export function defineJob(
  options: JobOptions & Partial<RunWork<Json> & TickWork<Json> & SourceWork<unknown>>,
  { clock = systemClock }: DefineDeps = {},
): Job {
  const subject = `job ${show((options as { name?: unknown } | undefined)?.name ?? "(no name)")}`;
  const { name, overlap, dryRun, except, exact, startAt, startWithin, maxTicks, ...rest } = readOptions(
    subject,
    options,
  );
  const timeoutMs = milliseconds(rest.timeout) as number;
  const ttlMs = milliseconds(rest.ttl ?? "30s") as number;
  const skewMs = milliseconds(rest.skew ?? "10s") as number;
  const jitterMs = rest.jitter === undefined ? 0 : (milliseconds(rest.jitter) as number);
  const schedule = scheduleOf(subject, options.schedule, except);
  const warnings: string[] = [];
  if (schedule !== undefined) {
    const from = clock.now();
    const found = lintSchedule({ schedule, from, timeoutMs, jitterMs, ...(exact === undefined ? {} : { exact }) });
    if (found.errors.length > 0) throw new InvalidOptionsError(subject, found.errors);
    warnings.push(...found.warnings);
  }
  if (ttlMs + skewMs >= firstRetryMs) {
    warnings.push(
      `ttl + skew is ${ttlMs + skewMs} ms, and should be less than ${firstRetryMs} ms: ` +
        "Lambda's first retry comes after a minute, and would find a crashed run's lease still held",
    );
  }
  return {
    name,
    ...(schedule === undefined ? {} : { schedule }),
    timeoutMs,
    ttlMs,
    skewMs,
    jitterMs,
    overlap: overlap ?? "queue",
    catchUp: {
      catchUp: rest.catchUp ?? "all",
      ...(maxTicks === undefined ? {} : { maxTicks }),
      ...(startAt === undefined ? {} : { startAt: Date.parse(startAt) }),
      ...(startWithin === undefined ? {} : { startWithinMs: (milliseconds(startWithin) as number) + jitterMs }),
    },
    alert: alertOf(options.alert),
    metrics: options.metrics ?? metricsOfEnvironment(subject),
    ...(options.ping === undefined ? {} : { ping: options.ping }),
    onUnknown: options.onUnknown ?? "block",
    dryRun: dryRun ?? process.env.CRONFENCE_DRY_RUN === "1",
    work: workOf(options),
    deployment: deploymentOf(options),
    warnings,
  };
}

const metricsOfEnvironment = (subject: string): MetricsKind => {
  try {
    return defaultMetrics();
  } catch (error) {
    throw new InvalidOptionsError(subject, [(error as Error).message], { cause: error });
  }
};

/** The schedule without what `except` removes. */
const scheduleOf = (
  subject: string,
  schedule: Schedule | undefined,
  except: readonly Exception[] | undefined,
): Schedule | undefined => {
  if (schedule === undefined || except === undefined) return schedule;
  try {
    return withCalendar(schedule, calendar(except));
  } catch (error) {
    if (!(error instanceof InvalidOptionsError)) throw error;
    throw new InvalidOptionsError(
      subject,
      error.problems.map((problem) => `except: ${problem}`),
      { cause: error },
    );
  }
};

/** https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html */
const firstRetryMs = 60_000;

type Shapes = Partial<RunWork<Json> & TickWork<Json> & SourceWork<unknown>>;

/** The defaults are written down in `SourceWork`. */
const workOf = ({ run, tick, source, process, destructive, ...options }: JobOptions & Shapes): Work => {
  if (run !== undefined) return { shape: "run", run, plan: options.plan, destructive };
  if (tick !== undefined) return { shape: "tick", tick, destructive };
  return {
    shape: "source",
    destructive,
    source: source as Source<unknown>,
    process: process as SourceWork<unknown>["process"],
    limit: options.limit ?? {},
    onBacklog: options.onBacklog ?? "wait",
    maxChain: options.maxChain ?? 10,
    concurrency: options.concurrency ?? 1,
    onItemError: options.onItemError ?? "stop",
    maxAttempts: options.maxAttempts ?? 3,
    maxParked: options.maxParked ?? 10,
  };
};
