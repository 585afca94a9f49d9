/** The check of a job's options: everything that can't be accepted, at once, each with its value and what is allowed. */
import * as z from "zod/mini";
import { leastSlackMs } from "./alert.ts";
import { accessShape, deploymentAllowed, deploymentProblems, deploymentShape } from "./deployment.ts";
import { type Duration, milliseconds } from "./duration.ts";
import { InvalidOptionsError } from "./errors.ts";
import { isInstant } from "./instant.ts";
import { metricsKinds } from "./observe/metrics.ts";
import { isPingUrl } from "./observe/ping.ts";
import type { Exception, Schedule } from "./schedule/index.ts";
import { unknownOption } from "./unknown-option.ts";

/** @throws InvalidOptionsError */
export const readOptions = (subject: string, options: unknown): z.infer<typeof optionsSchema> => {
  const problems: string[] = [];
  const given: Record<string, unknown> = isRecord(options) ? options : {};
  if (!isRecord(options)) problems.push(`options must be an object, not ${show(options)}`);
  for (const key of Object.keys(given)) if (!known.includes(key)) problems.push(unknownOption(key, known));
  const parsed = optionsSchema.safeParse(given);
  for (const issue of parsed.error?.issues ?? []) {
    const path = issue.path.join(".");
    const unknownKeys = issue.code === "unrecognized_keys" ? issue.keys : [];
    const options = nested[path.replace(/\.\d+/g, "")] ?? [];
    for (const key of unknownKeys) problems.push(unknownOption(`${path}.${key}`, options));
    if (unknownKeys.length > 0) continue;
    const must = allowed[issue.path[0] as keyof typeof shape];
    problems.push(`${path} is ${show(at(given, issue.path))}, and must be ${must}`);
  }
  problems.push(...shapeProblems(given), ...deploymentProblems(given));
  if (parsed.data === undefined || problems.length > 0) throw new InvalidOptionsError(subject, problems);
  return parsed.data;
};

const isSchedule = (value: unknown) =>
  isRecord(value) && typeof value.next === "function" && typeof value.between === "function";
const isSource = (value: unknown) => isRecord(value) && typeof value.read === "function";
const isDuration = (value: unknown) => milliseconds(value) !== undefined;
const isFunction = (value: unknown) => typeof value === "function";

const duration = z.custom<Duration>(isDuration);
const count = z.optional(z.int().check(z.gte(1)));
const limitShape = { items: count, pages: count, transactions: count };
const alertShape = {
  missedAfter: z.optional(z.custom<Duration>((value) => (milliseconds(value) ?? 0) >= leastSlackMs)),
  failures: count,
};
const pingUrl = z.optional(z.custom<string>(isPingUrl));
const pingShape = { start: pingUrl, success: pingUrl, fail: pingUrl };
const shape = {
  name: z.string().check(z.regex(/^[A-Za-z0-9_-]{1,64}$/)),
  schedule: z.optional(z.custom<Schedule>(isSchedule)),
  timeout: duration,
  ttl: z.optional(duration),
  skew: z.optional(duration),
  overlap: z.optional(z.enum(["queue", "skip", "takeover"])),
  dryRun: z.optional(z.boolean()),
  alert: z.optional(z.strictObject(alertShape)),
  ping: z.optional(z.strictObject(pingShape)),
  metrics: z.optional(z.enum(metricsKinds)),
  onUnknown: z.optional(z.custom((value) => value === "retry" || value === "block" || isFunction(value))),
  destructive: z.optional(
    z.strictObject({
      max: z.int().check(z.gte(0)),
      usual: z.optional(
        z.strictObject({
          factor: z.number().check(z.gte(1)),
          history: z.optional(z.int().check(z.gte(3), z.lte(20))),
        }),
      ),
      share: z.optional(z.strictObject({ of: z.custom(isFunction), atMost: z.number().check(z.gt(0), z.lte(1)) })),
    }),
  ),
  plan: z.optional(z.custom(isFunction)),
  limit: z.optional(z.strictObject(limitShape)),
  onBacklog: z.optional(z.enum(["wait", "continue"])),
  maxChain: count,
  concurrency: count,
  onItemError: z.optional(z.enum(["stop", "park"])),
  maxAttempts: count,
  maxParked: count,
  run: z.optional(z.custom(isFunction)),
  except: z.optional(z.custom<readonly Exception[]>(Array.isArray)),
  jitter: z.optional(duration),
  exact: z.optional(z.boolean()),
  startAt: z.optional(z.custom<string>((value) => typeof value === "string" && isInstant(value))),
  startWithin: z.optional(duration),
  catchUp: z.optional(z.enum(["all", "latest", "none"])),
  maxTicks: count,
  tick: z.optional(z.custom(isFunction)),
  process: z.optional(z.custom(isFunction)),
  source: z.optional(z.custom(isSource)),
  ...deploymentShape,
};
const known = Object.keys(shape);
/** The keys of options that are objects, by their path. */
const nested: Readonly<Record<string, readonly string[]>> = {
  limit: Object.keys(limitShape),
  alert: Object.keys(alertShape),
  ping: Object.keys(pingShape),
  access: Object.keys(accessShape),
  destructive: ["max", "usual", "share"],
  "destructive.usual": ["factor", "history"],
  "destructive.share": ["of", "atMost"],
};
const optionsSchema = z.object(shape);

