/**
 * Items from anything else: the pages of a REST API, the rows of a database, a file. They must come in the order of a
 * cursor that is unique, and `items` must be able to start after one.
 */
import { InvalidOptionsError } from "../errors.ts";
import type { Json } from "../json.ts";
import { unknownOption } from "../unknown-option.ts";
import type { ReadRequest, Source, SourcePage } from "./source.ts";

export interface AsyncIterableOptions<Item, Cursor extends Json> {
  /** For error messages and logs. */
  readonly name: string;
  /**
   * The items after `after` (exclusive), in the order of their cursors; from the very start when it is `undefined`. It is
   * read on through a run, and called anew by the next one.
   */
  readonly items: (
    after: Cursor | undefined,
    request: { readonly signal: AbortSignal },
  ) => AsyncIterable<Item> | Iterable<Item>;
  /** An item's cursor: unique, and JSON. */
  readonly cursor: (item: Item) => Cursor;
  /**
   * The order of two cursors, negative if `one` comes first: an item out of order ends the run with an error.
   * @default numbers by value; others aren't compared
   */
  readonly compare?: (one: Cursor, other: Cursor) => number;
  /**
   * Items per page.
   * @default 1000
   */
  readonly pageSize?: number;
}

/**
 * A source that reads an iterable.
 * @throws InvalidOptionsError naming every option that can't be accepted.
 */
export const fromAsyncIterable = <Item, Cursor extends Json = string>(
  options: AsyncIterableOptions<Item, Cursor>,
): Source<Item> => {
  refuseOptions({ compare: undefined, pageSize: undefined, ...options });
  const { name, items, cursor, compare, pageSize = 1_000 } = options;
  /** Each run reads its own iterator on; the signal is the run's own too. */
  const open = new WeakMap<AbortSignal, { readonly iterator: AsyncIterator<Item>; at: string | undefined }>();

  const openAt = ({ after, signal }: ReadRequest) => {
    const at = after === undefined ? undefined : JSON.stringify(after);
    const going = open.get(signal);
    if (going !== undefined && going.at === at) return going;
    const iterator = iterate(items(after as Cursor | undefined, { signal }));
    const opened = { iterator, at };
    open.set(signal, opened);
    return opened;
  };

  return {
    name,
    pageSize,
    ...(compare === undefined ? {} : { compare: compare as Source<Item>["compare"] & object }),
    read: async (request): Promise<SourcePage<Item>> => {
      const opened = openAt(request);
      const page: { item: Item; cursor: Json }[] = [];
      while (page.length < request.limit) {
        const next = await opened.iterator.next();
        if (next.done) {
          // Read to its end: whoever reads from the same place again begins anew.
          open.delete(request.signal);
          return { items: page, done: true };
        }
        page.push({ item: next.value, cursor: cursor(next.value) });
      }
      opened.at = JSON.stringify(page.at(-1)?.cursor);
      return { items: page, done: false };
    },
  };
};

async function* iterate<Item>(items: AsyncIterable<Item> | Iterable<Item>): AsyncGenerator<Item> {
  yield* items;
}

const known = ["name", "items", "cursor", "compare", "pageSize"];

const refuseOptions = (options: Readonly<Record<keyof AsyncIterableOptions<unknown, Json>, unknown>>): void => {
  const problems = Object.keys(options ?? {})
    .filter((option) => !known.includes(option))
    .map((option) => unknownOption(option, known));
  const { name, items, cursor, compare, pageSize } = options ?? {};
  if (typeof name !== "string" || name === "")
    problems.push(`name is ${JSON.stringify(name)}, and must be a name for messages`);
  if (typeof items !== "function") problems.push("items must be a function that returns an iterable");
  if (typeof cursor !== "function") problems.push("cursor must be a function that gives an item's cursor");
  if (compare !== undefined && typeof compare !== "function")
    problems.push("compare must be a function that compares two cursors");
  if (pageSize !== undefined && !(Number.isInteger(pageSize) && (pageSize as number) >= 1)) {
    problems.push(`pageSize is ${JSON.stringify(pageSize)}, and must be a whole number of at least 1`);
  }
  if (problems.length > 0) throw new InvalidOptionsError("fromAsyncIterable", problems);
};
