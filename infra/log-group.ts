/** A function's log group, made before the function, so that its logs aren't kept for ever. */
import { type DeployedJob, jobIds, type ServiceSettings } from "./deployed-service.ts";
import type { Resources } from "./template.ts";

/** https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html */
export const retentionDays: readonly number[] = [
  1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653,
];

export const logGroupResources = (
  { job, functionName }: DeployedJob,
  { logRetentionDays }: Pick<ServiceSettings, "logRetentionDays">,
): Resources => ({
  [jobIds(job.name).logGroup]: {
    Type: "AWS::Logs::LogGroup",
    Properties: { LogGroupName: `/aws/lambda/${functionName}`, RetentionInDays: logRetentionDays },
  },
});
