/** Reading the control table. Reads that decide something are consistent ones. */
import { GetItemCommand, QueryCommand } from "@aws-sdk/client-dynamodb";
import { type Connection, forEachRequest, readUntilKnown } from "./connection.ts";
import type { ActPage, Budget, ControlState, CoveragePage, RunPage, RunRecord } from "./control-store.ts";
import {
  actKeysOf,
  controlKey,
  type Item,
  namesIn,
  readAct,
  readRecord,
  readState,
  runKey,
  runKeysOf,
  valuesOf,
} from "./items.ts";

export const readControl = async (
  connection: Connection,
  job: string,
  budget: Budget,
): Promise<ControlState | undefined> => {
  const item = await readControlItem(connection, job, budget);
  return item === undefined ? undefined : readState(job, item);
};

/** The same as it is kept. */
export const readControlItem = (connection: Connection, job: string, budget: Budget): Promise<Item | undefined> =>
  getItem(connection, controlKey(job), budget, `job "${job}"`);

export const readRun = async (
  connection: Connection,
  job: string,
  run: { startedAt: number; id: string },
  budget: Budget,
): Promise<RunRecord | undefined> => {
  const item = await getItem(connection, runKey(job, run), budget, `job "${job}"`);
  return item === undefined ? undefined : readRecord(item);
};

/** Whether there is an item with this key. */
export const isOnRecord = async (connection: Connection, key: Item, budget: Budget): Promise<boolean> =>
  (await getItem(connection, key, budget, `table "${connection.table}"`)) !== undefined;

const getItem = async (
  connection: Connection,
  key: Item,
  budget: Budget,
  subject: string,
): Promise<Item | undefined> => {
  const command = new GetItemCommand({ TableName: connection.table, Key: key, ConsistentRead: true });
  return (await readUntilKnown<{ Item?: Item }>(connection, command, budget, subject, "read")).Item;
};

/** A page of a job's run records, newest first. */
export const readRuns = async (
  connection: Connection,
  job: string,
  page: { readonly limit: number; readonly before?: string },
  budget: Budget,
): Promise<RunPage> => {
  const { items, next } = await readPage(connection, job, { ...runKeysOf(job), ...page, start: page.before }, budget);
  return { runs: items.map(readRecord), ...next };
};

/** A page of them, oldest first. */
export const readRunsSince = async (
  connection: Connection,
  job: string,
  { limit, from, after }: { readonly limit: number; readonly from: number; readonly after?: string },
  budget: Budget,
): Promise<RunPage> => {
  const keys = { ...runKeysOf(job), from: runsFrom(from) };
  const { items, next } = await readPage(connection, job, { ...keys, limit, start: after, ascending: true }, budget);
  return { runs: items.map(readRecord), ...next };
};

/** A page of them in brief: less to send, and less to decode. */
export const readCoverage = async (
  connection: Connection,
  job: string,
  { limit, from, after }: { readonly limit: number; readonly from: number; readonly after?: string },
  budget: Budget,
): Promise<CoveragePage> => {
  const keys = { ...runKeysOf(job), from: runsFrom(from) };
  const page = { ...keys, limit, start: after, ascending: true, projection: coverageAttributes } as const;
  const { items, next } = await readPage(connection, job, page, budget);
  return { runs: items.map(readRecord), ...next };
};

const coverageAttributes = "#id, #fence, #outcome, #startedAt, #endedAt, #ticks, #skipped, #completed, #nextTick";

const runsFrom = (from: number): string => `run#${new Date(Math.max(0, from)).toISOString()}`;

/**
 * The runs whose id begins with `beginning`, newest first. DynamoDB looks through the records and sends only these; a query
 * looks through at most 1 MB, so that there is one for every 2,000 records or so.
 * https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Query.html
 */
export const readRunsNamed = async (
  connection: Connection,
  job: string,
  beginning: string,
  most: number,
  budget: Budget,
): Promise<readonly RunRecord[]> => {
  const runs: RunRecord[] = [];
  const each = forEachRequest(budget);
  const filter = { condition: "begins_with(#id, :id)", values: { ":id": beginning } };
  let start: string | undefined;
  do {
    const { items, next } = await readPage(connection, job, { ...runKeysOf(job), start, filter }, each());
    for (const item of items) {
      const record = readRecord(item);
      runs.push(record);
      // No other run has the whole of it.
      if (record.id === beginning) return [record];
    }
    start = next.next;
  } while (start !== undefined && runs.length < most);
  return runs.slice(0, most);
};

/** A page of what operators did to a job, newest first. */
export const readActs = async (
  connection: Connection,
  job: string,
  page: { readonly limit: number; readonly before?: string },
  budget: Budget,
): Promise<ActPage> => {
  const { items, next } = await readPage(connection, job, { ...actKeysOf(job), ...page, start: page.before }, budget);
  return { acts: items.map(readAct), ...next };
};

/** A page of a job's items whose sort keys lie in a range, newest first unless it is to be ascending. */
const readPage = async (
  connection: Connection,
  job: string,
  page: {
    readonly pk: string;
    readonly from: string;
    readonly through: string;
    readonly limit?: number;
    readonly start?: string | undefined;
    readonly ascending?: true;
    readonly projection?: string;
    readonly filter?: { readonly condition: string; readonly values: Record<string, unknown> };
  },
  budget: Budget,
): Promise<{ items: Item[]; next: { next?: string } }> => {
  const condition = "#pk = :pk AND #sk BETWEEN :from AND :through";
  const { filter } = page;
  const answer = await readUntilKnown<{ Items?: Item[]; LastEvaluatedKey?: Item }>(
    connection,
    new QueryCommand({
      TableName: connection.table,
      KeyConditionExpression: condition,
      ExpressionAttributeNames: namesIn(condition, filter?.condition, page.projection),
      ExpressionAttributeValues: valuesOf({
        ":pk": page.pk,
        ":from": page.from,
        ":through": page.through,
        ...filter?.values,
      }),
      ...(filter === undefined ? {} : { FilterExpression: filter.condition }),
      ...(page.projection === undefined ? {} : { ProjectionExpression: page.projection }),
      ...(page.start === undefined ? {} : { ExclusiveStartKey: { pk: { S: page.pk }, sk: { S: page.start } } }),
      ...(page.limit === undefined ? {} : { Limit: page.limit }),
      ScanIndexForward: page.ascending ?? false,
      ConsistentRead: true,
    }),
    budget,
    `job "${job}"`,
    "read of its history",
  );
  const next = answer.LastEvaluatedKey?.sk?.S;
  return { items: answer.Items ?? [], next: next === undefined ? {} : { next } };
};
