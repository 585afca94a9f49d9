/**
 * All that a service's jobs need beside their functions, as CloudFormation resources: roles, schedules, retries, log groups,
 * the queue for dead letters, alarms, the dashboard and the control table. Pure: the same jobs and settings give the same
 * resources, byte for byte, in whatever order the jobs come.
 *
 * Names: what people look for by name has one, made of service, stage and job, and one that is too long is a problem that is
 * told, never cut. Roles and the alarm topic's key have none of ours: CloudFormation makes one up, so that they can be replaced.
 */
import { alarmTopicResources } from "./alarm-topic.ts";
import { controlTableResources } from "./control-table.ts";
import { dashboardResources } from "./dashboard.ts";
import { deadLetterResources } from "./dead-letters.ts";
import type { DeployedService } from "./deployed-service.ts";
import { jobRoleResources } from "./job-role.ts";
import { logGroupResources } from "./log-group.ts";
import { invocationResources } from "./retry-policy.ts";
import { scheduleGroupResources, scheduleResources } from "./schedule.ts";
import { serviceAlarmResources } from "./service-alarms.ts";
import type { Resources } from "./template.ts";

/**
 * By logical id; see `jobIds` and `serviceIds`. The functions, which these refer to by their logical ids, aren't among them.
 * @throws Error for a service of which `deploymentProblems` names a problem: ask it first
 */
export const serviceResources = (given: DeployedService): Resources => {
  const service = inOrder(given);
  const { jobs, settings } = service;
  const alarms = serviceAlarmResources(service);
  return Object.assign(
    {},
    controlTableResources(settings),
    deadLetterResources(settings),
    scheduleGroupResources(settings),
    alarmTopicResources(settings),
    ...jobs.flatMap((deployed) => [
      logGroupResources(deployed, settings),
      jobRoleResources(deployed, service),
      invocationResources(deployed),
      scheduleResources(deployed),
    ]),
    alarms,
    dashboardResources(service, alarms),
  );
};

const inOrder = ({ jobs, settings }: DeployedService): DeployedService => ({
  jobs: [...jobs].sort((one, other) => (one.job.name < other.job.name ? -1 : 1)),
  settings,
});
