/**
 * A CloudWatch alarm on one metric, with CloudFormation's own names, so that what is evaluated in a rehearsal is what is
 * deployed. https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudwatch-alarm.html
 */

export interface Alarm {
  readonly AlarmDescription: string;
  readonly Namespace: string;
  readonly MetricName: string;
  readonly Dimensions: readonly { readonly Name: string; readonly Value: string }[];
  readonly Statistic: "Maximum" | "Minimum" | "Sum" | "Average" | "SampleCount";
  /** In seconds. */
  readonly Period: number;
  /** N: how many of the latest periods are looked at. */
  readonly EvaluationPeriods: number;
  /** M: how many of those must be breaching. */
  readonly DatapointsToAlarm: number;
  readonly Threshold: number;
  readonly ComparisonOperator:
    | "GreaterThanThreshold"
    | "GreaterThanOrEqualToThreshold"
    | "LessThanThreshold"
    | "LessThanOrEqualToThreshold";
  readonly TreatMissingData: "breaching" | "notBreaching" | "ignore" | "missing";
}

/**
 * What CloudWatch would refuse of an alarm on a metric of standard resolution.
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
 */
export const alarmProblems = (alarm: Alarm): string[] => {
  const { Period, EvaluationPeriods, DatapointsToAlarm, Threshold } = alarm;
  const windowSeconds = Period * EvaluationPeriods;
  const mostSeconds = Period < 3_600 ? 86_400 : 604_800;
  return [
    ...(Number.isInteger(Period) && Period >= 60 && Period % 60 === 0
      ? []
      : [`Period is ${Period}, and must be a multiple of 60 seconds`]),
    ...(Number.isInteger(EvaluationPeriods) && EvaluationPeriods >= 1
      ? []
      : [`EvaluationPeriods is ${EvaluationPeriods}, and must be a whole number of at least 1`]),
    ...(Number.isInteger(DatapointsToAlarm) && DatapointsToAlarm >= 1 && DatapointsToAlarm <= EvaluationPeriods
      ? []
      : [
          `DatapointsToAlarm is ${DatapointsToAlarm}, and must be a whole number from 1 to EvaluationPeriods (${EvaluationPeriods})`,
        ]),
    ...(windowSeconds <= mostSeconds
      ? []
      : [
          `Period × EvaluationPeriods is ${windowSeconds} seconds, and must be at most ${mostSeconds}` +
            `${Period < 3_600 ? " where Period is less than an hour" : ""}`,
        ]),
    ...(Number.isFinite(Threshold) ? [] : [`Threshold is ${Threshold}, and must be a number`]),
  ];
};
