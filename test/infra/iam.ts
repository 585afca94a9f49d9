/**
 * Whether a role's statements allow a request, as IAM judges it: what no statement allows is refused, and what one denies, too.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
 */
import type { Template } from "./cfn-template.ts";

export interface Request {
  readonly action: string;
  readonly resource: string;
  /** By condition key; a key that the request doesn't have is left out. */
  readonly context?: Readonly<Record<string, readonly string[]>>;
}

/** @param statements with all functions of CloudFormation worked out */
export const isAllowed = (statements: readonly Template[], request: Request): boolean => {
  const matching = statements.filter((statement) => matches(statement, request));
  return matching.some(({ Effect }) => Effect === "Allow") && matching.every(({ Effect }) => Effect !== "Deny");
};

const matches = ({ Action, Resource, Condition }: Template, { action, resource, context = {} }: Request): boolean =>
  [Action].flat().some((pattern: string) => isLike(action, pattern)) &&
  [Resource].flat().some((pattern: string) => isLike(resource, pattern)) &&
  Object.entries(Condition ?? {}).every(([operator, keys]) =>
    Object.entries(keys as object).every(([key, wanted]) => isMet(operator, context[key], [wanted].flat())),
  );

const isMet = (operator: string, values: readonly string[] | undefined, wanted: readonly string[]): boolean => {
  if (operator === "Null") return (values === undefined) === (wanted[0] === "true");
  // True of a key that isn't there.
  if (operator === "ForAllValues:StringEquals") return (values ?? []).every((value) => wanted.includes(value));
  if (operator === "ForAnyValue:StringEquals") return (values ?? []).some((value) => wanted.includes(value));
  if (operator === "StringEquals") return values?.every((value) => wanted.includes(value)) === true;
  throw new Error(`${operator} isn't judged here`);
};

const isLike = (text: string, pattern: string): boolean =>
  new RegExp(
    `^${pattern
      .split("*")
      .map((part) => part.replace(/[.\\^$+?()[\]{}|]/g, "\\$&"))
      .join(".*")}$`,
  ).test(text);

interface DynamoRequest {
  readonly operation: string;
  readonly body: Template;
}

/** What DynamoDB asks IAM for a request: each action of a transaction by itself. */
export const requestsOf = ({ operation, body }: DynamoRequest, arnOf: (table: string) => string): Request[] => {
  const one = (action: string, entry: Template, context: Record<string, readonly string[]> = {}): Request => {
    const key = entry.Key ?? entry.Item;
    const leading = key?.pk?.S ?? entry.ExpressionAttributeValues?.[":pk"]?.S;
    return {
      action: `dynamodb:${action}`,
      resource: `${arnOf(entry.TableName)}${entry.IndexName === undefined ? "" : `/index/${entry.IndexName}`}`,
      context: { ...context, ...(leading === undefined ? {} : { "dynamodb:LeadingKeys": [leading] }) },
    };
  };
  if (operation === "TransactWriteItems") {
    return body.TransactItems.map((item: Template) => {
      const [kind, entry] = Object.entries(item)[0] as [string, Template];
      return one(kind === "ConditionCheck" ? "ConditionCheckItem" : `${kind}Item`, entry, {
        "dynamodb:EnclosingOperation": ["TransactWriteItems"],
      });
    });
  }
  if (operation === "BatchGetItem") {
    return Object.entries(body.RequestItems as Template).map(([table, { Keys }]: [string, Template]) => ({
      action: "dynamodb:BatchGetItem",
      resource: arnOf(table),
      context: { "dynamodb:LeadingKeys": Keys.map(({ pk }: Template) => pk.S) },
    }));
  }
  return [one(operation, body)];
};
