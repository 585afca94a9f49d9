/**
 * The control table's items: their keys, their attributes and how they are read. Instants are milliseconds since the
 * epoch, except `expiresAt`, which DynamoDB's TTL wants in whole seconds:
 * https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/howitworks-ttl.html
 *
 * The control item carries no `expiresAt` and is never deleted: its fence must not be forgotten.
 */
import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import type { Json } from "../json.ts";
import type { ActRecord, ControlState, Paused, RunEntry, RunRecord, TickPart } from "./control-store.ts";

export type Item = Record<string, AttributeValue>;

/** More unfinished predecessors than this are recorded before the next acquisition. */
export const mostPredecessors = 20;

export const partition = (job: string) => `job#${job}`;

/** The job that an item belongs to. */
export const jobOf = (item: Item): string => (item.pk?.S ?? "").slice(partition("").length);

export const controlKey = (job: string): Item => ({ pk: { S: partition(job) }, sk: { S: "control" } });

export const runKey = (job: string, run: { startedAt: number; id: string }): Item => ({
  pk: { S: partition(job) },
  sk: { S: `run#${new Date(run.startedAt).toISOString()}#${run.id}` },
});

export const actKey = (job: string, at: number, id: string): Item => ({
  pk: { S: partition(job) },
  sk: { S: `act#${new Date(at).toISOString()}#${id}` },
});

export const parkedKey = (job: string, key: string): Item => ({
  pk: { S: partition(job) },
  sk: { S: `parked#${key}` },
});

export const onceKey = (job: string, key: string): Item => ({ pk: { S: partition(job) }, sk: { S: `once#${key}` } });

/** What an effect is known by on the other side. */
export const idempotencyKeyOf = (job: string, key: string) => `${job}/${key}`;

export const parkedKeysOf = (job: string) => ({ pk: partition(job), prefix: "parked#" });

/** What goes with a job that gets another name; its run records and acts stay under the old one. */
export const carriedPrefixes = ["parked#", "once#"] as const;

/** The first and last possible sort key of a job's run records. */
export const runKeysOf = (job: string) => ({ pk: partition(job), from: "run#", through: "run#~" });

/** The same of its acts. */
export const actKeysOf = (job: string) => ({ pk: partition(job), from: "act#", through: "act#~" });

/** `#word` placeholders stand for the attribute of that name; DynamoDB refuses a name that no expression uses. */
export const namesIn = (...expressions: readonly (string | undefined)[]): Record<string, string> => {
  const text = expressions.join(" ");
  let names = namesByText.get(text);
  if (names === undefined) {
    names = {};
    for (const [placeholder] of text.matchAll(/#\w+/g)) names[placeholder] = placeholder.slice(1);
    namesByText.set(text, names);
  }
  return names;
};

/** There are only as many as there are kinds of requests. */
const namesByText = new Map<string, Record<string, string>>();

/** Native values to expression attribute values; `undefined` ones are left out. */
export const valuesOf = (values: Record<string, unknown>): Item =>
  marshall(values, { removeUndefinedValues: true }) as Item;

export const encodeWatermark = (watermark: Json | undefined): string | undefined =>
  watermark === undefined ? undefined : JSON.stringify(watermark);

const decodeWatermark = (text: unknown): Json | undefined =>
  typeof text === "string" ? (JSON.parse(text) as Json) : undefined;

export const readState = (job: string, item: Item): ControlState => {
  const { pk, sk, run, prev, recentOwners, watermark, recent, unfinished, failedTicks, ...rest } = unmarshall(item);
  return {
    unfinished: unfinished ?? 0,
    failedTicks: failedTicks ?? 0,
    ...(rest as Pick<ControlState, "fence" | "since"> & { paused?: Paused; tickPart?: TickPart }),
    job,
    prev: (prev ?? []) as RunEntry[],
    recentOwners: (recentOwners ?? []) as string[],
    recent: unpackRecent(recent),
    ...(run?.[0] === undefined ? {} : { run: run[0] as RunEntry }),
    ...(watermark === undefined ? {} : { watermark: decodeWatermark(watermark) as Json }),
  };
};

/** A recent run in little room: duration, items, and a 1 where it was capped. */
type PackedRun = [number, number, 1?];

/** As one text: as forty numbers they would be most of the item, and of the work of each request that gets it. */
export const packRecent = (recent: ControlState["recent"]): string =>
  JSON.stringify(
    recent.map(({ durationMs, items, capped }): PackedRun => (capped ? [durationMs, items, 1] : [durationMs, items])),
  );

const unpackRecent = (text: unknown): ControlState["recent"] =>
  typeof text === "string"
    ? (JSON.parse(text) as PackedRun[]).map(([durationMs, items, capped]) => ({
        durationMs,
        items,
        ...(capped === undefined ? {} : { capped: true as const }),
      }))
    : [];

/** How long run records are kept: a year of a yearly job and some more. */
const recordsKeptSeconds = 400 * 86_400;

export const writeRecord = (record: RunRecord): Item =>
  marshall(
    {
      ...record,
      ...unmarshall(runKey(record.job, record)),
      watermarkBefore: encodeWatermark(record.watermarkBefore),
      watermarkAfter: encodeWatermark(record.watermarkAfter),
      expiresAt: Math.floor(record.endedAt / 1000) + recordsKeptSeconds,
    },
    { removeUndefinedValues: true },
  ) as Item;

export const readRecord = (item: Item): RunRecord => {
  const { pk, sk, expiresAt, watermarkBefore, watermarkAfter, ...rest } = unmarshall(item);
  return {
    ...(rest as RunRecord),
    ...(watermarkBefore === undefined ? {} : { watermarkBefore: decodeWatermark(watermarkBefore) as Json }),
    ...(watermarkAfter === undefined ? {} : { watermarkAfter: decodeWatermark(watermarkAfter) as Json }),
  };
};

export const readAct = (item: Item): ActRecord => {
  const { pk, sk, ...act } = unmarshall(item);
  return act as ActRecord;
};
