/** The metrics of a run, told when it has ended. */

import { hasCode, type SilentFailureError } from "../errors.ts";
import type { Outcome } from "../outcome.ts";
import type { RunReport } from "../report.ts";
import { cloudWatchSink } from "./cloudwatch.ts";
import { emfSink } from "./emf.ts";
import type { Logger } from "./log.ts";
import type { MetricName, MetricSet, MetricsKind, MetricsSink } from "./metrics.ts";
import type { EndedRun, RunObserver } from "./observers.ts";

/** Tells a sink of every run. */
export const runMetrics = (sink: MetricsSink): RunObserver => ({
  name: "metrics",
  ended: async (run, signal) => {
    await sink.record(metricsOf(run));
    await sink.flush(signal);
  },
});

/** What a run's end comes to in numbers. All of it is stamped with that end, also where the run crossed midnight. */
export const metricsOf = ({ job, run, startedAt, endedAt, report }: EndedRun): MetricSet => ({
  job,
  run,
  at: endedAt,
  values: {
    Succeeded: report !== undefined && succeeding.has(report.outcome) ? 1 : 0,
    Failed: report === undefined || failing.has(report.outcome) ? 1 : 0,
    Duration: report?.durationMs ?? Math.max(0, endedAt - startedAt),
    Items: report?.items ?? 0,
    ...(report === undefined ? {} : occasional(report)),
  },
});

const succeeding: ReadonlySet<Outcome> = new Set(["succeeded", "capped"]);
const failing: ReadonlySet<Outcome> = new Set(["failed", "timed_out", "guard_tripped"]);

const occasional = ({ outcome, itemsParked = 0, thrown }: RunReport): Partial<Record<MetricName, number>> => ({
  ...(outcome === "capped" ? { Capped: 1 } : {}),
  ...(outcome === "guard_tripped" ? { GuardTripped: 1 } : {}),
  ...(outcome === "lease_lost" ? { LeaseLost: 1 } : {}),
  ...(itemsParked > 0 ? { Parked: itemsParked } : {}),
  ...(hasCode(thrown, "SILENT_FAILURE") ? { SilentFailures: countOf(thrown as SilentFailureError) } : {}),
});

const countOf = ({ failures }: SilentFailureError): number => failures.reduce((sum, { count }) => sum + count, 0);

/** The sink that a name stands for; `undefined` for "off". */
export const sinkOf = (kind: MetricsKind, log: Logger, service?: string): MetricsSink | undefined => {
  if (kind === "off") return undefined;
  const options = {
    ...(service === undefined ? {} : { service }),
    dropped: (metric: MetricName, job: string, value: number) =>
      log.warn({ job, metric, value: String(value) }, "a value that no metric can have was left out"),
  };
  return kind === "emf" ? emfSink(options) : cloudWatchSink(options);
};
