/**
 * All items of a table, segment after segment, in DynamoDB's own order. A run that stops goes on where it stopped; one that
 * reaches the end has the next run scan anew, so the watermark counts the scans.
 *
 * An item that is written while a scan is going may or may not be in it; the next scan has it.
 */
import type { Key, KeyValue } from "../control/table-reader.ts";
import { InvalidOptionsError, SourceError } from "../errors.ts";
import type { Json } from "../json.ts";
import { unknownOption } from "../unknown-option.ts";
import { readerOf } from "./query-after.ts";
import type { Source } from "./source.ts";

export interface ScanAllOptions {
  readonly table: string;
  /**
   * How many segments the table is divided into; they are read one after the other.
   * @default 1
   */
  readonly segments?: number;
  /**
   * Items per page.
   * @default 1000
   */
  readonly pageSize?: number;
}

interface Place {
  /** Which scan of the table this is, from 1. */
  readonly scan: number;
  readonly segment: number;
  /** How many segments there are in this scan. */
  readonly of: number;
  /** `null` at the start of the segment. */
  readonly key: Key | null;
}

/**
 * A source of every item of a table. Needs `dynamodb:Scan` and `dynamodb:DescribeTable` on it.
 * @throws InvalidOptionsError naming every option that can't be accepted.
 */
export const scanAll = <Item = Record<string, unknown>>(options: ScanAllOptions): Source<Item> => {
  refuseOptions(options);
  const { table, segments = 1, pageSize = 1_000 } = options;
  const name = `scanAll of ${table}`;
  return {
    name,
    reads: { table, by: "scan" },
    pageSize,
    read: async ({ after, limit, budget, tables }) => {
      const place = placeAt(after, segments);
      const page = await readerOf(name, tables).scan(
        { table, segment: place.segment, segments, limit, ...(place.key === null ? {} : { afterKey: place.key }) },
        budget,
      );
      const items = page.items.map((item) => ({
        item: item as Item,
        cursor: { ...place, key: keyOf(name, item, page.key) } as unknown as Json,
      }));
      if (!page.done) return { items, done: false };
      const lastSegment = place.segment + 1 >= segments;
      const end: Place = lastSegment
        ? { scan: place.scan + 1, segment: 0, of: segments, key: null }
        : { scan: place.scan, segment: place.segment + 1, of: segments, key: null };
      return { items, done: lastSegment, end: end as unknown as Json };
    },
  };
};

/** A watermark of a scan with another number of segments can't be gone on from: that scan begins again. */
const placeAt = (after: Json | undefined, segments: number): Place => {
  const place = after as unknown as Place | undefined;
  if (place?.of === segments) return place;
  return { scan: place?.scan ?? 1, segment: 0, of: segments, key: null };
};

const keyOf = (name: string, item: Readonly<Record<string, unknown>>, attributes: readonly string[]): Key => {
  const key: Record<string, KeyValue> = {};
  for (const attribute of attributes) {
    const value = item[attribute];
    if (typeof value !== "string" && typeof value !== "number") {
      throw new SourceError(name, `the key attribute ${attribute} is binary, which a watermark can't hold`);
    }
    key[attribute] = value;
  }
  return key;
};

const known = ["table", "segments", "pageSize"];

const refuseOptions = (options: ScanAllOptions): void => {
  const problems = Object.keys(options ?? {})
    .filter((option) => !known.includes(option))
    .map((option) => unknownOption(option, known));
  const { table, segments, pageSize } = options ?? {};
  if (typeof table !== "string" || table === "")
    problems.push(`table is ${JSON.stringify(table)}, and must be a table's name`);
  // https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Scan.html
  if (segments !== undefined && !(Number.isInteger(segments) && segments >= 1 && segments <= 1_000_000)) {
    problems.push(`segments is ${JSON.stringify(segments)}, and must be a whole number from 1 to 1000000`);
  }
  if (pageSize !== undefined && !(Number.isInteger(pageSize) && pageSize >= 1)) {
    problems.push(`pageSize is ${JSON.stringify(pageSize)}, and must be a whole number of at least 1`);
  }
  if (problems.length > 0) throw new InvalidOptionsError("scanAll", problems);
};
