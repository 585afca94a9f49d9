/** What a job's own options ask to be told of its runs. */
import type { Clock } from "../clock.ts";
import { unknownOption } from "../unknown-option.ts";
import type { Logger } from "./log.ts";
import { type MetricsKind, metricsKinds } from "./metrics.ts";
import type { RunObserver } from "./observers.ts";
import { isPingUrl, type PingUrls, pingKinds, runPings } from "./ping.ts";
import { runMetrics, sinkOf } from "./run-metrics.ts";

export interface ObservationOptions {
  readonly metrics?: MetricsKind;
  readonly ping?: PingUrls;
}

export const standardObservers = (
  { metrics, ping }: ObservationOptions,
  deps: { clock: Clock; log: Logger },
): RunObserver[] => {
  const sink = sinkOf(metrics ?? "off", deps.log);
  return [
    ...(sink === undefined ? [] : [runMetrics(sink)]),
    ...(ping === undefined ? [] : [runPings(ping, { clock: deps.clock })]),
  ];
};

/** What is wrong with these options, and with the environment's where one is left out; for callers without a schema. */
export const observationProblems = ({ metrics, ping }: ObservationOptions): string[] => {
  const problems: string[] = [];
  if (metrics !== undefined && !metricsKinds.includes(metrics)) {
    problems.push(`metrics is ${JSON.stringify(metrics)}, and must be "emf", "cloudwatch" or "off"`);
  }
  for (const [key, url] of Object.entries(ping ?? {})) {
    if (!pingKinds.some((kind) => kind === key)) problems.push(unknownOption(`ping.${key}`, pingKinds));
    else if (!isPingUrl(url)) problems.push(`ping.${key} is ${JSON.stringify(url)}, and must be an http or https URL`);
  }
  try {
    if (metrics === undefined) defaultMetrics();
  } catch (error) {
    problems.push((error as Error).message);
  }
  return problems;
};

/**
 * Where metrics go if nothing else is said: the environment's CRONFENCE_METRICS, or else nowhere.
 * @throws RangeError where it is none of "emf", "cloudwatch" and "off"
 */
export const defaultMetrics = (): MetricsKind => {
  const kind = process.env.CRONFENCE_METRICS || "off";
  const known = metricsKinds.find((each) => each === kind);
  if (known !== undefined) return known;
  throw new RangeError(`the environment's CRONFENCE_METRICS is "${kind}", and must be "emf", "cloudwatch" or "off"`);
};
