/**
 * Metrics by PutMetricData: for hosts whose standard output nobody turns into metrics. @aws-sdk/client-cloudwatch is loaded
 * at the first request, so a function that never sends any doesn't pay for it.
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricData.html
 */
import type { CloudWatchClient, MetricDatum } from "@aws-sdk/client-cloudwatch";
import {
  checkService,
  type Dropped,
  type MetricName,
  type MetricSet,
  type MetricsSink,
  metricDefinitions,
  namespace,
  serviceName,
  soundValues,
} from "./metrics.ts";

export interface CloudWatchOptions {
  /** The first dimension. @default the environment's CRONFENCE_SERVICE, or else "cronfence" */
  readonly service?: string;
  /** @default a client for the environment's region, credentials and AWS_ENDPOINT_URL_CLOUDWATCH */
  readonly client?: CloudWatchClient;
  /** How long one request may take, in milliseconds. @default 2000 */
  readonly requestTimeoutMs?: number;
  /** Told of values that no metric can have, which are left out. */
  readonly dropped?: Dropped;
}

/**
 * A sink that keeps what it is given and sends it in as few requests as CloudWatch allows: a full one as soon as there is
 * one, the rest when it is flushed. What couldn't be sent is dropped, so that memory stays flat.
 */
export const cloudWatchSink = (options: CloudWatchOptions = {}): MetricsSink => {
  const service = checkService(options.service ?? serviceName());
  const requestTimeoutMs = options.requestTimeoutMs ?? 2_000;
  let kept: MetricDatum[] = [];
  let keptBytes = 0;
  let connected: Promise<(data: readonly MetricDatum[], signal: AbortSignal) => Promise<unknown>> | undefined;

  const connect = async () => {
    const { CloudWatchClient, PutMetricDataCommand } = await import("@aws-sdk/client-cloudwatch");
    // One more try at most: a repeated request whose reply was lost counts twice.
    const client = options.client ?? (sharedClient ??= new CloudWatchClient({ maxAttempts: 2 }));
    return (data: readonly MetricDatum[], abortSignal: AbortSignal) =>
      client.send(new PutMetricDataCommand({ Namespace: namespace, MetricData: [...data] }), { abortSignal });
  };
  const send = async (signal?: AbortSignal) => {
    const data = kept;
    kept = [];
    keptBytes = 0;
    if (data.length === 0) return;
    connected ??= connect();
    const timeout = AbortSignal.timeout(requestTimeoutMs);
    await (await connected)(data, signal === undefined ? timeout : AbortSignal.any([signal, timeout]));
  };
  return {
    record: async (set) => {
      for (const datum of dataOf(service, set, options.dropped ?? (() => {}))) {
        const bytes = JSON.stringify(datum).length;
        if (kept.length >= mostMetrics || keptBytes + bytes > mostBytes) await send();
        kept.push(datum);
        keptBytes += bytes;
      }
    },
    flush: (signal) => send(signal),
  };
};

let sharedClient: CloudWatchClient | undefined;

/** 1,000 metrics and 1 MB a request; some of the latter is kept for what is around the data. */
const mostMetrics = 1_000;
const mostBytes = 1_000_000;
/** Different values of a metric a datum, each with how often it occurs. */
const mostValues = 150;

const dataOf = (service: string, set: MetricSet, dropped: Dropped): MetricDatum[] =>
  soundValues(set, dropped).flatMap(([name, values]) => dataOfMetric(service, set, name, values));

const dataOfMetric = (service: string, set: MetricSet, name: MetricName, values: readonly number[]): MetricDatum[] => {
  const about = {
    MetricName: name,
    Dimensions: [
      { Name: "service", Value: service },
      { Name: "job", Value: set.job },
    ],
    Timestamp: new Date(set.at),
    Unit: metricDefinitions[name].unit,
  } satisfies MetricDatum;
  if (values.length === 1) return [{ ...about, Value: values[0] }];
  const counts = new Map<number, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  const different = [...counts];
  const data: MetricDatum[] = [];
  for (let from = 0; from < different.length; from += mostValues) {
    const part = different.slice(from, from + mostValues);
    data.push({ ...about, Values: part.map(([value]) => value), Counts: part.map(([, count]) => count) });
  }
  return data;
};
