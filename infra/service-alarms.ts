/** The alarms of all of a service's jobs, of the watchdog on whose metrics they stand, and of the queue for dead letters. */

import { alarmActions } from "./alarm-topic.ts";
import {
  type AlarmResources,
  type AlarmSettings,
  deadLetterAlarmResources,
  jobAlarmResources,
  watchdogAlarmResources,
} from "./alarms.ts";
import { type DeployedJob, type DeployedService, fullName, serviceIds } from "./deployed-service.ts";
import { attribute } from "./template.ts";

/** The service's watchdog; where it has several, `deploymentProblems` says so. */
export const watchdogOf = ({ jobs }: DeployedService): DeployedJob | undefined =>
  jobs.find(({ job }) => job.watches !== undefined);

/**
 * Jobs have theirs only where a watchdog is: without its metrics they could never go off. None for a job with `alarms: false`.
 * @throws InvalidAlarmError for one that CloudWatch would refuse
 */
export const serviceAlarmResources = (service: DeployedService): AlarmResources => {
  const settings = alarmSettings(service);
  const watchdog = watchdogOf(service);
  return Object.assign(
    {},
    ...(watchdog === undefined ? [] : service.jobs.map((deployed) => alarmsOf(deployed, settings))),
    deadLetterAlarmResources("dead-letters", attribute(serviceIds.deadLetters, "QueueName"), settings),
  );
};

/** One job's: a watchdog's own says that it is absent. */
export const alarmsOf = ({ job }: DeployedJob, settings: AlarmSettings): AlarmResources => {
  if (!job.deployment.alarms) return {};
  return job.watches === undefined ? jobAlarmResources(job, settings) : watchdogAlarmResources(job.name, settings);
};

export const alarmSettings = (service: DeployedService): AlarmSettings => {
  const { everyMs, service: dimension } = watchdogOf(service)?.job.watches ?? { everyMs: 300_000, service: undefined };
  return {
    service: fullName(service.settings),
    ...(dimension === undefined ? {} : { dimension }),
    everyMs,
    actions: alarmActions(service.settings),
  };
};
