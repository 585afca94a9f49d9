/**
 * A DynamoDB client bound to the control table, with a limit on how long one request may take.
 *
 * The SDK has no such limit by default, and its `requestTimeout` alone only warns; a hung request would outlive the
 * lease. So each request carries an abort signal that ends it, whatever client it was given.
 */
import {
  type BatchGetItemCommand,
  DescribeTableCommand,
  type DynamoDBClient,
  type GetItemCommand,
  type PutItemCommand,
  type QueryCommand,
  type ScanCommand,
  type TransactWriteItem,
  type TransactWriteItemsCommand,
  type UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import { InvalidOptionsError, OutcomeUnknownError, StoreUnavailableError } from "../errors.ts";
import type { Budget } from "./control-store.ts";
import { type Settled, settle } from "./send.ts";
import { type KnownKeys, tableName } from "./writes.ts";

type Command =
  | BatchGetItemCommand
  | DescribeTableCommand
  | GetItemCommand
  | PutItemCommand
  | QueryCommand
  | ScanCommand
  | TransactWriteItemsCommand
  | UpdateItemCommand;

export interface Connection {
  readonly client: DynamoDBClient;
  readonly table: string;
  /** In milliseconds. */
  readonly requestTimeoutMs: number;
  /** Filled as keys are seen. */
  readonly knownKeys: KnownKeys;
}

/** Clients that are known to have a region. */
const regioned = new WeakSet<DynamoDBClient>();

/** Without a region the SDK fails before it sends, by an error that can't be told from a lost reply. So it is asked first. */
const requireRegion = async (client: DynamoDBClient): Promise<void> => {
  try {
    await client.config.region();
  } catch (cause) {
    throw Object.assign(new Error("no AWS region is set; set AWS_REGION", { cause }), { name: "RegionMissingError" });
  }
  regioned.add(client);
};

/** Sends one request; its answer, or whatever the SDK throws, within the request timeout. */
const sendOnce = async <T>(connection: Connection, command: Command): Promise<T> => {
  const { client, requestTimeoutMs } = connection;
  if (!regioned.has(client)) await requireRegion(client);
  // Not AbortSignal.timeout, which goes on after the answer and then makes an error for every request.
  const limit = new AbortController();
  const timer = setTimeout(
    () => limit.abort(new DOMException(`no answer within ${requestTimeoutMs} ms`, "TimeoutError")),
    requestTimeoutMs,
  );
  try {
    return (await client.send(command as GetItemCommand, { abortSignal: limit.signal })) as T;
  } finally {
    clearTimeout(timer);
  }
};

/** For work of many requests, of which each has as much time as the budget leaves now. */
export const forEachRequest = (budget: Budget): (() => Budget) => {
  const patienceMs = budget.until - budget.clock.now();
  return () => ({ ...budget, until: budget.clock.now() + patienceMs });
};

/** Sends a request until its outcome is known (see `settle`). */
export const sendUntilKnown = <T>(connection: Connection, command: Command, budget: Budget): Promise<Settled<T>> =>
  settle(() => sendOnce<T>(connection, command), budget);

/** Sends a request that only reads, so that trying again is always right. */
export const readUntilKnown = async <T>(
  connection: Connection,
  command: Command,
  budget: Budget,
  subject: string,
  operation: string,
): Promise<T> => {
  const settled = await sendUntilKnown<T>(connection, command, budget);
  if (settled.kind === "done") return settled.value;
  throw unavailable(connection, subject, operation, "error" in settled ? settled.error : undefined);
};

/** The error for an operation that got no usable answer: unknown where a try of it may have been applied. */
export const unanswered = (
  connection: Connection,
  job: string,
  operation: string,
  settled: { readonly doubt: boolean; readonly error: unknown },
): Error =>
  settled.doubt
    ? new OutcomeUnknownError(job, operation, { cause: settled.error })
    : unavailable(connection, `job "${job}"`, operation, settled.error);

const unavailable = (connection: Connection, subject: string, operation: string, cause: unknown): Error => {
  const name = (cause as { name?: string } | undefined)?.name;
  if (name !== "ResourceNotFoundException") return new StoreUnavailableError(subject, operation, { cause });
  return new StoreUnavailableError(
    `${subject}: a table doesn't exist (the control table is "${connection.table}"; ` +
      `"npx cronfence table create --table ${connection.table}" makes it)`,
    operation,
    { cause },
  );
};

/**
 * Forgets the keys of the tables that `actions` name: DynamoDB found a transaction invalid, perhaps for a write with a
 * wrong key, and that must not stand for the table's key from then on.
 */
export const forgetKeys = (connection: Connection, actions: readonly TransactWriteItem[]): void => {
  for (const action of actions) connection.knownKeys.delete(tableName(Object.values(action)[0]?.TableName) as string);
};

/** Learns the key attributes of tables that aren't known yet; a table that can't be described stays unknown. */
export const learnKeys = async (connection: Connection, tables: readonly string[]): Promise<void> => {
  for (const table of tables) {
    if (connection.knownKeys.has(table)) continue;
    try {
      const described = await sendOnce<{ Table?: { KeySchema?: { AttributeName?: string }[] } }>(
        connection,
        new DescribeTableCommand({ TableName: table }),
      );
      const names = described.Table?.KeySchema?.flatMap(({ AttributeName }) => AttributeName ?? []);
      if (names !== undefined) connection.knownKeys.set(table, names.sort());
    } catch {
      // Only a clearer message depends on it.
    }
  }
};

/** @throws InvalidOptionsError unless a lease of `ttlMs` outlasts a request that hangs, with room to renew. */
export const checkTtl = (ttlMs: number, requestTimeoutMs: number, subject: string): void => {
  if (ttlMs >= 3 * requestTimeoutMs) return;
  throw new InvalidOptionsError(subject, [
    `ttl is ${ttlMs} ms, and must be at least ${3 * requestTimeoutMs} ms: three times the request timeout (${requestTimeoutMs} ms), ` +
      "or one hanging request could outlive the lease",
  ]);
};
