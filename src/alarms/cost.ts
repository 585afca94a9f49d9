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

type CostlyJob = AlarmedJob & {
  readonly metrics?: MetricsKind;
  readonly deployment?: { readonly alarms: boolean };
  /** Set for a watchdog. */
  readonly watches?: object;
};

/**
 * The metrics and alarms of one job. A watchdog has one of each, of its own absence; nobody has alarms with `alarms: false`.
 * Each queue for dead letters adds one alarm.
 */
export const alarmCost = (job: CostlyJob): AlarmCost => {
  const names = (Object.keys(metricDefinitions) as MetricName[]).filter((name) => isSentFor(job, name));
  return {
    metrics: names.filter((name) => metricDefinitions[name].sent === "always"),
    occasional: names.filter((name) => metricDefinitions[name].sent !== "always"),
    alarms: alarmsOf(job),
  };
};

const alarmsOf = (job: CostlyJob): string[] => {
  if (job.deployment?.alarms === false) return [];
  return job.watches === undefined ? Object.keys(jobAlarms(job, "", 60_000)) : ["absent"];
};

const isSentFor = ({ schedule, work, watches, metrics = "off" }: CostlyJob, name: MetricName): boolean => {
  if (metricDefinitions[name].from === "run") return metrics !== "off";
  if (watches !== undefined || name === "Unwatched") return watches !== undefined && name === "Unwatched";
  if (name === "Overdue") return schedule !== undefined;
  return name !== "CappedInARow" || work?.shape === "source";
};
