/** `cronfence/sources`: where a job's items come from. */
export type { Key, KeyValue, Page, PageRequest, ScanPage, ScanRequest, TableReader } from "../control/table-reader.ts";
export { type AsyncIterableOptions, fromAsyncIterable } from "./async-iterable.ts";
export { dueItems } from "./due-items.ts";
export { type QueryAfterOptions, queryAfter, type SortTime } from "./query-after.ts";
export { type ScanAllOptions, scanAll } from "./scan-all.ts";
export type { ReadRequest, Source, SourcePage } from "./source.ts";
