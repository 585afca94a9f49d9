/**
 * Failures that can't hide: what AWS refused or did only in part, and user code didn't look at, makes the run fail.
 *
 * Guarantees: inside a run, each call of an observed client that was denied, and each entry of a batch call that failed
 * although the call itself succeeded, fails the run at its end, unless the same entry went through later in the run
 * (retrying what failed is how batch calls are meant to be used) or it is declared as expected.
 *
 * What it doesn't see: clients that aren't observed, and calls made after the run has ended.
 */
import { AsyncLocalStorage } from "node:async_hooks";

/** One kind of failure, as often as it occurred. */
export interface SilentFailure {
  /** Such as "S3 DeleteObjects". */
  readonly call: string;
  /** AWS's own code, such as "AccessDenied". */
  readonly code: string;
  readonly count: number;
}

export interface ObservedOptions {
  /** Failures that are no failures of the run. */
  readonly expected?: (failure: Omit<SilentFailure, "count">) => boolean;
}

/** What an SDK client (v3) has that this needs. */
interface Client {
  readonly middlewareStack: {
    add(
      middleware: never,
      options: { readonly step: "initialize"; readonly name: string; readonly override: true },
    ): void;
  };
}

type Next = (args: {
  readonly input: Record<string, unknown>;
}) => Promise<{ readonly output: Record<string, unknown> }>;
interface CallContext {
  readonly clientName?: string;
  readonly commandName?: string;
}

/**
 * Watches a client of the AWS SDK v3. Once per client, where it is made: `const s3 = observed(new S3Client({}))`.
 * Outside a run it changes nothing.
 */
export const observed = <Observed extends Client>(client: Observed, { expected }: ObservedOptions = {}): Observed => {
  const middleware = (next: Next, { clientName = "", commandName = "" }: CallContext) => {
    const call = `${clientName.replace(/Client$/, "")} ${commandName.replace(/Command$/, "")}`;
    return async (args: Parameters<Next>[0]) => {
      const watch = current.getStore();
      if (watch === undefined) return next(args);
      const note = (code: string, entry?: string) => {
        if (!expected?.({ call, code })) watch.note(call, code, entry);
      };
      try {
        const answer = await next(args);
        const batch = batchCalls[commandName];
        if (batch !== undefined) compare(batch, args.input, answer.output, note, (entry) => watch.clear(call, entry));
        return answer;
      } catch (error) {
        const code = deniedCode(error);
        if (code !== undefined) note(code);
        throw error;
      }
    };
  };
  client.middlewareStack.add(middleware as never, { step: "initialize", name: "cronfenceObserved", override: true });
  return client;
};

/** Whether this code runs inside a run, and not, say, while a web server starts that shares a module with the job. */
export const isScheduledRun = (): boolean => current.getStore() !== undefined;

/** What has failed in one run. */
export interface Watch {
  note(call: string, code: string, entry?: string): void;
  clear(call: string, entry: string): void;
  readonly failures: readonly SilentFailure[];
}

/** One for the process: bundling can load this module twice, once beside the job and once beside its client. */
const shared = globalThis as { [key: symbol]: AsyncLocalStorage<Watch> | undefined };
const place = Symbol.for("cronfence.watch");
const current: AsyncLocalStorage<Watch> = shared[place] ?? new AsyncLocalStorage();
shared[place] = current;

export const newWatch = (): Watch => {
  /** By call and code; entries of batch calls are kept, so that one that goes through later can be taken out. */
  const open = new Map<string, { call: string; code: string; entries: Set<string>; others: number }>();
  return {
    note: (call, code, entry) => {
      const key = `${call} ${code}`;
      const kind = open.get(key) ?? { call, code, entries: new Set(), others: 0 };
      if (entry === undefined) kind.others += 1;
      else kind.entries.add(entry);
      open.set(key, kind);
    },
    clear: (call, entry) => {
      for (const kind of open.values()) if (kind.call === call) kind.entries.delete(entry);
    },
    get failures() {
      return [...open.values()]
        .map(({ call, code, entries, others }) => ({ call, code, count: entries.size + others }))
        .filter(({ count }) => count > 0);
    },
  };
};

/** Runs `work` so that observed clients and `isScheduledRun` know it. */
export const watched = <Result>(watch: Watch, work: () => Result): Result => current.run(watch, work);

/** The same for what follows in this asynchronous context, for callers that can't wrap it. */
export const watchFromHere = (watch: Watch): void => current.enterWith(watch);

