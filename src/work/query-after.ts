/**
 * Items of one partition of a DynamoDB table or index, in the order of its sort key.
 *
 * The cursor is the sort key, so it must be unique within the partition (put the item's id behind the time), or `key`
 * must name the table's key attributes, which then tell equal sort keys apart.
 *
 * Late rows: an index lags, and a writer's clock may be behind, so that a row can appear *below* a cursor that has moved
 * on; it would never be read. `settle` keeps the cursor that far behind the present.
 */
import type { Key, KeyValue, Page, PageRequest, TableReader } from "../control/table-reader.ts";
import { type Duration, milliseconds } from "../duration.ts";
import { InvalidOptionsError, SourceError } from "../errors.ts";
import type { Json } from "../json.ts";
import { unknownOption } from "../unknown-option.ts";
import type { Source } from "./source.ts";

/** How the sort key begins with a time, so that only rows of the past are read. */
export type SortTime = "iso" | "milliseconds" | "seconds" | "none";

export interface QueryAfterOptions {
  readonly table: string;
  /** A global or local secondary index; without one the table itself is read, consistently. */
  readonly index?: string;
  /** The partition key attribute and its value, such as `{ shop: "eu" }`. */
  readonly partition: Readonly<Record<string, KeyValue>>;
  /** The sort key attribute. */
  readonly sort: string;
  /**
   * The sort key begins with a time of this form (`iso`: ISO 8601 in UTC, as `toISOString` gives it), and only rows
   * whose time has come are read. `none`: all rows are.
   * @default "iso"
   */
  readonly time?: SortTime;
  /**
   * How far behind the present to stay: longer than the index lags and writers' clocks differ.
   * @default 0
   */
  readonly settle?: Duration;
  /** The table's key attributes, where the sort key alone isn't unique within the partition. */
  readonly key?: readonly string[];
  /**
   * Items per page.
   * @default 1000
   */
  readonly pageSize?: number;
}

/**
 * A source of the items after the watermark.
 * @throws InvalidOptionsError naming every option that can't be accepted.
 */
export const queryAfter = <Item = Record<string, unknown>>(options: QueryAfterOptions): Source<Item> => {
  refuseOptions("queryAfter", options);
  return orderedQuery("queryAfter", options);
};

/** What `queryAfter` and `dueItems` share: reading a partition in the order of its sort key. */
export const orderedQuery = <Item>(kind: string, options: QueryAfterOptions): Source<Item> => {
  const { table, index, partition, sort, key = [], time = "iso", pageSize = 1_000 } = options;
  const settleMs = options.settle === undefined ? 0 : (milliseconds(options.settle) ?? 0);
  const [attribute, value] = Object.entries(partition)[0] as [string, KeyValue];
  const name = `${kind} on ${index === undefined ? table : `${table}/${index}`}`;
  const tied = key.length > 0;
  const where = { table, ...(index === undefined ? {} : { index }), partition: { name: attribute, value }, sort };
  const cursorOf = (item: Readonly<Record<string, unknown>>) =>
    tied ? keyOf(item, [attribute, sort, ...key]) : (item[sort] as KeyValue);
  /** Everything after the cursor whose time has come; the cursor's own item is among it unless `key` tells it apart. */
  const after = (cursor: Json | undefined, now: number): Omit<PageRequest, "limit"> => {
    const through = boundAt(now - settleMs, time);
    return {
      ...where,
      ...(through === undefined ? {} : { through }),
      ...(cursor === undefined ? {} : tied ? { afterKey: cursor as Key } : { from: cursor as KeyValue }),
    };
  };
  /** The clock was set back, or `settle` made longer: DynamoDB refuses to start behind the last item that it may give. */
  const isPast = ({ through, afterKey }: Omit<PageRequest, "limit">): boolean =>
    through !== undefined && afterKey !== undefined && (afterKey[sort] as KeyValue) > through;
  /**
   * A page whose cursors are sort keys, and so must be unique: items that share one would be parted by the end of a page,
   * and the second never be read. So one item more is looked at than is taken, as well as the cursor's own, which BETWEEN
   * includes.
   */
  const untied = ({ items, done }: Page, from: KeyValue | undefined, limit: number): Page => {
    const fresh = items.filter((item) => item[sort] !== from);
    // A page of 1 MB may end before it has that many.
    const taken = fresh.length > limit ? limit : done || fresh.length < 2 ? fresh.length : fresh.length - 1;
    const twice = items.find((item, at) => at > 0 && item[sort] === items[at - 1]?.[sort]);
    if (twice !== undefined) throw notUnique(name, twice[sort] as KeyValue);
    return { items: fresh.slice(0, taken), done: done && taken === fresh.length };
  };
  return {
    name,
    reads: { table, ...(index === undefined ? {} : { index }), by: "query" },
    pageSize,
    read: async ({ after: cursor, limit, budget, tables }) => {
      const request = after(cursor, budget.clock.now());
      if (isPast(request)) return { items: [], done: true };
      const reader = readerOf(name, tables);
      const page = tied
        ? await reader.query({ ...request, limit }, budget)
        : untied(
            await reader.query({ ...request, limit: limit + (request.from === undefined ? 1 : 2) }, budget),
            request.from,
            limit,
          );
      return { items: page.items.map((item) => ({ item: item as Item, cursor: cursorOf(item) })), done: page.done };
    },
    readOne: async (cursor, { budget, tables }) => {
      const at = (tied ? (cursor as Key)[sort] : cursor) as KeyValue;
      const request = { ...where, from: at, through: at, limit: pageSize };
      const { items } = await readerOf(name, tables).query(request, budget);
      const wanted = JSON.stringify(cursor);
      return items.find((item) => JSON.stringify(cursorOf(item)) === wanted) as Item | undefined;
    },
    left: async ({ after: cursor, budget, tables }) => {
      const request = after(cursor, budget.clock.now());
      const { count, more } = await readerOf(name, tables).count(request, budget);
      const others = request.from === undefined ? count : Math.max(0, count - 1);
      return more ? `at least ${others} items` : `${others} items`;
    },
  };
};

