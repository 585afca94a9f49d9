/**
 * A job: a named piece of scheduled work, defined once in code. `defineJob` is the one place where its options are
 * checked; everything behind it trusts them.
 */
import * as z from "zod/mini";
import type { LeaseSpec, OverlapPolicy } from "./attempt.ts";
import type { Write } from "./control/writes.ts";
import { type Duration, milliseconds } from "./duration.ts";
import { InvalidOptionsError } from "./errors.ts";
import type { Json } from "./json.ts";
import type { Run, RunInfo, Tick, TickRun } from "./run-context.ts";
import type { Schedule } from "./schedule/index.ts";
import { unknownOption } from "./unknown-option.ts";
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

export interface JobOptions {
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
   * What a tick does that is delivered while another run holds the lease. `queue`: the holder goes round once more for
   * it. `skip`: it stays owed, and the next run covers it. `takeover`: the holder is fenced out.
   * @default "queue"
   */
  readonly overlap?: OverlapPolicy;
  /** @default false: takes the lease and is recorded, and writes nothing else. The environment's CRONFENCE_DRY_RUN=1 does the same. */
  readonly dryRun?: boolean;
}

interface RunWork<Watermark extends Json> {
  /** Full control: commit what and when you like. */
  readonly run: (run: Run<Watermark>) => unknown;
}

/** What a tick's function may return. */
export interface TickResult {
  /** Committed together with the completion of the tick; over 99 in several transactions, resumed where they broke off. */
  readonly writes: readonly Write[];
  /** Becomes visible with the last of the writes. */
  readonly watermark?: Json;
}

interface TickWork<Watermark extends Json> {
  /**
   * Called for each due tick, oldest first; the writes it returns are committed with that tick.
   * For more than 99 writes it must return the same ones in the same order when it is called again for the same tick.
   */
  readonly tick: (
    tick: Tick,
    run: TickRun<Watermark>,
  ) => readonly Write[] | TickResult | undefined | Promise<readonly Write[] | TickResult | undefined>;
}

interface SourceWork<Item> {
  /** Where items come from, in the order of a cursor. */
  readonly source: Source<Item>;
  /** The writes that do one item's work: at most 99. An empty array passes the item over. */
  readonly process: (item: Item, run: RunInfo) => readonly Write[] | Promise<readonly Write[]>;
  readonly limit?: Limit;
}

/** A job's work, by its shape. */
export type Work =
  | { readonly shape: "run"; readonly run: (run: Run) => unknown }
  | { readonly shape: "tick"; readonly tick: TickWork<Json>["tick"] }
  | {
      readonly shape: "source";
      readonly source: Source<unknown>;
      readonly process: SourceWork<unknown>["process"];
      readonly limit: Limit;
    };

