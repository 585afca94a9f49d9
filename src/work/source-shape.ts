/**
 * `source` + `process` jobs: items are read in pages, packed whole into transactions, and committed with the cursor of
 * the last item as watermark. The next page is read while the last commits are on their way.
 */
import { noWrites } from "../control/writes.ts";
import { SourceError } from "../errors.ts";
import type { Json } from "../json.ts";
import type { LiveRun } from "../live-run.ts";
import type { RunInfo } from "../run-context.ts";
import type { Ending } from "../run-record.ts";
import { cycleWatch } from "./cycle.ts";
import { holdForGuard, type Plan, passGuard, planner } from "./guard.ts";
import { inOrder } from "./in-order.ts";
import { itemDoer, type SourceWork } from "./item.ts";
import { batchOf } from "./item-batch.ts";
import { endOf, type Lot, packer } from "./packing.ts";
import { outOfTime } from "./reserve.ts";
import { parkedItems } from "./retry-parked.ts";
import type { Source, SourcePage } from "./source.ts";

export const performSource = async (work: SourceWork, live: LiveRun, run: RunInfo): Promise<Ending> => {
  const { source, limit } = work;
  const pageSize = source.pageSize ?? defaultPageSize;
  const most = {
    items: limit.items ?? Number.POSITIVE_INFINITY,
    pages: limit.pages ?? Number.POSITIVE_INFINITY,
    transactions: limit.transactions ?? Number.POSITIVE_INFINITY,
  };
  const keepsPlace = source.resumes !== "start";
  const aside = keepsPlace || work.onItemError === "stop" ? none : await parkedCursors(live);
  let planned = Number.POSITIVE_INFINITY;
  if (work.destructive !== undefined) {
    holdForGuard(work.destructive, live);
    const plan = await planItems(work, live, most.items, aside);
    await passGuard(work.destructive, live, run, plan);
    if (plan.count === 0) return { outcome: "succeeded" };
    planned = plan.count;
  }
  const doItem = itemDoer(work, live, run);
  const pack = packer();
  /** Where the pages that are packed end. */
  let position = keepsPlace ? live.watermark : undefined;
  let items = 0;
  let pages = 1;
  let transactions = 0;
  /** One commit is on its way while the next is packed. */
  let open: Promise<void> = Promise.resolve();

  const flush = async () => {
    await open;
    transactions += 1;
    open = live.commit(batchOf(work, live, pack.take()));
    // It is waited for before the next one, or at the end.
    open.catch(() => {});
  };
  const done = async (ending: Ending): Promise<Ending> => {
    await open;
    const moved = keepsPlace && position !== undefined && !same(position, live.watermark);
    if (pack.items > 0) live.stage(batchOf(work, live, pack.take()));
    else if (moved) live.stage({ writes: noWrites, items: 0, watermark: position as Json });
    return ending;
  };
  const capped = async (bound: string) =>
    done({ outcome: "capped", backlog: `${await leftAfter(work, live, position)} (stopped by ${bound})` });

  /** Packs a page's items; the bound that was reached, if one was. */
  const packPage = async (page: SourcePage<unknown>): Promise<string | undefined> => {
    const last = page.items.at(-1);
    for (const { input, result } of inOrder(page.items, work.concurrency, doItem.start)) {
      if (live.signal.aborted) throw live.signal.reason;
      // Rows that have come since were never planned.
      if (items >= planned) return "the plan";
      if (items > 0 && outOfTime(live)) return "the deadline";
      // Waiting costs more than most items' work, so it isn't done for what is there.
      const done: Lot =
        result instanceof Promise ? await doItem.settle(input, result) : { cursor: input.cursor, writes: result };
      // A page may end further on than its last item.
      const lot = input === last && page.end !== undefined ? { ...done, end: page.end } : done;
      if (!pack.add(lot)) {
        if (transactions + 1 >= most.transactions) return "limit.transactions";
        await flush();
        pack.add(lot);
      }
      position = endOf(lot);
      items += 1;
    }
    if (last === undefined && page.end !== undefined) position = page.end;
    return undefined;
  };

  try {
    const refuseCircle = refuseCircles(source);
    let page = await readPage(work, live, position, Math.min(pageSize, most.items), aside);
    for (;;) {
      const after = page.end ?? page.items.at(-1)?.cursor;
      if (after !== undefined) refuseCircle(after);
      const wanted = Math.min(pageSize, most.items - items - page.items.length);
      const goesOn = !page.done && after !== undefined && wanted > 0 && pages < most.pages;
      const next = goesOn ? readPage(work, live, after, wanted, aside) : undefined;
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

/** Everything that this run would process, read once without doing anything. */
const planItems = async (
  work: SourceWork,
  live: LiveRun,
  mostItems: number,
  aside: ReadonlySet<string>,
): Promise<Plan> => {
  const pageSize = work.source.pageSize ?? defaultPageSize;
  const planned = planner();
  const refuseCircle = refuseCircles(work.source);
  let after = work.source.resumes === "start" ? undefined : live.watermark;
  while (planned.count < mostItems) {
    if (live.signal.aborted) throw live.signal.reason;
    const page = await readPage(work, live, after, Math.min(pageSize, mostItems - planned.count), aside);
    for (const { cursor } of page.items) planned.add(cursor);
    if (page.done) break;
    after = page.end ?? page.items.at(-1)?.cursor;
    if (after !== undefined) refuseCircle(after);
  }
  return planned.plan();
};

const same = (one: Json | undefined, other: Json | undefined): boolean => JSON.stringify(one) === JSON.stringify(other);

const leftAfter = async ({ source }: SourceWork, live: LiveRun, after: Json | undefined): Promise<string> => {
  try {
    const left = await source.left?.({ after, ...readingFor(live) });
    return left ?? "items after the watermark";
  } catch {
    return "items after the watermark";
  }
};

const readingFor = ({ attempt, signal }: LiveRun) => {
  const { clock, random, deadline, tables } = attempt;
  return { signal, budget: { clock, random, until: deadline }, tables };
};

/** Numbers compare by themselves; whatever else a cursor is, only its source knows. */
const isBehind = ({ compare }: Source<unknown>, cursor: Json, previous: Json): boolean =>
  compare !== undefined
    ? compare(cursor, previous) < 0
    : typeof cursor === "number" && typeof previous === "number" && cursor < previous;

/** Refuses a source that leads back to where it was, since it would be read for ever. */
const refuseCircles = (source: Source<unknown>) => {
  const comesAgain = cycleWatch();
  return (end: Json): void => {
    const text = JSON.stringify(end);
    if (comesAgain(text)) throw new SourceError(source.name, `cursor ${text} comes again on a later page`);
  };
};

/**
 * Where no watermark passes them, parked items are found again; they are a person's now, and would fill up what may be
 * parked in one run.
 */
const parkedCursors = async (live: LiveRun): Promise<ReadonlySet<string>> => {
  const cursors = new Set<string>();
  for await (const { cursor } of parkedItems(live)) cursors.add(JSON.stringify(cursor));
  return cursors;
};
const none: ReadonlySet<string> = new Set();

/**
 * A page, checked: going on from a cursor that doesn't advance would loop.
 * @param aside cursors that are passed over
 */
const readPage = async (
  { source }: SourceWork,
  live: LiveRun,
  after: Json | undefined,
  limit: number,
  aside: ReadonlySet<string>,
): Promise<SourcePage<unknown>> => {
  const page = await source.read({ after, limit, ...readingFor(live) });
  const items = page.items.slice(0, limit);
  const whole = items.length === page.items.length;
  const done = page.done && whole;
  if (items.length === 0 && !done && (page.end === undefined || same(page.end, after))) {
    throw new SourceError(source.name, "a page has no items and isn't the last one, so it doesn't advance");
  }
  let before = after === undefined ? undefined : JSON.stringify(after);
  let previous = after;
  for (const { cursor } of items) {
    if (cursor === undefined)
      throw new SourceError(source.name, "an item has no cursor, so that it can't be gone on from");
    const text = JSON.stringify(cursor);
    if (text === before) throw new SourceError(source.name, `cursor ${text} comes twice, and must be unique`);
    if (previous !== undefined && isBehind(source, cursor, previous)) {
      throw new SourceError(source.name, `cursor ${text} comes after ${before}, and cursors must ascend`);
    }
    before = text;
    previous = cursor;
  }
  const end = page.end === undefined || !whole ? undefined : { end: page.end };
  if (aside.size === 0) return { items, done, ...end };
  const last = items.at(-1);
  return {
    items: items.filter(({ cursor }) => !aside.has(JSON.stringify(cursor))),
    done,
    ...(last === undefined ? {} : { end: last.cursor }),
    ...end,
  };
};
