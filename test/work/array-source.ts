/** A source that reads an array, in pages; each item's cursor is its place, from 1. */
import type { Json } from "cronfence";
import type { Source, SourcePage } from "cronfence/sources";

export interface ArraySource<Item> extends Source<Item> {
  /** The cursors that were asked for, in order. */
  readonly asked: (Json | undefined)[];
}

export const arraySource = <Item>(items: readonly Item[], pageSize = 1_000): ArraySource<Item> => {
  const asked: (Json | undefined)[] = [];
  return {
    name: "an array",
    pageSize,
    asked,
    read: async ({ after, limit }): Promise<SourcePage<Item>> => {
      asked.push(after);
      const from = (after as number | undefined) ?? 0;
      const page = items.slice(from, from + limit);
      return {
        items: page.map((item, at) => ({ item, cursor: from + at + 1 })),
        done: from + page.length >= items.length,
      };
    },
  };
};