const notUnique = (name: string, cursor: KeyValue): SourceError =>
  new SourceError(
    name,
    `several items have the sort key ${JSON.stringify(cursor)}, which must be unique; name the table's key attributes in "key"`,
  );

export const readerOf = (name: string, tables: TableReader | undefined): TableReader => {
  if (tables === undefined) throw new SourceError(name, "this run's store has no DynamoDB tables to read");
  return tables;
};

/** The latest sort key that is read, so that the time it begins with isn't after `now`. */
const boundAt = (now: number, time: SortTime): KeyValue | undefined => {
  if (time === "none") return undefined;
  if (time === "milliseconds") return now;
  if (time === "seconds") return Math.floor(now / 1_000);
  return new Date(now).toISOString();
};

const keyOf = (item: Readonly<Record<string, unknown>>, attributes: readonly string[]): Key =>
  Object.fromEntries(attributes.map((attribute) => [attribute, item[attribute] as KeyValue]));

const times: readonly SortTime[] = ["iso", "milliseconds", "seconds", "none"];
const known = ["table", "index", "partition", "sort", "time", "settle", "key", "pageSize"];

/** @throws InvalidOptionsError naming every option of `kind` that can't be accepted. */
export const refuseOptions = (kind: string, options: QueryAfterOptions): void => {
  const problems = Object.keys(options ?? {})
    .filter((option) => !known.includes(option))
    .map((option) => unknownOption(option, known));
  const { table, index, partition, sort, time, settle, key, pageSize } = options ?? {};
  const isName = (text: unknown) => typeof text === "string" && text !== "";
  if (!isName(table)) problems.push(`table is ${JSON.stringify(table)}, and must be a table's name`);
  if (index !== undefined && !isName(index))
    problems.push(`index is ${JSON.stringify(index)}, and must be an index's name`);
  if (!isName(sort)) problems.push(`sort is ${JSON.stringify(sort)}, and must be the sort key attribute's name`);
  const values = typeof partition === "object" && partition !== null ? Object.values(partition) : [];
  if (values.length !== 1 || !["string", "number"].includes(typeof values[0])) {
    problems.push(
      `partition is ${JSON.stringify(partition)}, and must be one attribute with its value, such as { shop: "eu" }`,
    );
  }
  if (time !== undefined && !times.includes(time)) {
    problems.push(`time is ${JSON.stringify(time)}, and must be one of ${times.join(", ")}`);
  }
  if (settle !== undefined && settle !== 0 && milliseconds(settle) === undefined) {
    problems.push(
      `settle is ${JSON.stringify(settle)}, and must be a duration such as "30s" or a number of milliseconds`,
    );
  }
  if (settle !== undefined && settle !== 0 && time === "none") {
    problems.push('settle needs a time in the sort key, and time is "none"');
  }
  if (key !== undefined && !(Array.isArray(key) && key.length > 0 && key.every(isName))) {
    problems.push(`key is ${JSON.stringify(key)}, and must list the table's key attributes`);
  }
  if (pageSize !== undefined && !(Number.isInteger(pageSize) && pageSize >= 1)) {
    problems.push(`pageSize is ${JSON.stringify(pageSize)}, and must be a whole number of at least 1`);
  }
  if (problems.length > 0) throw new InvalidOptionsError(kind, problems);
};