const aDuration = 'a duration such as "30s" or "4m", or a number of milliseconds, more than 0';
const aCount = "a whole number of at least 1";
const allowed: Record<keyof typeof shape, string> = {
  name: "a name of letters, digits, - and _, at most 64 characters",
  schedule: "a schedule made by cron(…) or rate(…)",
  timeout: aDuration,
  ttl: aDuration,
  skew: aDuration,
  overlap: '"queue", "skip" or "takeover"',
  dryRun: "true or false",
  alert: "an object with missedAfter (a duration of at least a minute) and failures (a whole number of at least 1)",
  ping: "an object with start, success and fail, each an http or https URL",
  metrics: '"emf", "cloudwatch" or "off"',
  onUnknown: '"retry", "block" or a function that finds out',
  destructive:
    "an object with max (a whole number), and where wanted usual { factor: 1 or more, history: 3 to 20 } and " +
    "share { of: a function, atMost: more than 0, at most 1 }",
  plan: "a function that returns keys",
  limit: "an object with items, pages or transactions, each a whole number of at least 1",
  except: 'a list of dates ("2026-12-25"), ranges ("2026-12-24..2026-12-27"), freezes ({ from, to }) and calendars',
  jitter: aDuration,
  exact: "true or false",
  startAt: 'an ISO 8601 instant with an offset, such as "2026-03-01T00:00:00Z"',
  startWithin: aDuration,
  catchUp: '"all", "latest" or "none"',
  maxTicks: aCount,
  onBacklog: '"wait" or "continue"',
  maxChain: aCount,
  concurrency: aCount,
  onItemError: '"stop" or "park"',
  maxAttempts: aCount,
  maxParked: aCount,
  run: "a function",
  tick: "a function",
  process: "a function",
  source: "a source such as queryAfter(…)",
  ...deploymentAllowed,
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
  for (const key of ["catchUp", "maxTicks"]) {
    if (given[key] !== undefined && given.tick === undefined) {
      problems.push(
        `${key} is for jobs with a tick function, and there is none: other work does all that is due at once`,
      );
    }
  }
  for (const key of ["except", "startAt", "startWithin", "jitter", "exact"]) {
    if (given[key] !== undefined && given.schedule === undefined)
      problems.push(`${key} is for jobs with a schedule, and there is none`);
  }
  for (const key of ["limit", "onBacklog", "maxChain", "concurrency", "onItemError", "maxAttempts", "maxParked"]) {
    if (given[key] !== undefined && given.source === undefined)
      problems.push(`${key} is for jobs with a source, and there is none`);
  }
  if (given.run !== undefined && (given.destructive === undefined) !== (given.plan === undefined)) {
    problems.push(
      "destructive and plan belong together where a run function does the work: the guard counts what plan returns",
    );
  }
  if (given.plan !== undefined && given.run === undefined)
    problems.push("plan is for jobs with a run function, and there is none");
  if (given.maxChain !== undefined && given.onBacklog !== "continue")
    problems.push('maxChain is for onBacklog "continue"');
  for (const key of ["maxAttempts", "maxParked"]) {
    if (given[key] !== undefined && given.onItemError !== "park") problems.push(`${key} is for onItemError "park"`);
  }
  return problems;
};

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const at = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>((inner, key) => (inner as Record<PropertyKey, unknown> | undefined)?.[key], value);

/** JSON, and for what has none (NaN, a bigint, a circle) as JavaScript says it. */
const textOf = (value: unknown): string => {
  if (typeof value === "number") return String(value);
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
};

export const show = (value: unknown): string => {
  if (value === undefined) return "missing";
  if (typeof value === "function") return "a function";
  const text = textOf(value);
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
};
