/**
 * Retries come in two kinds, and a job's `retries` reaches both. The scheduler sees only whether Lambda took the event; what
 * the function makes of it, Lambda retries by a setting of the function's own.
 * https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
 */
import type { Job } from "cronfence";
import { platformTriesMs } from "../src/watchdog/duty.ts";
import { type DeployedJob, jobIds, serviceIds } from "./deployed-service.ts";
import { attribute, type Resources, ref } from "./template.ts";

/** The scheduler's. An event that is too old is given up at the moment at which the watchdog begins to heal its tick. */
export const retryPolicy = (job: Job) => ({
  MaximumRetryAttempts: job.deployment.retries,
  MaximumEventAgeInSeconds: ageSeconds(job, 86_400),
});

/** Lambda's, with the queue for events that it gave up. */
export const invocationResources = ({ job, functionLogicalId }: DeployedJob): Resources => ({
  [jobIds(job.name).invocation]: {
    Type: "AWS::Lambda::EventInvokeConfig",
    Properties: {
      FunctionName: ref(functionLogicalId),
      Qualifier: "$LATEST",
      MaximumRetryAttempts: job.deployment.retries,
      MaximumEventAgeInSeconds: ageSeconds(job, 21_600),
      DestinationConfig: { OnFailure: { Destination: attribute(serviceIds.deadLetters, "Arn") } },
    },
  },
});

/** Both take a minute at least; `most` is what each takes at most. */
const ageSeconds = (job: Job, most: number): number =>
  Math.min(most, Math.max(60, Math.ceil(platformTriesMs(job) / 1_000)));
