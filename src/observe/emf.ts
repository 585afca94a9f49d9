/**
 * Metrics as lines on standard output, in the embedded metric format: no request, no dependency, and nothing to lose when
 * the process dies right after. CloudWatch Logs reads them wherever its agent or Lambda takes standard output.
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
 */
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

export interface EmfOptions {
  /** The first dimension. @default the environment's CRONFENCE_SERVICE, or else "cronfence" */
  readonly service?: string;
  /** Where a line goes, its line end included. @default standard output */
  readonly write?: (line: string) => void;
  /** Told of values that no metric can have, which are left out. */
  readonly dropped?: Dropped;
}

/** A sink that writes each set at once: one line, or several where a metric has more values than one line takes. */
export const emfSink = (options: EmfOptions = {}): MetricsSink => {
  const service = checkService(options.service ?? serviceName());
  // Not console.log, which Lambda wraps in an envelope of its own where its logs are JSON.
  const write = options.write ?? ((line) => void process.stdout.write(line));
  return {
    record: (set) => {
      for (const line of emfLines(service, set, options.dropped ?? (() => {}))) write(`${JSON.stringify(line)}\n`);
    },
    flush: async () => {},
  };
};

/** At most 100 values of a metric a line, and 100 metrics, which is more than there are. */
const mostValues = 100;

function* emfLines(service: string, set: MetricSet, dropped: Dropped): Generator<object> {
  let left = soundValues(set, dropped);
  while (left.length > 0) {
    yield emfLine(
      service,
      set,
      left.map(([name, values]) => [name, values.slice(0, mostValues)]),
    );
    left = left.flatMap(([name, values]): typeof left =>
      values.length > mostValues ? [[name, values.slice(mostValues)]] : [],
    );
  }
}

const emfLine = (service: string, { job, at, run }: MetricSet, values: readonly [MetricName, readonly number[]][]) => ({
  _aws: {
    Timestamp: Math.floor(at),
    CloudWatchMetrics: [
      {
        Namespace: namespace,
        Dimensions: [["service", "job"]],
        Metrics: values.map(([name]) => ({ Name: name, Unit: metricDefinitions[name].unit })),
      },
    ],
  },
  service,
  job,
  ...(run === undefined ? {} : { run }),
  ...Object.fromEntries(values.map(([name, list]) => [name, list.length === 1 ? list[0] : list])),
});
