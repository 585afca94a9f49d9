/**
 * What a trial's requests have written to users' tables: by cronfence's commits, each counted once however often it was sent, and
 * past them, by clients of the job's own.
 */
import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import type { ProxiedRequest } from "../fault-proxy.ts";
import type { TableDefinition } from "../tables.ts";
import { keyText, type RawItem } from "./drilled-tables.ts";
import { controlTable, isOwnRequest } from "./ground.ts";
import type { Machine } from "./machine.ts";

/** A write that no fence stands behind. */
export interface UnfencedWrite {
  /** Such as "PutItem". */
  readonly operation: string;
  readonly table: string;
  /** The item by its key, where the request says. */
  readonly key: string;
}

export const writesOf = (
  made: readonly { readonly machine: Machine; readonly request: ProxiedRequest }[],
  strays: readonly ProxiedRequest[],
  tables: readonly TableDefinition[],
  job: string,
): { readonly writes: Map<string, number>; readonly unfenced: UnfencedWrite[] } => {
  const writes = new Map<string, number>();
  const unfenced: UnfencedWrite[] = [];
  const tokens = new Set<string>();
  for (const request of [...made.map((each) => each.request), ...strays]) {
    if (isOwnRequest(request)) {
      const token = request.body?.ClientRequestToken;
      const isCommit = request.operation === "TransactWriteItems" && request.applied && touchesControl(request, job);
      if (!isCommit || tokens.has(token)) continue;
      tokens.add(token);
      for (const { table, key } of itemsIn(request, tables)) {
        const name = `${table} ${key}`;
        writes.set(name, (writes.get(name) ?? 0) + 1);
      }
    } else {
      for (const { table, key } of itemsIn(request, tables))
        unfenced.push({ operation: request.operation, table, key });
    }
  }
  return { writes, unfenced };
};

const touchesControl = ({ body }: ProxiedRequest, job: string): boolean =>
  actionsOf(body).some(([, { TableName, Key }]) => TableName === controlTable && Key?.pk?.S === `job#${job}`);

interface Action {
  readonly TableName?: string;
  readonly Key?: Record<string, AttributeValue & { S?: string }>;
  readonly Item?: RawItem;
}

const actionsOf = (body: { TransactItems?: readonly Record<string, Action>[] } | undefined): [string, Action][] =>
  (body?.TransactItems ?? []).flatMap((entry) => Object.entries(entry));

interface WrittenItem {
  readonly table: string;
  readonly key: string;
}

/** The items that a request writes, but those of the control table. */
const itemsIn = (request: ProxiedRequest, tables: readonly TableDefinition[]): WrittenItem[] =>
  writtenBy(request)
    .filter(({ TableName }) => TableName !== controlTable)
    .map(({ TableName = "?", Key, Item }) => {
      const definition = tables.find(({ name }) => name === TableName);
      const raw = Key ?? Item;
      const key = definition === undefined || raw === undefined ? "" : keyText(definition.key, raw);
      return { table: TableName, key };
    });

const writtenBy = ({ operation, body }: ProxiedRequest): readonly Action[] => {
  if (["PutItem", "UpdateItem", "DeleteItem"].includes(operation)) return [body];
  if (operation === "TransactWriteItems") {
    return actionsOf(body).flatMap(([kind, action]) => (kind === "ConditionCheck" ? [] : [action]));
  }
  if (operation === "BatchWriteItem") {
    type Batches = Record<string, readonly Record<string, Action>[]>;
    return Object.entries((body?.RequestItems ?? {}) as Batches).flatMap(([TableName, entries]) =>
      entries.flatMap((entry) => Object.values(entry).map((action) => ({ ...action, TableName }))),
    );
  }
  return statementsIn(operation, body).flatMap((statement) => {
    const [, table] = /^\s*(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+"?([A-Za-z0-9_.-]+)/i.exec(statement) ?? [];
    return table === undefined ? [] : [{ TableName: table }];
  });
};

/** PartiQL: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.html */
const statementsIn = (operation: string, body: Record<string, unknown> | undefined): string[] => {
  if (operation === "ExecuteStatement") return [String(body?.Statement)];
  const list =
    operation === "ExecuteTransaction"
      ? body?.TransactStatements
      : operation === "BatchExecuteStatement"
        ? body?.Statements
        : [];
  return ((list ?? []) as { Statement?: unknown }[]).map(({ Statement }) => String(Statement));
};
