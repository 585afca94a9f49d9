/** The check of a job's options: everything that can't be accepted, at once, each with its value and what is allowed. */
import { leastSlackMs } from "./alert.ts";
import { accessShape, deploymentAllowed, deploymentProblems, deploymentShape } from "./deployment.ts";
import { type Duration, milliseconds } from "./duration.ts";
import { InvalidOptionsError } from "./errors.ts";
import { isInstant } from "./instant.ts";
import { isJobName } from "./job-name.ts";
import { metricsKinds } from "./observe/metrics.ts";
import { isPingUrl } from "./observe/ping.ts";
import type { Exception, Schedule } from "./schedule/index.ts";
import { unknownOption } from "./unknown-option.ts";
import {
  type Checked,
  is,
  isRecord,
  numberThat,
  objectOf,
  oneOf,
  optional,
  textThat,
  trueOrFalse,
  wholeNumber,
} from "./value-check.ts";

/** @throws InvalidOptionsError */
export const readOptions = (subject: string, options: unknown): Options => {
  const problems: string[] = [];
  const given: Record<string, unknown> = isRecord(options) ? options : {};
  if (!isRecord(options)) problems.push(`options must be an object, not ${show(options)}`);
  for (const key of Object.keys(given)) if (!known.includes(key)) problems.push(unknownOption(key, known));
  for (const misfit of optionsCheck(given, [])) {
    const path = misfit.path.join(".");
    const options = nested[path.replace(/\.\d+/g, "")] ?? [];
    for (const key of misfit.unknownKeys ?? []) problems.push(unknownOption(`${path}.${key}`, options));
    if (misfit.unknownKeys !== undefined) continue;
    const must = allowed[misfit.path[0] as keyof typeof shape];
    problems.push(`${path} is ${show(at(given, misfit.path))}, and must be ${must}`);
  }
  problems.push(...shapeProblems(given), ...deploymentProblems(given));
  if (problems.length > 0) throw new InvalidOptionsError(subject, problems);
  return Object.fromEntries(known.filter((key) => key in given).map((key) => [key, given[key]])) as Options;
};

const isSchedule = (value: unknown) =>
  isRecord(value) && typeof value.next === "function" && typeof value.between === "function";
const isSource = (value: unknown) => isRecord(value) && typeof value.read === "function";
const isDuration = (value: unknown) => milliseconds(value) !== undefined;
const isFunction = (value: unknown) => typeof value === "function";

const duration = is<Duration>(isDuration);
const count = optional(wholeNumber(1));
const limitShape = { items: count, pages: count, transactions: count };
const alertShape = {
  missedAfter: optional(is<Duration>((value) => (milliseconds(value) ?? 0) >= leastSlackMs)),
  failures: count,
};
const pingUrl = optional(is<string>(isPingUrl));
const pingShape = { start: pingUrl, success: pingUrl, fail: pingUrl };
const usualShape = { factor: numberThat((factor) => factor >= 1), history: optional(wholeNumber(3, 20)) };
const shareShape = { of: is(isFunction), atMost: numberThat((share) => share > 0 && share <= 1) };
const destructiveShape = {
  max: wholeNumber(0),
  usual: optional(objectOf(usualShape)),
  share: optional(objectOf(shareShape)),
};
const shape = {
  name: textThat(isJobName),
  schedule: optional(is<Schedule>(isSchedule)),
  timeout: duration,
  ttl: optional(duration),
  skew: optional(duration),
  overlap: optional(oneOf("queue", "skip", "takeover")),
  dryRun: optional(trueOrFalse),
  alert: optional(objectOf(alertShape)),
  ping: optional(objectOf(pingShape)),
  metrics: optional(oneOf(...metricsKinds)),
  onUnknown: optional(is((value) => value === "retry" || value === "block" || isFunction(value))),
  destructive: optional(objectOf(destructiveShape)),
  plan: optional(is(isFunction)),
  limit: optional(objectOf(limitShape)),
  onBacklog: optional(oneOf("wait", "continue")),
  maxChain: count,
  concurrency: count,
  onItemError: optional(oneOf("stop", "park")),
  maxAttempts: count,
  maxParked: count,
  run: optional(is(isFunction)),
  except: optional(is<readonly Exception[]>(Array.isArray)),
  jitter: optional(duration),
  exact: optional(trueOrFalse),
  startAt: optional(textThat(isInstant)),
  startWithin: optional(duration),
  catchUp: optional(oneOf("all", "latest", "none")),
  maxTicks: count,
  tick: optional(is(isFunction)),
  process: optional(is(isFunction)),
  source: optional(is(isSource)),
  ...deploymentShape,
};
const known = Object.keys(shape);
/** The keys of options that are objects, by their path. */
const nested: Readonly<Record<string, readonly string[]>> = {
  limit: Object.keys(limitShape),
  alert: Object.keys(alertShape),
  ping: Object.keys(pingShape),
  access: Object.keys(accessShape),
  destructive: Object.keys(destructiveShape),
  "destructive.usual": Object.keys(usualShape),
  "destructive.share": Object.keys(shareShape),
};
const optionsCheck = objectOf(shape, "ignored");
type Options = Checked<typeof optionsCheck>;

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
