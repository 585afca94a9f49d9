/**
 * A service's dashboard: what is in alarm, what is late or fails in a row, how long functions take, what they work off, and what
 * was given up. It shows metrics that are there anyway, and makes none.
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html
 */
import type { Job } from "cronfence";
import { namespace } from "../src/observe/metrics.ts";
import type { AlarmResources } from "./alarms.ts";
import { deadLetterQueueName } from "./dead-letters.ts";
import { type DeployedService, fullName, type ServiceSettings, serviceIds } from "./deployed-service.ts";
import { watchdogOf } from "./service-alarms.ts";
import type { Resources } from "./template.ts";

type Metric = readonly unknown[];

interface Widget {
  readonly type: "alarm" | "metric";
  readonly width: number;
  readonly height: number;
  readonly properties: Readonly<Record<string, unknown>>;
}

/** What one widget shows at most: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_limits.html */
const mostMetrics = 500;
const mostAlarms = 100;

/** @param alarms those of the service */
export const dashboardResources = (service: DeployedService, alarms: AlarmResources): Resources => {
  const { settings } = service;
  if (settings.dashboard === false) return {};
  const body = { periodOverride: "inherit", widgets: placed(widgetsOf(service, alarms)) };
  return {
    [serviceIds.dashboard]: {
      Type: "AWS::CloudWatch::Dashboard",
      Properties: { DashboardName: fullName(settings), DashboardBody: { "Fn::Sub": JSON.stringify(body) } },
    },
  };
};

const widgetsOf = (service: DeployedService, alarms: AlarmResources): Widget[] => {
  const { jobs, settings } = service;
  const watched = jobs.filter(({ job }) => job.watches === undefined).map(({ job }) => job);
  const dimension = watchdogOf(service)?.job.watches?.service ?? fullName(settings);
  const fromWatchdog = (metric: string, of: readonly Job[]): Metric[] =>
    of.map(({ name }) => [namespace, metric, "service", dimension, "job", name, { label: name }]);
  const ofFunctions = (metric: string): Metric[] =>
    jobs.map(({ job, functionName }) => ["AWS/Lambda", metric, "FunctionName", functionName, { label: job.name }]);
  const items = jobs
    .filter(({ job }) => sendsMetrics(job, settings))
    .map(({ job: { name } }) => [namespace, "Items", "service", fullName(settings), "job", name, { label: name }]);
  const scheduled = watched.filter(({ schedule }) => schedule !== undefined);
  return [
    alarmWidget(alarms),
    graph("Overdue (seconds)", "Maximum", fromWatchdog("Overdue", scheduled)),
    graph("Failures in a row", "Maximum", fromWatchdog("ConsecutiveFailures", watched)),
    graph("Duration (milliseconds)", "Maximum", ofFunctions("Duration")),
    graph("Errors", "Sum", ofFunctions("Errors")),
    graph("Items", "Sum", items),
    graph("Dead letters", "Maximum", [
      [
        "AWS/SQS",
        "ApproximateNumberOfMessagesVisible",
        "QueueName",
        deadLetterQueueName(settings),
        { label: "messages" },
      ],
    ]),
  ].flat();
};

const sendsMetrics = ({ metrics, deployment }: Job, { environment }: ServiceSettings): boolean => {
  const ofEnvironment = deployment.environment.CRONFENCE_METRICS ?? environment?.CRONFENCE_METRICS ?? "off";
  return metrics !== "off" || ofEnvironment !== "off";
};

const alarmWidget = (alarms: AlarmResources): Widget[] => {
  const arns = Object.values(alarms)
    .map(({ Properties }) => Properties.AlarmName)
    .sort()
    .map((name) => `arn:\${AWS::Partition}:cloudwatch:\${AWS::Region}:\${AWS::AccountId}:alarm:${name}`);
  if (arns.length === 0) return [];
  return [
    {
      type: "alarm",
      width: 24,
      height: Math.min(12, 2 + Math.ceil(arns.length / 4)),
      properties: { title: "Alarms", alarms: arns.slice(0, mostAlarms) },
    },
  ];
};

const graph = (title: string, stat: string, metrics: readonly Metric[]): Widget[] =>
  metrics.length === 0
    ? []
    : [
        {
          type: "metric",
          width: 12,
          height: 6,
          properties: {
            title,
            view: "timeSeries",
            stacked: false,
            // biome-ignore lint/suspicious/noTemplateCurlyInString: CloudFormation fills it in
            region: "${AWS::Region}",
            stat,
            period: 300,
            metrics: metrics.slice(0, mostMetrics),
          },
        },
      ];

/** From left to right, and in the next row where a row of 24 is full. */
const placed = (widgets: readonly Widget[]) => {
  let x = 0;
  let y = 0;
  let rowHeight = 0;
  return widgets.map((widget) => {
    if (x + widget.width > 24) {
      x = 0;
      y += rowHeight;
      rowHeight = 0;
    }
    const place = { type: widget.type, x, y, width: widget.width, height: widget.height };
    x += widget.width;
    rowHeight = Math.max(rowHeight, widget.height);
    return { ...place, properties: widget.properties };
  });
};
