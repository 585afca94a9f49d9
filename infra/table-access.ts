/**
 * A job's `access` as statements of its role. Writes are allowed inside transactions only, so that whatever the job's code
 * does with a client of its own, it can't write where no fence is checked.
 * https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html
 */
import type { TableAccess } from "cronfence";
import { ownArn, type Statement, type Value } from "./template.ts";

export const tableAccessStatements = (access: readonly TableAccess[]): Statement[] => {
  const tables = access.filter(({ index }) => index === undefined);
  const read = arnsOf(tables.filter((entry) => entry.read === true));
  const written = arnsOf(tables.filter((entry) => entry.write === true));
  const indexes = arnsOf(access.filter((entry) => entry.index !== undefined && entry.read === true));
  return [
    // A table's key is asked for by `scanAll`, and for the message that names a write which can't be.
    ...statement("DescribeTables", ["dynamodb:DescribeTable"], arnsOf(tables)),
    ...statement(
      "ReadTables",
      // The last is a check in a commit, which changes nothing.
      ["BatchGetItem", "GetItem", "Query", "Scan", "ConditionCheckItem"].map(dynamo),
      read,
    ),
    ...statement("ReadIndexes", ["Query", "Scan"].map(dynamo), indexes),
    ...statement(
      "WriteTablesInTransactions",
      ["ConditionCheckItem", "DeleteItem", "PutItem", "UpdateItem"].map(dynamo),
      written,
      { "ForAnyValue:StringEquals": { "dynamodb:EnclosingOperation": ["TransactWriteItems"] } },
    ),
  ];
};

/** The name of the table that an entry is for. */
export const tableNameOf = ({ table }: TableAccess): string => table.replace(/^arn:.*:table\//, "");

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
const arnsOf = (entries: readonly TableAccess[]): Value[] =>
  [...new Set(entries.map(({ table, index }) => (index === undefined ? table : `${table}/index/${index}`)))]
    .sort()
    .map((path) => (path.startsWith("arn:") ? path : ownArn("dynamodb", `table/${path}`)));
