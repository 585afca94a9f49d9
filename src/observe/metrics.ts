/**
 * What cronfence measures: the names, units and meanings of its metrics, and where they go. Two dimensions, `service` and
 * `job`, in the namespace `cronfence`; `docs/metrics-and-alarms.md` has the same table for people.
 *
 * Metrics are told, never relied on: a metric that is lost changes no run, and the alarms are built on those that the
 * watchdog sends again and again.
 */

export const namespace = "cronfence";

export interface MetricDefinition {
  readonly unit: "Count" | "Milliseconds" | "Seconds";
  /** Who sends it. */
  readonly from: "run" | "watchdog";
  /** `always`: at every run, or every time the watchdog looks. `when it happens`: only where there is something to say. */
  readonly sent: "always" | "when it happens";
  readonly meaning: string;
}

export const metricDefinitions = {
  Succeeded: {
    unit: "Count",
    from: "run",
    sent: "always",
    meaning: "1 for a run that succeeded or was capped, else 0",
  },
  Failed: {
    unit: "Count",
    from: "run",
    sent: "always",
    meaning: "1 for a run that failed, timed out, was stopped by its guard, or whose end couldn't be recorded, else 0",
  },
  Duration: { unit: "Milliseconds", from: "run", sent: "always", meaning: "from the start of the attempt to its end" },
  Items: { unit: "Count", from: "run", sent: "always", meaning: "items whose work was committed" },
  Capped: {
    unit: "Count",
    from: "run",
    sent: "when it happens",
    meaning: "1 for a run that stopped at a bound with work left",
  },
  GuardTripped: {
    unit: "Count",
    from: "run",
    sent: "when it happens",
    meaning: "1 for a run that its guard stopped before the first write",
  },
  LeaseLost: {
    unit: "Count",
    from: "run",
    sent: "when it happens",
    meaning: "1 for a run that was replaced while it was going; nothing it wrote later was accepted",
  },
  Parked: { unit: "Count", from: "run", sent: "when it happens", meaning: "items set aside after repeated failure" },
  SilentFailures: {
    unit: "Count",
    from: "run",
    sent: "when it happens",
    meaning: "failed calls that the job's own code had swallowed",
  },
  Overdue: {
    unit: "Seconds",
    from: "watchdog",
    sent: "always",
    meaning: "how long the oldest tick that must be done by now has been late, slack included; 0 for a healthy job",
  },
  ConsecutiveFailures: {
    unit: "Count",
    from: "watchdog",
    sent: "always",
    meaning: "ticks that failed in a row; retries of one tick count once",
  },
  WatermarkLag: {
    unit: "Seconds",
    from: "watchdog",
    sent: "when it happens",
    meaning: "how far the watermark is behind the present, for a watermark that is, or begins with, a time",
  },
  CappedInARow: {
    unit: "Count",
    from: "watchdog",
    sent: "when it happens",
    meaning: "the latest runs that were capped one after the other; not sent while it is 0",
  },
  Unwatched: {
    unit: "Count",
    from: "watchdog",
    sent: "always",
    meaning:
      "jobs that the watchdog couldn't judge; its job is the watchdog's own, and a missing point means no watchdog",
  },
} as const satisfies Record<string, MetricDefinition>;

export type MetricName = keyof typeof metricDefinitions;

type MetricValues = Readonly<Partial<Record<MetricName, number | readonly number[]>>>;

/** Values of one job, measured at one instant. */
export interface MetricSet {
  readonly job: string;
  /** The instant that they stand for, in milliseconds since the epoch. */
  readonly at: number;
  readonly values: MetricValues;
  /** Kept beside the values where the destination can, to find the run by; never a dimension. */
  readonly run?: string;
}

/** Where metrics go. */
export interface MetricsSink {
  /** Takes values; the promise, where there is one, resolves when there is room for more. */
  record(set: MetricSet): void | Promise<void>;
  /** Sends what is still kept. Rejects when something couldn't be sent. */
  flush(signal?: AbortSignal): Promise<void>;
}

/** `emf`: lines on standard output, which CloudWatch Logs turns into metrics. `cloudwatch`: PutMetricData. `off`: nowhere. */
export type MetricsKind = "emf" | "cloudwatch" | "off";
export const metricsKinds: readonly MetricsKind[] = ["emf", "cloudwatch", "off"];

/** What is said of values that no metric can have. */
export type Dropped = (metric: MetricName, job: string, value: number) => void;

/**
 * The values of a set that CloudWatch takes: it refuses NaN and infinities, and with them whatever is sent beside them.
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_MetricDatum.html
 */
export const soundValues = ({ job, values }: MetricSet, dropped: Dropped): [MetricName, readonly number[]][] =>
  Object.entries(values).flatMap(([name, given]): [MetricName, readonly number[]][] => {
    const metric = name as MetricName;
    const sound = [given].flat().filter((value: number) => {
      const fine = Number.isFinite(value);
      if (!fine) dropped(metric, job, value);
      return fine;
    });
    return sound.length === 0 ? [] : [[metric, sound]];
  });

/** Whose jobs these are: the first dimension. @default the environment's CRONFENCE_SERVICE, or else "cronfence" */
export const serviceName = (): string => process.env.CRONFENCE_SERVICE || "cronfence";

/** @throws RangeError for a name that can't be a dimension's value */
export const checkService = (service: string): string => {
  if (/^[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?$/.test(service) && !service.startsWith(":")) return service;
  throw new RangeError(
    `service is ${JSON.stringify(service)}, and must be 1 to 255 printable ASCII characters, not beginning with a colon`,
  );
};
