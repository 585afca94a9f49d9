/** What the platform would refuse of a service, or would do otherwise than its definitions say: everything at once. */
import type { DeployedService } from "./deployed-service.ts";

/** One sentence for each problem; none means that the service can be deployed. */
export const deploymentProblems = (_service: DeployedService): string[] => [];