const deniedCode = (error: unknown): string | undefined => {
  const { name, $metadata } = error as { name?: string; $metadata?: { httpStatusCode?: number } };
  const denied = $metadata?.httpStatusCode === 403 || (name !== undefined && deniedNames.has(name));
  return denied ? (name ?? "AccessDenied") : undefined;
};

const deniedNames = new Set([
  "AccessDenied",
  "AccessDeniedException",
  "UnauthorizedOperation",
  "NotAuthorized",
  "AuthorizationError",
]);

/** How a batch call says which of its entries failed though it answers 200. */
interface BatchCall {
  readonly entries: (input: Record<string, unknown>) => readonly string[];
  readonly failed: (
    output: Record<string, unknown>,
    input: Record<string, unknown>,
  ) => readonly { readonly entry: string; readonly code: string }[];
}

const compare = (
  batch: BatchCall,
  input: Record<string, unknown>,
  output: Record<string, unknown>,
  note: (code: string, entry: string) => void,
  clear: (entry: string) => void,
): void => {
  for (const entry of batch.entries(input)) clear(entry);
  for (const { entry, code } of batch.failed(output, input)) note(code, entry);
};

type Entry = Record<string, unknown>;
const list = (value: unknown): readonly Entry[] => (Array.isArray(value) ? value : []);
/** The same for equal values of whatever the SDK takes; attributes may come back in another order. */
const identity = (value: unknown): string => {
  if (typeof value === "string") return JSON.stringify(value);
  // A bigint may come back as a number.
  if (typeof value !== "object" || value === null) return String(value);
  if (ArrayBuffer.isView(value))
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
  if (Array.isArray(value)) return `[${value.map(identity).join()}]`;
  if (value instanceof Set) return `{${[...value].map(identity).sort().join()}}`;
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return `{${fields
    .map(([name, field]) => `${JSON.stringify(name)}:${identity(field)}`)
    .sort()
    .join()}}`;
};

/** Answers that line up with the request's entries, each with an error code where it failed. */
const inOrder = (requested: string, answered: string, codeField: string): BatchCall => ({
  entries: (input) => list(input[requested]).map(identity),
  failed: (output, input) => {
    const entries = list(input[requested]);
    return list(output[answered]).flatMap((answer, index) =>
      answer[codeField] === undefined ? [] : [{ entry: identity(entries[index]), code: String(answer[codeField]) }],
    );
  },
});

/** SQS and SNS: failures name the entry by its id. */
const byId = (requested: string): BatchCall => ({
  entries: (input) => list(input[requested]).map(identity),
  failed: (output, input) =>
    list(output.Failed).map(({ Id, Code }) => ({
      entry: identity(list(input[requested]).find((entry) => entry.Id === Id) ?? Id),
      code: String(Code ?? "Failed"),
    })),
});

/** BatchWriteItem: what wasn't done comes back as it was sent. */
const unprocessed: BatchCall = {
  entries: (input) => tableEntries(input.RequestItems),
  failed: (output) => tableEntries(output.UnprocessedItems).map((entry) => ({ entry, code: "UnprocessedItems" })),
};
const tableEntries = (tables: unknown): string[] =>
  Object.entries((tables ?? {}) as Record<string, unknown>).flatMap(([table, entries]) =>
    list(entries).map((entry) => `${table} ${identity(entry)}`),
  );

/** S3: keys that weren't deleted. */
const objectName = ({ Key, VersionId }: Entry): string => identity([Key, VersionId || null]);
const deleteObjects: BatchCall = {
  entries: (input) =>
    list((input.Delete as Entry | undefined)?.Objects).map((object) => `${String(input.Bucket)} ${objectName(object)}`),
  failed: (output, input) =>
    list(output.Errors).map((error) => ({
      entry: `${String(input.Bucket)} ${objectName(error)}`,
      code: String(error.Code ?? "Error"),
    })),
};

/**
 * Documented under each operation's response syntax, such as
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html
 */
const batchCalls: Readonly<Record<string, BatchCall>> = {
  DeleteObjectsCommand: deleteObjects,
  SendMessageBatchCommand: byId("Entries"),
  DeleteMessageBatchCommand: byId("Entries"),
  ChangeMessageVisibilityBatchCommand: byId("Entries"),
  PublishBatchCommand: byId("PublishBatchRequestEntries"),
  PutEventsCommand: inOrder("Entries", "Entries", "ErrorCode"),
  PutRecordsCommand: inOrder("Records", "Records", "ErrorCode"),
  PutRecordBatchCommand: inOrder("Records", "RequestResponses", "ErrorCode"),
  BatchWriteItemCommand: unprocessed,
};
