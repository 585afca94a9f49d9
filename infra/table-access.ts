/**
 * A job's `access`, and what its source reads, as statements of its role. Writes are allowed inside transactions only, so that
 * whatever the job's code does with a client of its own, it writes many items or none, as its commits do.
 * https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html
 */
import type { Job, TableAccess } from "cronfence";
import { ownArn, type Statement, type Value } from "./template.ts";

export const tableAccessStatements = (job: Job): Statement[] => {
  const { access } = job.deployment;
  const tables = access.filter(({ index }) => index === undefined);
  const read = arnsOf(tables.filter((entry) => entry.read === true));
  const written = arnsOf(tables.filter((entry) => entry.write === true));
  const indexes = arnsOf(access.filter((entry) => entry.index !== undefined && entry.read === true));
  return [
    ...statement(
      "ReadTables",
      // A check in a commit changes nothing; a table's key is asked for by a scan, and by what names a write that can't be.
      ["BatchGetItem", "ConditionCheckItem", "DescribeTable", "GetItem", "Query", "Scan"].map(dynamo),
      read,
    ),
    ...statement("ReadIndexes", ["Query", "Scan"].map(dynamo), indexes),
    ...statement("DescribeTables", ["dynamodb:DescribeTable"], written),
    ...statement(
      "WriteTablesInTransactions",
      ["ConditionCheckItem", "DeleteItem", "PutItem", "UpdateItem"].map(dynamo),
      written,
      { "ForAnyValue:StringEquals": { "dynamodb:EnclosingOperation": ["TransactWriteItems"] } },
    ),
    ...sourceStatements(job),
  ];
};

const sourceStatements = (job: Job): Statement[] => {
  const { reads } = sourceOf(job) ?? {};
  if (reads === undefined) return [];
  // A scan goes by the table's key, which it asks for.
  const actions = reads.by === "query" ? ["Query"] : ["DescribeTable", "Scan"];
  return statement("ReadSource", actions.map(dynamo), arnsOf([reads]));
};

const sourceOf = ({ work }: Job) => (work.shape === "source" ? work.source : undefined);

/** The names of all tables that a job's definition names. */
export const tablesOf = (job: Job): string[] =>
  [...job.deployment.access, ...[sourceOf(job)?.reads ?? []].flat()].map(({ table }) => nameOf(table));

const nameOf = (table: string): string => table.replace(/^arn:.*:table\//, "");

const dynamo = (action: string): string => `dynamodb:${action}`;

const statement = (
  Sid: string,
  Action: readonly string[],
  Resource: readonly Value[],
  Condition?: Statement["Condition"],
): Statement[] =>
  Resource.length === 0
    ? []
    : [{ Sid, Effect: "Allow", Action, Resource, ...(Condition === undefined ? {} : { Condition }) }];

/** Each once, in the order of their names. */
const arnsOf = (entries: readonly Pick<TableAccess, "table" | "index">[]): Value[] =>
  [...new Set(entries.map(({ table, index }) => (index === undefined ? table : `${table}/index/${index}`)))]
    .sort()
    .map((path) => (path.startsWith("arn:") ? path : ownArn("dynamodb", `table/${path}`)));
