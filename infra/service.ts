/**
 * `cronfence/infra`: a service's jobs as CloudFormation resources: what the serverless plugin, or a build of your own, puts into a template.
 * Ask `deploymentProblems` first, add `serviceResources`, and give each function its `functionSettings`.
 */
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
export { serviceResources } from "./service-resources.ts";
export type { Intrinsic, Resource, Resources, Statement, Value } from "./template.ts";