/** A job that has been checked. */
export interface Job extends LeaseSpec {
  readonly timeoutMs: number;
  readonly work: Work;
  /** What is allowed, but seldom meant. */
  readonly warnings: readonly string[];
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
export function defineJob<Item>(options: JobOptions & SourceWork<Item>): Job;
export function defineJob<Watermark extends Json = Json>(options: JobOptions & TickWork<Watermark>): Job;
export function defineJob<Watermark extends Json = Json>(options: JobOptions & RunWork<Watermark>): Job;
export function defineJob(options: JobOptions & Partial<RunWork<Json> & TickWork<Json> & SourceWork<unknown>>): Job {
  const subject = `job ${JSON.stringify((options as { name?: unknown } | undefined)?.name ?? "(no name)")}`;
  const problems: string[] = [];
  const given: Record<string, unknown> = isRecord(options) ? options : {};
  if (!isRecord(options)) problems.push(`options must be an object, not ${show(options)}`);
  for (const key of Object.keys(given)) if (!known.includes(key)) problems.push(unknownOption(key, known));
  const parsed = optionsSchema.safeParse(given);
  for (const issue of parsed.error?.issues ?? []) {
    const path = issue.path.join(".");
    const unknownKeys = issue.code === "unrecognized_keys" ? issue.keys : [];
    for (const key of unknownKeys) problems.push(unknownOption(`${path}.${key}`, Object.keys(limitShape)));
    if (unknownKeys.length > 0) continue;
    problems.push(
      `${path} is ${show(at(given, issue.path))}, and must be ${allowed[issue.path[0] as keyof typeof shape]}`,
    );
  }
  problems.push(...shapeProblems(given));
  if (parsed.data === undefined || problems.length > 0) throw new InvalidOptionsError(subject, problems);

  const { name, overlap, limit, dryRun } = parsed.data;
  const timeoutMs = milliseconds(parsed.data.timeout) as number;
  const ttlMs = milliseconds(parsed.data.ttl ?? "30s") as number;
  const skewMs = milliseconds(parsed.data.skew ?? "10s") as number;
  const { schedule } = options;
  const warnings =
    ttlMs + skewMs < firstRetryMs
      ? []
      : [
          `ttl + skew is ${ttlMs + skewMs} ms, and should be less than ${firstRetryMs} ms: ` +
            "Lambda's first retry comes after a minute, and would find a crashed run's lease still held",
        ];
  return {
    name,
    ...(schedule === undefined ? {} : { schedule }),
    timeoutMs,
    ttlMs,
    skewMs,
    overlap: overlap ?? "queue",
    dryRun: dryRun ?? process.env.CRONFENCE_DRY_RUN === "1",
    work: workOf(options, (limit ?? {}) as Limit),
    warnings,
  };
}

/** https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html */
const firstRetryMs = 60_000;

const isSchedule = (value: unknown) =>
  isRecord(value) && typeof value.next === "function" && typeof value.between === "function";
const isSource = (value: unknown) => isRecord(value) && typeof value.read === "function";
const isDuration = (value: unknown) => milliseconds(value) !== undefined;
const isFunction = (value: unknown) => typeof value === "function";

const duration = z.custom<Duration>(isDuration);
const count = z.optional(z.int().check(z.gte(1)));
const limitShape = { items: count, pages: count, transactions: count };
const shape = {
  name: z.string().check(z.regex(/^[A-Za-z0-9_-]{1,64}$/)),
  schedule: z.optional(z.custom<Schedule>(isSchedule)),
  timeout: duration,
  ttl: z.optional(duration),
  skew: z.optional(duration),
  overlap: z.optional(z.enum(["queue", "skip", "takeover"])),
  dryRun: z.optional(z.boolean()),
  limit: z.optional(z.strictObject(limitShape)),
  run: z.optional(z.custom(isFunction)),
  tick: z.optional(z.custom(isFunction)),
  process: z.optional(z.custom(isFunction)),
  source: z.optional(z.custom(isSource)),
};
const known = Object.keys(shape);
const optionsSchema = z.object(shape);

const aDuration = 'a duration such as "30s" or "4m", or a number of milliseconds, more than 0';
const allowed: Record<keyof typeof shape, string> = {
  name: "a name of letters, digits, - and _, at most 64 characters",
  schedule: "a schedule made by cron(…) or rate(…)",
  timeout: aDuration,
  ttl: aDuration,
  skew: aDuration,
  overlap: '"queue", "skip" or "takeover"',
  dryRun: "true or false",
  limit: "an object with items, pages or transactions, each a whole number of at least 1",
  run: "a function",
  tick: "a function",
  process: "a function",
  source: "a source such as queryAfter(…)",
};

const shapeProblems = (given: Record<string, unknown>): string[] => {
  const shapes = ["run", "tick", "source"].filter((key) => given[key] !== undefined);
  const problems: string[] = [];
  if (shapes.length !== 1) {
    problems.push(
      `exactly one of run, tick, or source with process says what the job does, and ${shapes.length === 0 ? "none" : shapes.join(" and ")} is given`,
    );
  }
  if ((given.source === undefined) !== (given.process === undefined)) {
    problems.push(
      `source and process belong together, and only ${given.source === undefined ? "process" : "source"} is given`,
    );
  }
  if (given.limit !== undefined && given.source === undefined)
    problems.push("limit is for jobs with a source, and there is none");
  return problems;
};

const workOf = (options: Partial<RunWork<Json> & TickWork<Json> & SourceWork<unknown>>, limit: Limit): Work => {
  const { run, tick, source, process } = options;
  if (run !== undefined) return { shape: "run", run };
  if (tick !== undefined) return { shape: "tick", tick };
  return {
    shape: "source",
    source: source as Source<unknown>,
    process: process as SourceWork<unknown>["process"],
    limit,
  };
};

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const at = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>((inner, key) => (inner as Record<PropertyKey, unknown> | undefined)?.[key], value);

const show = (value: unknown): string => {
  if (value === undefined) return "missing";
  if (typeof value === "function") return "a function";
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
};
