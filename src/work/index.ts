/** `cronfence/sources`: where a job's items come from. */
export type { Key, KeyValue, Page, PageRequest, TableReader } from "../control/table-reader.ts";
export { type QueryAfterOptions, queryAfter, type SortTime } from "./query-after.ts";
export type { ReadRequest, Source, SourcePage } from "./source.ts";
