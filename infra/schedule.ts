/**
 * When a job is delivered, and by whom: a schedule in the service's group, on a role of its own that can do nothing but invoke
 * the job's function and send to the queue for dead letters.
 *
 * `jitter` is the schedule's flexible window, within which AWS chooses the moment; a run itself never waits, so starts are
 * spread once. The window is rounded down to whole minutes, so that none starts later than the job's jitter says (and the
 * alarms allow); EventBridge spreads deliveries over a minute anyhow.
 */
import type { Job } from "cronfence";
import { type DeployedJob, fullName, jobIds, type ServiceSettings, serviceIds } from "./deployed-service.ts";
import { retryPolicy } from "./retry-policy.ts";
import { scheduleExpression } from "./schedule-expression.ts";
import { attribute, policy, type Resources, ref } from "./template.ts";

export const scheduleGroupResources = (settings: Pick<ServiceSettings, "service" | "stage">): Resources => ({
  [serviceIds.scheduleGroup]: { Type: "AWS::Scheduler::ScheduleGroup", Properties: { Name: fullName(settings) } },
});

/** Minutes; 0 for none. https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-flexible-time-windows.html */
export const flexibleMinutes = ({ jitterMs }: Pick<Job, "jitterMs">): number => Math.floor(jitterMs / 60_000);

/** None for a job that runs only by hand. */
export const scheduleResources = ({ job, functionLogicalId }: DeployedJob): Resources => {
  const { schedule, name } = job;
  if (schedule === undefined) return {};
  const found = scheduleExpression(schedule);
  if ("problem" in found) throw new Error(`job "${name}" can't be scheduled: ${found.problem}`);
  const ids = jobIds(name);
  const window = flexibleMinutes(job);
  const target = attribute(functionLogicalId, "Arn");
  const deadLetters = attribute(serviceIds.deadLetters, "Arn");
  return {
    [ids.schedule]: {
      Type: "AWS::Scheduler::Schedule",
      Properties: {
        // Unique in the group, so that the job's own name is enough.
        Name: name,
        GroupName: ref(serviceIds.scheduleGroup),
        ...(job.deployment.description === undefined ? {} : { Description: job.deployment.description }),
        ScheduleExpression: found.expression,
        ScheduleExpressionTimezone: found.zone,
        FlexibleTimeWindow: window === 0 ? { Mode: "OFF" } : { Mode: "FLEXIBLE", MaximumWindowInMinutes: window },
        State: "ENABLED",
        Target: {
          Arn: target,
          RoleArn: attribute(ids.scheduleRole, "Arn"),
          Input: scheduleInput(name),
          RetryPolicy: retryPolicy(job),
          DeadLetterConfig: { Arn: deadLetters },
        },
      },
    },
    [ids.scheduleRole]: {
      Type: "AWS::IAM::Role",
      Properties: {
        AssumeRolePolicyDocument: policy([
          {
            Effect: "Allow",
            Principal: { Service: "scheduler.amazonaws.com" },
            Action: ["sts:AssumeRole"],
            // Schedules of this group only: https://docs.aws.amazon.com/scheduler/latest/UserGuide/cross-service-confused-deputy-prevention.html
            Condition: {
              StringEquals: {
                "aws:SourceAccount": ref("AWS::AccountId"),
                "aws:SourceArn": attribute(serviceIds.scheduleGroup, "Arn"),
              },
            },
          },
        ]),
        Policies: [
          {
            PolicyName: "deliver",
            PolicyDocument: policy([
              { Sid: "Invoke", Effect: "Allow", Action: ["lambda:InvokeFunction"], Resource: target },
              { Sid: "DeadLetters", Effect: "Allow", Action: ["sqs:SendMessage"], Resource: deadLetters },
            ]),
          },
        ],
      },
    },
  };
};

/**
 * The event, as `cronfence/lambda` reads it. The scheduled time is the tick; the execution id is another one at each attempt.
 * https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
 */
const scheduleInput = (jobName: string): string =>
  JSON.stringify({
    job: jobName,
    scheduledTime: "<aws.scheduler.scheduled-time>",
    attempt: "<aws.scheduler.attempt-number>",
    executionId: "<aws.scheduler.execution-id>",
    scheduleArn: "<aws.scheduler.schedule-arn>",
  });
