/**
 * How CloudWatch decides an alarm's state, as far as it is documented:
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
 *
 * - Every minute (every hour where Period × EvaluationPeriods exceeds a day) the latest periods that end at that moment are
 *   looked at; they slide with it.
 * - More data points are fetched than EvaluationPeriods: the evaluation range. How many more, nobody says; the examples have
 *   two. Where points are missing, real ones from farther back are used first: that is what keeps an alarm silent long after
 *   its metric has stopped.
 * - Only then is what is still missing filled in as TreatMissingData says, as few times as possible.
 *
 * What isn't modelled: percentiles, metric math, anomaly detection, and AWS/DynamoDB metrics, for which missing data is
 * treated otherwise.
 */
import { InvalidOptionsError } from "../errors.ts";
import { type Alarm, alarmProblems } from "./alarm.ts";

export type AlarmState = "OK" | "ALARM" | "INSUFFICIENT_DATA";

/** A data point of one period, or the lack of one. */
export type Datum = "breaching" | "within" | "missing";

type Rules = Pick<Alarm, "EvaluationPeriods" | "DatapointsToAlarm" | "TreatMissingData">;

/**
 * The state that follows from the data points of the evaluation range.
 * @param data newest first, as many as the evaluation range has
 */
export const nextState = (rules: Rules, data: readonly Datum[], state: AlarmState): AlarmState => {
  const real = data.flatMap((datum, index) =>
    datum === "missing" ? [] : [{ age: index + 1, breaching: datum === "breaching" }],
  );
  return stateAfter(rules, real.slice(0, rules.EvaluationPeriods), state);
};

/** @param real the newest points that there are, at most EvaluationPeriods; the age of the newest possible is 1 */
const stateAfter = (
  rules: Rules,
  real: readonly { readonly age: number; readonly breaching: boolean }[],
  state: AlarmState,
): AlarmState => {
  const { EvaluationPeriods: needed, DatapointsToAlarm: alarming, TreatMissingData: treatment } = rules;
  let breaching = 0;
  for (const point of real) if (point.breaching) breaching += 1;
  const filledIn = treatment === "breaching" ? needed - real.length : 0;
  if (breaching + filledIn >= alarming) return "ALARM";
  if (real.length === needed || treatment === "breaching" || treatment === "notBreaching") return "OK";
  // Too little is known, and what is known may be all that there is.
  const oldest = real.at(-1);
  if (oldest === undefined) return treatment === "missing" ? "INSUFFICIENT_DATA" : state;
  if (breaching < real.length) return "OK";
  if (treatment === "ignore") return state;
  // Only breaching ones, fewer than it takes: an alarm once the oldest is as many periods old as it takes, not before.
  return oldest.age >= alarming ? "ALARM" : state;
};

/** One value of the alarm's metric. */
export interface MetricPoint {
  /** What instant it stands for, in milliseconds since the epoch. */
  readonly at: number;
  readonly value: number;
  /** When CloudWatch has it. @default `at` */
  readonly knownAt?: number;
}

export interface AlarmChange {
  readonly at: number;
  readonly from: AlarmState;
  readonly to: AlarmState;
}

export interface MonitorOptions {
  /** When the alarm was created, in milliseconds since the epoch. */
  readonly from: number;
  /**
   * How many data points more than EvaluationPeriods are fetched. Not documented: try more than one.
   * @default 2, as in the examples of the documentation
   */
  readonly extraPoints?: number;
}

/** An alarm at work in simulated time. */
export interface AlarmMonitor {
  readonly state: AlarmState;
  /** Takes a value. */
  record(point: MetricPoint): void;
  /** Lets the time go on, and returns the changes of state on the way. */
  advance(through: number): AlarmChange[];
}

/**
 * An alarm that begins to be evaluated at `from`, in the state INSUFFICIENT_DATA as every new one.
 * @throws InvalidOptionsError for an alarm that CloudWatch would refuse
 */
