/** `custom.cronfence` of serverless.yml: its options, and everything that is wrong with them at once. */
import * as z from "zod/mini";
import { type Duration, milliseconds } from "../../src/duration.ts";
import { unknownOption } from "../../src/unknown-option.ts";
import type { ServiceSettings } from "../deployed-service.ts";
import { retentionDays } from "../log-group.ts";
import type { Statement, Value } from "../template.ts";

export interface PluginOptions {
  /** Globs of the modules that export a job and its handler, relative to serverless.yml. */
  readonly jobs: readonly string[];
  /** Packages that bundles leave out, since a layer or the runtime has them. @default none */
  readonly external: readonly string[];
  /** Globs of modules that no bundle may contain; one that does is an error. @default none */
  readonly neverBundle: readonly string[];
  /** A name for the table that the stack makes, or a table that is there. @default a table "SERVICE-STAGE-cronfence" */
  readonly controlTable: string | { readonly name: string; readonly arn?: Value } | undefined;
  /** Whom alarms page: a topic that the stack makes, a topic's ARN, or nobody. @default a topic that the stack makes */
  readonly alarmTopic: ServiceSettings["alarmTopic"];
  /** The watchdog that is made where no handler is one; undefined for none. */
  readonly watchdog: { readonly every: Duration; readonly heal: boolean } | undefined;
  /** @default true */
  readonly dashboard: boolean;
  /** @default 30 */
  readonly logRetentionInDays: number;
  /** Of functions whose job doesn't say, in MB. @default the provider's memorySize, or else 512 */
  readonly memory: number | undefined;
  /** Variables of all jobs' functions; those of a job's own definition go before them. */
  readonly environment: Readonly<Record<string, string>>;
  /** By a job's name, what its role may do besides. */
  readonly statements: Readonly<Record<string, readonly Statement[]>>;
  /** What functions report as their version. @default the commit, and a hash of what isn't committed */
  readonly version: string | undefined;
}

/** The options, or what is wrong with them: one sentence for each problem. */
export const readPluginOptions = (
  given: unknown,
): { readonly options: PluginOptions } | { readonly problems: readonly string[] } => {
  if (!isRecord(given)) {
    return {
      problems: [`custom.cronfence is ${show(given)}, and must be an object, such as { jobs: "handlers/*.ts" }`],
    };
  }
  const problems = Object.keys(given)
    .filter((key) => !known.includes(key))
    .map((key) => `custom.${unknownOption(`cronfence.${key}`, known)}`);
  const parsed = schema.safeParse(given);
  for (const issue of parsed.error?.issues ?? []) {
    const [option, ...inner] = issue.path as string[];
    const path = ["custom.cronfence", option, ...inner].join(".");
    // What the CLI works out later is checked then.
    if (hasVariable(at(given, issue.path))) continue;
    if (issue.code === "unrecognized_keys") {
      const inside = nested[option as keyof typeof nested] ?? [];
      problems.push(...issue.keys.map((key) => unknownOption(`${path}.${key}`, inside)));
    } else {
      problems.push(`${path} is ${show(at(given, issue.path))}, and must be ${allowed[option as keyof typeof shape]}`);
    }
  }
  if (problems.length > 0) return { problems: [...new Set(problems)] };
  return { options: filledIn((parsed.data ?? given) as Given) };
};

/** Whether there is a variable of serverless.yml in it; `${AWS::Region}` and the like are CloudFormation's. */
export const hasVariable = (given: unknown): boolean => /\$\{(?!AWS::)[^}]*:/.test(JSON.stringify(given) ?? "");

const texts = z.union([z.string().check(z.minLength(1)), z.array(z.string().check(z.minLength(1)))]);
const value = z.custom<Value>((each) => typeof each === "string" || (isRecord(each) && Object.keys(each).length === 1));
/** https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html */
const tableName = z.string().check(z.regex(/^[A-Za-z0-9_.-]{3,255}$/));
const isEvery = (each: unknown): each is Duration => {
  const minutes = (milliseconds(each) ?? 0) / 60_000;
  return Number.isInteger(minutes) && minutes >= 1 && minutes <= 30 && 60 % minutes === 0;
};

