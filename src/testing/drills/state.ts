/**
 * The state that trials are compared by: rows by their names, and whatever a `read` of the user's own returns. Ids of runs are
 * replaced, since they are made by chance.
 */
import { isDeepStrictEqual } from "node:util";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import type { TableDefinition } from "../tables.ts";
import { type Contents, keyText } from "./drilled-tables.ts";
import type { Scene } from "./scene.ts";

/** One thing that is compared. */
interface Row {
  /** The table, or the name that `read` gave it. */
  readonly of: string;
  readonly value: unknown;
}
/** By name: `carts id="c1"`. */
export type State = ReadonlyMap<string, Row>;

interface Difference {
  readonly name: string;
  readonly of: string;
  /** Which part of the row; empty for all of it. */
  readonly path: string;
  readonly expected: unknown;
  readonly found: unknown;
}

export interface Differences {
  readonly missing: readonly string[];
  readonly extra: readonly string[];
  readonly different: readonly Difference[];
}

/** The state as it stands in the tables. */
export const stateOf = async (scene: Scene, ids: ReadonlySet<string>): Promise<State> => {
  const { options, ground } = scene;
  const definitions = options.tables ?? [];
  if (options.read === undefined) return rowsOf(await scene.tables.readLast(), definitions, ids);
  const read = withoutIds(plain(await options.read(ground.client)), ids) as Record<string, unknown>;
  const rows = new Map<string, Row>();
  for (const [of, value] of Object.entries(read)) {
    const table = definitions.find(({ name }) => name === of);
    const items = table === undefined || !Array.isArray(value) ? undefined : (value as Record<string, unknown>[]);
    if (table === undefined || items === undefined) rows.set(of, { of, value });
    else for (const item of items) put(rows, of, keyText(table.key, marshall(item)), item);
  }
  return rows;
};

const rowsOf = (contents: Contents, definitions: readonly TableDefinition[], ids: ReadonlySet<string>): State => {
  const rows = new Map<string, Row>();
  for (const { name, key } of definitions) {
    for (const text of contents.get(name)?.values() ?? []) {
      const raw = JSON.parse(text.replace(uuid, (id) => (ids.has(id) ? runIdMark : id)));
      put(rows, name, keyText(key, raw), plain(unmarshall(raw)));
    }
  }
  return rows;
};

/** Rows whose keys differ only by a run's id are told apart by their number. */
const put = (rows: Map<string, Row>, of: string, key: string, value: unknown): void => {
  let name = `${of} ${key}`;
  for (let number = 2; rows.has(name); number += 1) name = `${of} ${key} (${number})`;
  rows.set(name, { of, value });
};

const uuid = /[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g;
const runIdMark = "(a run's id)";

const withoutIds = (value: unknown, ids: ReadonlySet<string>): unknown => {
  if (typeof value === "string") return value.replace(uuid, (id) => (ids.has(id) ? runIdMark : id));
  if (Array.isArray(value)) return value.map((part) => withoutIds(part, ids));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [withoutIds(name, ids), withoutIds(part, ids)]),
  );
};

/** Sets, maps and dates as plain values. */
const plain = (value: unknown): unknown => {
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Set) return [...value].map(plain).sort();
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, part]) => [String(key), plain(part)]));
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (Array.isArray(value)) return value.map(plain);
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, plain(part)]));
};

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

/** @param ignored parts that may differ, as "table.attribute" */
export const differencesBetween = (expected: State, found: State, ignored: ReadonlySet<string>): Differences => ({
  missing: [...expected.keys()].filter((name) => !found.has(name)),
  extra: [...found.keys()].filter((name) => !expected.has(name)),
  different: [...expected].flatMap(([name, { of, value }]) => {
    const other = found.get(name);
    if (other === undefined) return [];
    return partsThatDiffer(value, other.value)
      .filter(({ path }) => !isIgnored(ignored, of, path))
      .map((part) => ({ name, of, ...part }));
  }),
});

/** An attribute that is ignored is so with all that is in it. */
const isIgnored = (ignored: ReadonlySet<string>, of: string, path: string): boolean => {
  for (let end = path.length; end > 0; end = path.lastIndexOf(".", end - 1)) {
    if (ignored.has(`${of}.${path.slice(0, end)}`)) return true;
  }
  return ignored.has(`${of}.`);
};

interface Part {
  readonly path: string;
  readonly expected: unknown;
  readonly found: unknown;
}

const partsThatDiffer = (expected: unknown, found: unknown, path = ""): Part[] => {
  if (isDeepStrictEqual(expected, found)) return [];
  if (Array.isArray(expected) || Array.isArray(found) || !isRecord(expected) || !isRecord(found)) {
    return [{ path, expected, found }];
  }
  return [...new Set([...Object.keys(expected), ...Object.keys(found)])].flatMap((name) =>
    partsThatDiffer(expected[name], found[name], path === "" ? name : `${path}.${name}`),
  );
};

/** What is wrong with rows that differ although nothing went wrong. */
export const rowsByChance =
  "a key that is made by chance (Math.random, a random UUID) makes another row whenever a run is repeated; take it from the tick or the item, or leave such rows out in read";

/** The parts that differ between states that should be the same, as "table.attribute". */
export const partsBetween = (one: State, other: State): string[] =>
  differencesBetween(one, other, new Set()).different.map(({ of, path }) => `${of}.${path}`);