export const monitorAlarm = (alarm: Alarm, { from, extraPoints = 2 }: MonitorOptions): AlarmMonitor => {
  const problems = alarmProblems(alarm);
  if (problems.length > 0) throw new InvalidOptionsError(`alarm on ${alarm.MetricName}`, problems);
  const periodMs = alarm.Period * 1_000;
  const points = alarm.EvaluationPeriods + extraPoints;
  const stepMs = periodMs * alarm.EvaluationPeriods > dayMs ? hourMs : minuteMs;
  let state: AlarmState = "INSUFFICIENT_DATA";
  let evaluatedAt = Math.floor(from / stepMs) * stepMs;
  /** Not known yet, in the order in which they will be. */
  const waiting: MetricPoint[] = [];
  /** Known, and not too old; the oldest first. */
  let known: { readonly minute: number; readonly value: number }[] = [];
  /** Nothing was known at the last evaluation, so without anything new the state stays as it is. */
  let blank = false;

  const arrive = (now: number): void => {
    let count = 0;
    for (const { at, value, knownAt = at } of waiting) {
      if (knownAt > now) break;
      count += 1;
      // Metrics of standard resolution are kept by the minute.
      const minute = Math.floor(at / minuteMs) * minuteMs;
      known.splice(known.findLastIndex((other) => other.minute <= minute) + 1, 0, { minute, value });
    }
    if (count > 0) waiting.splice(0, count);
  };

  /** The newest points that there are at `now`, one for each period that has any. */
  const pointsAt = (now: number) => {
    const real: { age: number; breaching: boolean }[] = [];
    let values: number[] = [];
    let age = 0;
    const close = () => {
      if (values.length > 0) real.push({ age, breaching: breaches(alarm, statistic(alarm.Statistic, values)) });
    };
    for (let index = known.length - 1; index >= 0 && real.length < alarm.EvaluationPeriods; index -= 1) {
      const { minute, value } = known[index] as (typeof known)[number];
      if (minute >= now) continue;
      const itsAge = Math.floor((now - 1 - minute) / periodMs) + 1;
      if (itsAge !== age) {
        close();
        values = [];
        age = itsAge;
      }
      values.push(value);
    }
    if (real.length < alarm.EvaluationPeriods) close();
    return real;
  };

  return {
    get state() {
      return state;
    },
    record: (point) => {
      const { at, knownAt = at } = point;
      const last = waiting.at(-1);
      if (last === undefined || (last.knownAt ?? last.at) <= knownAt) waiting.push(point);
      else {
        const index = waiting.findIndex((other) => (other.knownAt ?? other.at) > knownAt);
        waiting.splice(index, 0, point);
      }
    },
    advance: (through) => {
      const changes: AlarmChange[] = [];
      while (evaluatedAt + stepMs <= through) {
        evaluatedAt += stepMs;
        arrive(evaluatedAt);
        if (known.length === 0 && blank) continue;
        const oldest = evaluatedAt - points * periodMs;
        if (known.some(({ minute }) => minute < oldest)) known = known.filter(({ minute }) => minute >= oldest);
        blank = known.length === 0;
        const to = stateAfter(alarm, pointsAt(evaluatedAt), state);
        if (to !== state) changes.push({ at: evaluatedAt, from: state, to });
        state = to;
      }
      return changes;
    },
  };
};

/** All changes of state of an alarm over a series of values. */
export const replayAlarm = (
  alarm: Alarm,
  series: readonly MetricPoint[],
  options: MonitorOptions & { readonly through: number },
): AlarmChange[] => {
  const monitor = monitorAlarm(alarm, options);
  for (const point of series) monitor.record(point);
  return monitor.advance(options.through);
};

const minuteMs = 60_000;
const hourMs = 3_600_000;
const dayMs = 86_400_000;

const statistic = (name: Alarm["Statistic"], values: readonly number[]): number => {
  if (name === "SampleCount") return values.length;
  if (name === "Maximum") return Math.max(...values);
  if (name === "Minimum") return Math.min(...values);
  const sum = values.reduce((total, value) => total + value, 0);
  return name === "Sum" ? sum : sum / values.length;
};

const breaches = ({ ComparisonOperator, Threshold }: Alarm, value: number): boolean => {
  if (ComparisonOperator === "GreaterThanThreshold") return value > Threshold;
  if (ComparisonOperator === "GreaterThanOrEqualToThreshold") return value >= Threshold;
  return ComparisonOperator === "LessThanThreshold" ? value < Threshold : value <= Threshold;
};