const watchdogShape = { every: z.optional(z.custom<Duration>(isEvery)), heal: z.optional(z.boolean()) };
const tableShape = { name: tableName, arn: z.optional(value) };
const shape = {
  jobs: texts,
  external: z.optional(texts),
  neverBundle: z.optional(texts),
  controlTable: z.optional(z.union([tableName, z.strictObject(tableShape)])),
  alarmTopic: z.optional(
    z.custom<Value | false>(
      (each) => each === false || (typeof each === "string" ? /^(create|off|arn:.+)$/.test(each) : isRecord(each)),
    ),
  ),
  watchdog: z.optional(z.union([z.literal(false), z.strictObject(watchdogShape)])),
  dashboard: z.optional(z.boolean()),
  logRetentionInDays: z.optional(z.custom<number>((each) => retentionDays.includes(each as number))),
  memory: z.optional(z.int().check(z.gte(128), z.lte(10_240))),
  environment: z.optional(z.record(z.string(), z.string())),
  statements: z.optional(z.record(z.string(), z.array(z.custom<Statement>(isStatement)))),
  version: z.optional(z.string().check(z.regex(/^[\x21-\x7e]{1,100}$/))),
};
const schema = z.object(shape);
const known = Object.keys(shape);
const nested = { controlTable: Object.keys(tableShape), watchdog: Object.keys(watchdogShape) };

const globs = 'a glob such as "handlers/*.ts", or a list of them';
const allowed: Readonly<Record<keyof typeof shape, string>> = {
  jobs: globs,
  external: 'a package such as "sharp", or a list of them',
  neverBundle: globs,
  controlTable:
    "a name of 3 to 255 letters, digits, _, - and . for a table to make, or { name, arn } of one that is there",
  alarmTopic: '"create", "off", or the ARN of an SNS topic',
  watchdog: "false, or { every: a duration of whole minutes that divides an hour, at most 30m; heal: true or false }",
  dashboard: "true or false",
  logRetentionInDays: `one of ${retentionDays.join(", ")}`,
  memory: "a whole number of megabytes from 128 to 10240",
  environment: "an object with a text for each variable",
  statements: "by a job's name, a list of IAM statements, each with Effect, Action and Resource",
  version: "1 to 100 printable characters without spaces",
};

type Given = z.infer<typeof schema>;

const filledIn = (given: Given): PluginOptions => ({
  jobs: listOf(given.jobs),
  external: listOf(given.external),
  neverBundle: listOf(given.neverBundle),
  controlTable: given.controlTable as PluginOptions["controlTable"],
  alarmTopic: topicOf(given.alarmTopic ?? "create"),
  watchdog:
    given.watchdog === false ? undefined : { every: given.watchdog?.every ?? "5m", heal: given.watchdog?.heal ?? true },
  dashboard: given.dashboard ?? true,
  logRetentionInDays: given.logRetentionInDays ?? 30,
  memory: given.memory,
  environment: given.environment ?? {},
  statements: given.statements ?? {},
  version: given.version,
});

const listOf = (given: string | readonly string[] = []): readonly string[] => [given].flat();

const topicOf = (given: Value | false): ServiceSettings["alarmTopic"] => {
  if (given === false || given === "off") return undefined;
  return given === "create" ? { create: true } : { arn: given };
};

function isRecord(given: unknown): given is Record<string, unknown> {
  return typeof given === "object" && given !== null && !Array.isArray(given);
}

function isStatement(given: unknown): boolean {
  return (
    isRecord(given) && (given.Effect === "Allow" || given.Effect === "Deny") && "Action" in given && "Resource" in given
  );
}

const at = (given: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>((inner, key) => (inner as Record<PropertyKey, unknown> | undefined)?.[key], given);

const show = (given: unknown): string => {
  const text = given === undefined ? "missing" : JSON.stringify(given);
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
};
