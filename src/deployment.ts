/**
 * What a job's definition says of where it runs: the function's size and retries, what its role may do, what pages. Nothing
 * of it is looked at by a run; `infra/` makes functions, roles, schedules and alarms of it.
 */
import { is, isRecord, listOf, objectOf, oneOf, optional, textThat, trueOrFalse, wholeNumber } from "./value-check.ts";

/** What the job's own role may do with one of the application's tables. */
export interface TableAccess {
  /**
   * Its name; or, for one of another account or Region, its ARN. That can only be read: a transaction is of one account and
   * Region (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html).
   */
  readonly table: string;
  /** One of its indexes, to be read. The table itself is then an entry of its own. */
  readonly index?: string;
  /** Get, query and scan, and check conditions in a commit. @default false */
  readonly read?: boolean;
  /** Put, update and delete, in the transactions of commits only: nothing else is under the fence. @default false */
  readonly write?: boolean;
}

export interface DeploymentOptions {
  /** The function's memory in MB, 128 to 10240. @default the deployment's, which is 512 where it says nothing */
  readonly memory?: number;
  /**
   * How often a delivery, and a function that failed, is tried again: 0, 1 or 2. Reaches both the schedule's retry policy,
   * which sees delivery only, and the function's own, which sees failures.
   * @default 2
   */
  readonly retries?: 0 | 1 | 2;
  /**
   * What the job works on. Beside these tables its role reaches what its source reads, its own control items, and nothing
   * else.
   */
  readonly access?: readonly TableAccess[];
  /** What its function's environment holds beside cronfence's own variables. No secrets: the template shows it. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Whether the job has alarms. @default true */
  readonly alarms?: boolean;
  /** Of the function and its schedule; at most 256 characters. */
  readonly description?: string;
}

/** A job's deployment, with the defaults filled in. */
export interface Deployment {
  /** Where the definition says nothing, what deploys it does. */
  readonly memoryMb?: number;
  readonly retries: 0 | 1 | 2;
  readonly access: readonly TableAccess[];
  readonly environment: Readonly<Record<string, string>>;
  readonly alarms: boolean;
  readonly description?: string;
}

export const deploymentOf = (options: DeploymentOptions): Deployment => ({
  ...(options.memory === undefined ? {} : { memoryMb: options.memory }),
  retries: options.retries ?? 2,
  access: options.access ?? [],
  environment: options.environment ?? {},
  alarms: options.alarms ?? true,
  ...(options.description === undefined ? {} : { description: options.description }),
});

/** https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html, of tables and indexes. */
const tableName = /^[A-Za-z0-9_.-]{3,255}$/;
const tableArn = /^arn:aws[a-z-]*:dynamodb:[a-z0-9-]+:\d{12}:table\/[A-Za-z0-9_.-]{3,255}$/;

export const accessShape = {
  table: textThat((table) => tableName.test(table) || tableArn.test(table)),
  index: optional(textThat((index) => tableName.test(index))),
  read: optional(trueOrFalse),
  write: optional(trueOrFalse),
};

/** https://docs.aws.amazon.com/lambda/latest/api/API_CreateFunction.html */
export const deploymentShape = {
  memory: optional(wholeNumber(128, 10_240)),
  retries: optional(oneOf(0, 1, 2)),
  access: optional(listOf(objectOf(accessShape))),
  environment: optional(is<Readonly<Record<string, string>>>(isRecord)),
  alarms: optional(trueOrFalse),
  description: optional(textThat(({ length }) => length >= 1 && length <= 256)),
};

/** What each option must be, for the error that refuses it. */
export const deploymentAllowed: Record<keyof typeof deploymentShape, string> = {
  memory: "a whole number of megabytes from 128 to 10240",
  retries: "0, 1 or 2",
  access:
    "a list of { table, index?, read?, write? }, table and index by their names (3 to 255 letters, digits, _, - and .) " +
    "or the table of another account or Region by its ARN, read and write true or false",
  environment: "an object with a text for each variable",
  alarms: "true or false",
  description: "a text of 1 to 256 characters",
};

/** What no schema says. The values of variables are left out: they may be anything. */
export const deploymentProblems = (given: Readonly<Record<string, unknown>>): string[] => [
  ...(Array.isArray(given.access) ? given.access.flatMap(accessProblems) : []),
  ...(isRecord(given.environment) ? Object.entries(given.environment).flatMap(variableProblems) : []),
];

const accessProblems = (entry: unknown, place: number): string[] => {
  if (!isRecord(entry)) return [];
  const { table, index, read, write } = entry;
  const name = `access.${place} (${JSON.stringify(table)})`;
  return [
    ...(read === true || write === true ? [] : [`${name} allows nothing: say read: true or write: true`]),
    ...(write === true && index !== undefined
      ? [`${name} has an index and write, and an index can only be read: give the table an entry of its own`]
      : []),
    ...(write === true && typeof table === "string" && tableArn.test(table)
      ? [
          `${name} is an ARN with write, and a commit can't write tables of another account or Region: ` +
            "name a table of the job's own by its plain name",
        ]
      : []),
  ];
};

/** https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html */
const variableProblems = ([name, value]: [string, unknown]): string[] => [
  ...(/^[A-Za-z][A-Za-z0-9_]+$/.test(name)
    ? []
    : [
        `environment has ${JSON.stringify(name)}, and a variable's name must be 2 or more letters, digits and _, a letter first`,
      ]),
  ...(typeof value === "string" ? [] : [`environment.${name} must be a text, and is a value of type ${typeof value}`]),
];
