/**
 * `source` + `process` jobs: items are read in pages, packed whole into transactions, and committed with the cursor of
 * the last item as watermark. The next page is read while the last commits are on their way.
 */
import type { PreparedWrites } from "../control/writes.ts";
import { mostActions } from "../control/writes.ts";
import { CommitRefusedError, SourceError } from "../errors.ts";
import type { Work } from "../job.ts";
import type { Json } from "../json.ts";
import type { LiveRun } from "../live-run.ts";
import type { RunInfo } from "../run-context.ts";
import type { Ending } from "../run-record.ts";
import { packer } from "./packing.ts";
import { outOfTime } from "./reserve.ts";
import type { SourcePage } from "./source.ts";

type SourceWork = Work & { readonly shape: "source" };

export const performSource = async (work: SourceWork, live: LiveRun, run: RunInfo): Promise<Ending> => {
  const { source, process, limit } = work;
  const pageSize = source.pageSize ?? defaultPageSize;
  const most = {
    items: limit.items ?? Number.POSITIVE_INFINITY,
    pages: limit.pages ?? Number.POSITIVE_INFINITY,
    transactions: limit.transactions ?? Number.POSITIVE_INFINITY,
  };
  const pack = packer();
  let items = 0;
  let pages = 1;
  let transactions = 0;
  /** One commit is on its way while the next is packed. */
  let open: Promise<void> = Promise.resolve();

  const flush = async () => {
    await open;
    transactions += 1;
    open = live.commit(pack.take());
    // It is waited for before the next one, or at the end.
    open.catch(() => {});
  };
  const done = async (ending: Ending): Promise<Ending> => {
    await open;
    if (pack.items > 0) live.stage(pack.take());
    return ending;
  };
  const capped = (bound: string) =>
    done({ outcome: "capped", backlog: `items after the watermark (stopped by ${bound})` });

  /** Packs a page's items; the bound that was reached, if one was. */
  const packPage = async (page: SourcePage<unknown>): Promise<string | undefined> => {
    for (const { item, cursor } of page.items) {
      if (live.signal.aborted) throw live.signal.reason;
      if (items > 0 && outOfTime(live)) return "the deadline";
      const result = process(item, run);
      const writes = prepareItem(work, live, cursor, result instanceof Promise ? await result : result);
      if (!pack.add(writes, cursor)) {
        if (transactions + 1 >= most.transactions) return "limit.transactions";
        await flush();
        pack.add(writes, cursor);
      }
      items += 1;
    }
    return undefined;
  };

  try {
    let page = await readPage(work, live, live.watermark, Math.min(pageSize, most.items));
    for (;;) {
      const last = page.items.at(-1)?.cursor;
      const wanted = Math.min(pageSize, most.items - items - page.items.length);
      const goesOn = !page.done && last !== undefined && wanted > 0 && pages < most.pages;
      const next = goesOn ? readPage(work, live, last, wanted) : undefined;
      next?.catch(() => {});
      const bound = await packPage(page);
      if (bound !== undefined) return await capped(bound);
      if (page.done) return await done({ outcome: "succeeded" });
      if (next === undefined) return await capped(items >= most.items ? "limit.items" : "limit.pages");
      pages += 1;
      page = await next;
    }
  } catch (error) {
    // What was done before the fault is kept, so that the next run starts at the item that caused it.
    if (pack.items > 0 && !live.signal.aborted) {
      await flush();
      await open;
    }
    throw error;
  }
};

const defaultPageSize = 1_000;

/** The writes of one item, checked; an error names the item by its cursor. */
const prepareItem = ({ source }: SourceWork, live: LiveRun, cursor: Json, writes: unknown): PreparedWrites => {
  const subject = `${source.name}: process, for the item at cursor ${JSON.stringify(cursor)},`;
  if (!Array.isArray(writes)) {
    throw new CommitRefusedError(
      `${subject} must return an array of writes, and returned ${writes === null ? "null" : typeof writes}`,
    );
  }
  if (writes.length > mostActions) {
    throw new CommitRefusedError(
      `${subject} returned ${writes.length} writes, and one item takes at most ${mostActions}: its work has to fit one transaction`,
      mostActions,
    );
  }
  try {
    return live.attempt.store.prepare(writes, cursor);
  } catch (error) {
    if (!(error instanceof CommitRefusedError)) throw error;
    throw new CommitRefusedError(`${subject} returned what can't be committed: ${error.message}`, error.index, {
      cause: error,
    });
  }
};

/** A page, checked: going on from a cursor that doesn't advance would loop. */
const readPage = async (
  { source }: SourceWork,
  live: LiveRun,
  after: Json | undefined,
  limit: number,
): Promise<SourcePage<unknown>> => {
  const { clock, random, deadline, tables } = live.attempt;
  const page = await source.read({
    after,
    limit,
    signal: live.signal,
    budget: { clock, random, until: deadline },
    tables,
  });
  const items = page.items.slice(0, limit);
  const done = page.done && items.length === page.items.length;
  if (items.length === 0 && !done) {
    throw new SourceError(source.name, "a page has no items and isn't the last one, so it doesn't advance");
  }
  let before = after === undefined ? undefined : JSON.stringify(after);
  for (const { cursor } of items) {
    const text = JSON.stringify(cursor);
    if (text === before) {
      throw new SourceError(
        source.name,
        `cursor ${text} comes twice, and must be unique (queryAfter: name the table's key attributes in "key")`,
      );
    }
    before = text;
  }
  return { items, done };
};
