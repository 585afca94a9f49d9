/** What a job adds to CloudWatch's bill: its custom metrics and its alarms. Prices change, so these are counts. */
import { type MetricName, type MetricsKind, metricDefinitions } from "../observe/metrics.ts";
import { type AlarmedJob, jobAlarms } from "./job-alarms.ts";

export interface AlarmCost {
  /** Custom metrics that are sent all the time. */
  readonly metrics: readonly MetricName[];
  /** Those that are sent only when there is something to say. */
  readonly occasional: readonly MetricName[];
  readonly alarms: readonly string[];
}

/**
 * The metrics and alarms of one job. The watchdog adds one metric and one alarm for all jobs together, and each queue for
 * dead letters one alarm.
 */
export const alarmCost = (job: AlarmedJob & { readonly metrics?: MetricsKind }): AlarmCost => {
  const alarms = jobAlarms(job, "", 60_000);
  const names = (Object.keys(metricDefinitions) as MetricName[]).filter((name) => isSentFor(job, name));
  return {
    metrics: names.filter((name) => metricDefinitions[name].sent === "always"),
    occasional: names.filter((name) => metricDefinitions[name].sent !== "always"),
    alarms: Object.keys(alarms),
  };
};

const isSentFor = (
  { schedule, work, metrics = "off" }: AlarmedJob & { readonly metrics?: MetricsKind },
  name: MetricName,
): boolean => {
  if (metricDefinitions[name].from === "run") return metrics !== "off";
  if (name === "Overdue") return schedule !== undefined;
  if (name === "CappedInARow") return work?.shape === "source";
  return name !== "Unwatched";
};
