/**
 * The alarms of jobs and of what runs them. Each job's stand on metrics that the watchdog sends every few minutes whatever
 * the job's schedule, since CloudWatch looks back a week at most and reuses older points where newer are missing: no alarm
 * on a monthly job's own metrics can tell that a run is missing.
 *
 * The latest point decides (1 of 1 over a minute, and what is missing is ignored), so an alarm goes off with the first
 * look of the watchdog that finds something, and is cleared by the first that doesn't. That the watchdog looks at all is
 * an alarm of its own.
 */
import type { Job } from "../job.ts";
import { type MetricName, namespace } from "../observe/metrics.ts";
import type { Alarm } from "./alarm.ts";

/** What a job's alarms depend on. */
export type AlarmedJob = Pick<Job, "name" | "alert"> & {
  readonly schedule?: Job["schedule"];
  readonly work?: { readonly shape: string; readonly onBacklog?: string; readonly maxChain?: number };
};

/** By what they are for: the last part of an alarm's name. */
export type JobAlarms = Readonly<Partial<Record<"overdue" | "failures" | "capped", Alarm>>>;

/**
 * A job's alarms: `overdue` for a job with a schedule, `failures` for every job, `capped` for one that works off a source.
 * @param service the first dimension of the watchdog's metrics
 * @param everyMs how often the watchdog looks
 */
export const jobAlarms = (job: AlarmedJob, service: string, everyMs: number): JobAlarms => {
  const { name, alert, schedule, work } = job;
  const latest = (metric: MetricName, threshold: Pick<Alarm, "Threshold" | "ComparisonOperator">, what: string) => ({
    AlarmDescription: what,
    ...metricOf(metric, service, name),
    ...threshold,
    Statistic: "Maximum" as const,
    Period: 60,
    EvaluationPeriods: 1,
    DatapointsToAlarm: 1,
    TreatMissingData: "ignore" as const,
  });
  const most = mostCapped(work);
  return {
    ...(schedule === undefined
      ? {}
      : {
          overdue: latest(
            "Overdue",
            { Threshold: 0, ComparisonOperator: "GreaterThanThreshold" },
            `Job ${name} hasn't done a tick that must be done by now. First: is its schedule enabled, does its function ` +
              "start, is it paused? The watchdog's log names the tick and runs that seem to hang.",
          ),
        }),
    failures: latest(
      "ConsecutiveFailures",
      { Threshold: alert.failures, ComparisonOperator: "GreaterThanOrEqualToThreshold" },
      `Job ${name} has failed ${alert.failures} times in a row or more. First: the error in the log of its last run.`,
    ),
    ...(most === undefined
      ? {}
      : {
          capped: {
            ...latest(
              "CappedInARow",
              { Threshold: most, ComparisonOperator: "GreaterThanOrEqualToThreshold" },
              `Job ${name} has stopped at a bound with work left ${most} times in a row: its backlog doesn't shrink. ` +
                "First: raise its limit or its timeout, or run it more often.",
            ),
            // Sent only while it isn't 0, so that a job that keeps up pays nothing for it.
            Period: periodsOf(2 * everyMs) * 60,
            TreatMissingData: "notBreaching" as const,
          },
        }),
  };
};

/** How many capped runs in a row are too many; a chain that works off a backlog is meant to be capped all along. */
const mostCapped = (work: AlarmedJob["work"]): number | undefined => {
  if (work?.shape !== "source") return undefined;
  return Math.max(3, work.onBacklog === "continue" ? (work.maxChain ?? 0) + 2 : 0);
};

/**
 * The watchdog's own: it hasn't looked, or hasn't been able to judge every job, for two of its periods and two minutes.
 * Looked at by the minute, since what CloudWatch looks back over beyond that is counted in periods.
 */
export const watchdogAlarm = (watchdog: string, service: string, everyMs: number): Alarm => {
  const minutes = periodsOf(2 * everyMs) + 2;
  return {
    AlarmDescription:
      `The watchdog ${watchdog} hasn't looked, or couldn't judge every job, for ${minutes} minutes: missed runs go unnoticed. ` +
      "First: is its schedule enabled, and what does the log of its last run say?",
    ...metricOf("Unwatched", service, watchdog),
    Statistic: "Maximum",
    Period: 60,
    EvaluationPeriods: minutes,
    DatapointsToAlarm: minutes,
    Threshold: 0,
    ComparisonOperator: "GreaterThanThreshold",
    TreatMissingData: "breaching",
  };
};

/**
 * Deliveries or invocations that were given up. A queue that nobody uses stops sending its metrics after some hours, also
 * where messages lie in it, so what is missing is ignored.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-monitoring-using-cloudwatch.html
 */
export const deadLetterAlarm = (queue: string): Alarm => ({
  AlarmDescription:
    `Events that could not be delivered, or whose function failed at every try, lie in ${queue}. ` +
    "First: read one; its attributes say what failed and why.",
  Namespace: "AWS/SQS",
  MetricName: "ApproximateNumberOfMessagesVisible",
  Dimensions: [{ Name: "QueueName", Value: queue }],
  Statistic: "Maximum",
  Period: 60,
  EvaluationPeriods: 1,
  DatapointsToAlarm: 1,
  Threshold: 0,
  ComparisonOperator: "GreaterThanThreshold",
  TreatMissingData: "ignore",
});

const metricOf = (metric: MetricName, service: string, job: string) => ({
  Namespace: namespace,
  MetricName: metric,
  Dimensions: [
    { Name: "service", Value: service },
    { Name: "job", Value: job },
  ],
});

const periodsOf = (durationMs: number): number => Math.ceil(durationMs / 60_000);
