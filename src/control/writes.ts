/**
 * What a job may write in one commit, and the check of it. Everything is refused before anything is sent, by an error
 * that names the write by its index and the limit, except for one limit that can't be seen from here: two `Put`s of one
 * item in a table whose key attributes aren't known yet. DynamoDB refuses such a transaction as a whole, and
 * `sameItemRefusal` then gives the same error.
 */
import type { AttributeValue, TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { marshall, type NativeAttributeValue } from "@aws-sdk/util-dynamodb";
import { CommitRefusedError } from "../errors.ts";
import { type Json, notJson } from "../json.ts";

type Values = Record<string, NativeAttributeValue>;
type Item = Record<string, AttributeValue>;

interface Conditional {
  readonly ConditionExpression?: string | undefined;
  readonly ExpressionAttributeNames?: Record<string, string> | undefined;
  readonly ExpressionAttributeValues?: Values | undefined;
  /** `ALL_OLD` puts the item as it stood into the `WriteRejectedError`. */
  readonly ReturnValuesOnConditionCheckFailure?: "ALL_OLD" | "NONE" | undefined;
}

/**
 * One entry of a transaction with native JavaScript values, as the SDK's document client and the libraries built on it
 * produce them. Exactly one of the four is given.
 */
export interface Write {
  readonly Put?:
    | (Conditional & { readonly TableName: string | undefined; readonly Item: Values | undefined })
    | undefined;
  readonly Update?:
    | (Conditional & {
        readonly TableName: string | undefined;
        readonly Key: Values | undefined;
        readonly UpdateExpression: string | undefined;
      })
    | undefined;
  readonly Delete?:
    | (Conditional & { readonly TableName: string | undefined; readonly Key: Values | undefined })
    | undefined;
  readonly ConditionCheck?:
    | (Conditional & {
        readonly TableName: string | undefined;
        readonly Key: Values | undefined;
        readonly ConditionExpression: string | undefined;
      })
    | undefined;
}

/** Writes that were checked and are ready to send. */
export interface PreparedWrites {
  readonly actions: readonly TransactWriteItem[];
  readonly bytes: number;
  /** Which items are touched, as far as the tables' keys are known. */
  readonly touched: readonly string[];
}

/** https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html: 100, and one is ours. */
export const mostActions = 99;
/** The finish takes a second one, for the run's record. */
export const mostActionsWithFinish = mostActions - 1;
/** 4 MB in all the items of a transaction. */
export const mostBytes = 4 * 1024 * 1024;
/** https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html */
const largestItemBytes = 400 * 1024;
const largestWatermarkBytes = 8 * 1024;

const kinds = ["Put", "Update", "Delete", "ConditionCheck"] as const;

/** The key attributes of tables, as far as they have been seen. Filled by every write that names a key. */
export type KnownKeys = Map<string, readonly string[]>;

/**
 * @throws CommitRefusedError for more than 99 actions, over 4 MB, an item over 400 KB, one item twice, a write to the
 * control table, an entry that isn't a write, a value DynamoDB can't hold, or a watermark that isn't JSON or over 8 KB.
 */
export const prepareWrites = (
  writes: readonly Write[],
  watermark: Json | undefined,
  controlTable: string,
  knownKeys: KnownKeys,
): PreparedWrites => {
  if (!Array.isArray(writes)) {
    throw new CommitRefusedError(`writes must be an array of TransactWriteItems entries, not ${describe(writes)}`);
  }
  if (writes.length > mostActions) {
    throw new CommitRefusedError(
      `${writes.length} writes, and one commit takes at most ${mostActions} (write ${mostActions} is the first too many): ` +
        "a DynamoDB transaction has 100 actions and one of them is the lease's",
      mostActions,
    );
  }
  refuseWatermark(watermark);
  let bytes = 0;
  const prepared: PreparedWrite[] = [];
  for (const [index, write] of writes.entries()) {
    const one = prepareOne(write, index, controlTable);
    bytes += one.bytes;
    if (bytes > mostBytes) {
      throw new CommitRefusedError(
        `write ${index} brings the commit to ${bytes} bytes, and one transaction takes at most ${mostBytes} (4 MB)`,
        index,
      );
    }
    if (one.key !== undefined && !knownKeys.has(one.table)) knownKeys.set(one.table, Object.keys(one.key).sort());
    prepared.push(one);
  }
  const touched = refuseSameItem(prepared, knownKeys);
  return { actions: prepared.map(({ action }) => action), bytes, touched };
};

export const noWrites: PreparedWrites = { actions: [], bytes: 0, touched: [] };

/** Several lots of writes that fit one transaction, in order. */
export const joinWrites = (lots: readonly PreparedWrites[]): PreparedWrites => ({
  actions: lots.flatMap(({ actions }) => actions),
  bytes: lots.reduce((sum, { bytes }) => sum + bytes, 0),
  touched: lots.flatMap(({ touched }) => touched),
});

const refuseWatermark = (watermark: Json | undefined): void => {
  if (watermark === undefined) return;
  const problem = notJson(watermark);
  if (problem !== undefined) {
    throw new CommitRefusedError(
      `the watermark isn't JSON: ${problem}; use plain objects, arrays, strings and numbers`,
    );
  }
  const bytes = Buffer.byteLength(JSON.stringify(watermark));
  if (bytes > largestWatermarkBytes) {
    throw new CommitRefusedError(
      `the watermark has ${bytes} bytes as JSON, and at most ${largestWatermarkBytes} (8 KB) are allowed`,
    );
  }
};

interface PreparedWrite {
  readonly action: TransactWriteItem;
  readonly table: string;
  readonly bytes: number;
  readonly key?: Item;
  readonly item?: Item;
}

const prepareOne = (write: Write, index: number, controlTable: string): PreparedWrite => {
  const given = kinds.filter((kind) => (write?.[kind] ?? undefined) !== undefined);
  const kind = given[0];
  if (kind === undefined || given.length > 1) {
    throw new CommitRefusedError(
      `write ${index} must have exactly one of ${kinds.join(", ")}, and has ${given.join(" and ") || describe(write)}`,
      index,
    );
  }
  const { Key, Item, ExpressionAttributeValues, ...rest } = write[kind] as Conditional & {
    TableName?: string;
    Key?: Values;
    Item?: Values;
  };
  const table = tableName(rest.TableName);
  if (table === undefined)
    throw new CommitRefusedError(`write ${index} (${kind}) names no table: TableName is missing`, index);
  if (table === tableName(controlTable)) {
    throw new CommitRefusedError(
      `write ${index} (${kind}) goes to "${controlTable}", the control table, which only cronfence writes`,
      index,
    );
  }
  const target = kind === "Put" ? Item : Key;
  if (target === undefined || target === null || typeof target !== "object") {
    throw new CommitRefusedError(`write ${index} (${kind}) has no ${kind === "Put" ? "Item" : "Key"}`, index);
  }
  const item = toAttributes(target, index, kind);
  const values = ExpressionAttributeValues && toAttributes(ExpressionAttributeValues, index, kind);
  const itemBytes = sizeOf(item);
  const valueBytes = kind === "Update" && values ? sizeOfValues(values) : 0;
  // An Update's result can't be known here, but it is no smaller than its key and the largest value it sets.
  if (itemBytes > largestItemBytes || valueBytes > mostBytes) {
    throw new CommitRefusedError(
      `write ${index} (${kind}) has an item of ${Math.max(itemBytes, valueBytes)} bytes, and DynamoDB takes at most ${largestItemBytes} (400 KB)`,
      index,
    );
  }
  // Values that are small together are small each.
  for (const [name, value] of valueBytes > largestItemBytes ? Object.entries(values as Item) : []) {
    if (sizeOfValue(value) <= largestItemBytes) continue;
    throw new CommitRefusedError(
      `write ${index} (Update) sets ${name} to a value of ${sizeOfValue(value)} bytes, and an item has at most ${largestItemBytes} (400 KB)`,
      index,
    );
  }
  const body = {
    ...rest,
    ...(kind === "Put" ? { Item: item } : { Key: item }),
    ...(values && { ExpressionAttributeValues: values }),
  };
  return {
    action: { [kind]: body } as TransactWriteItem,
    table,
    bytes: itemBytes + valueBytes,
    ...(kind === "Put" ? { item } : { key: item }),
  };
};

const toAttributes = (values: Values, index: number, kind: string): Item => {
  try {
    const item = marshall(values) as Item;
    refuseLostAttribute(item);
    return item;
  } catch (error) {
    throw new CommitRefusedError(
      `write ${index} (${kind}) has a value that DynamoDB can't hold: ${(error as Error).message}`,
      index,
      { cause: error },
    );
  }
};

/** The SDK takes an attribute called `__proto__` for the object's prototype, and would leave it out without a word. */
const refuseLostAttribute = (item: Item): void => {
  if (Object.getPrototypeOf(item) !== Object.prototype) throw new Error("an attribute can't be called __proto__");
  for (const name of Object.keys(item)) refuseLostIn(item[name] as AttributeValue);
};

const refuseLostIn = ({ M, L }: AttributeValue): void => {
  if (M !== undefined) refuseLostAttribute(M);
  if (L !== undefined) L.forEach(refuseLostIn);
};

const refuseSameItem = (
  prepared: readonly Pick<PreparedWrite, "table" | "key" | "item">[],
  knownKeys: KnownKeys,
): string[] => {
  const seen = new Map<string, number>();
  for (const [index, { table, key, item }] of prepared.entries()) {
    const attributes = knownKeys.get(table);
    if (attributes === undefined) continue;
    const source = (key ?? item) as Item;
    const identity = JSON.stringify([table, ...attributes.map((name) => source[name] ?? null)], asText);
    const earlier = seen.get(identity);
    if (earlier !== undefined) throw sameItem(earlier, index, table);
    seen.set(identity, index);
  }
  return [...seen.keys()];
};

const asText = (_key: string, value: unknown) =>
  value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value;

const sameItem = (earlier: number, index: number, table: string) =>
  new CommitRefusedError(
    `write ${index} touches the same item of "${table}" as write ${earlier}, and a transaction may touch an item only once: merge them`,
    index,
  );

/** The error for a transaction that DynamoDB refused because it touches one item twice, once all keys are known. */
export const sameItemRefusal = (
  actions: readonly TransactWriteItem[],
  knownKeys: KnownKeys,
): CommitRefusedError | undefined => {
  const targets = actions.map((action) => {
    const { TableName, Key, Item } = Object.values(action)[0] as { TableName: string; Key?: Item; Item?: Item };
    return { table: tableName(TableName) as string, ...(Key ? { key: Key } : {}), ...(Item ? { item: Item } : {}) };
  });
  try {
    refuseSameItem(targets, knownKeys);
    return undefined;
  } catch (error) {
    return error as CommitRefusedError;
  }
};

/** A table's name from its name or ARN. */
export const tableName = (nameOrArn: unknown): string | undefined =>
  typeof nameOrArn !== "string" || nameOrArn === ""
    ? undefined
    : nameOrArn.startsWith("arn:")
      ? nameOrArn.replace(/^arn:.*:table\/([^/]+).*$/, "$1")
      : nameOrArn;

/**
 * How DynamoDB counts an item's size, as far as it is documented:
 * https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
 */
const sizeOf = (item: Item): number => {
  let bytes = 0;
  for (const name of Object.keys(item)) bytes += Buffer.byteLength(name) + sizeOfValue(item[name] as AttributeValue);
  return bytes;
};

const sizeOfValues = (values: Item): number => {
  let bytes = 0;
  for (const name of Object.keys(values)) bytes += sizeOfValue(values[name] as AttributeValue);
  return bytes;
};

const sizeOfValue = (value: AttributeValue): number => {
  if (value.S !== undefined) return Buffer.byteLength(value.S);
  if (value.N !== undefined) return Math.ceil(value.N.length / 2) + 1;
  if (value.B !== undefined) return value.B.byteLength;
  if (value.M !== undefined) return 3 + Object.keys(value.M).length + sizeOf(value.M);
  if (value.L !== undefined) return value.L.reduce((sum, entry) => sum + 1 + sizeOfValue(entry), 3);
  if (value.SS !== undefined) return value.SS.reduce((sum, entry) => sum + Buffer.byteLength(entry), 0);
  if (value.NS !== undefined) return value.NS.reduce((sum, entry) => sum + Math.ceil(entry.length / 2) + 1, 0);
  if (value.BS !== undefined) return value.BS.reduce((sum, entry) => sum + entry.byteLength, 0);
  return 1;
};

const describe = (value: unknown): string =>
  value === null
    ? "null"
    : Array.isArray(value)
      ? "an array"
      : typeof value === "object"
        ? `an object with ${Object.keys(value).join(", ") || "nothing"}`
        : typeof value;
