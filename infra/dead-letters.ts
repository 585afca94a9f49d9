/**
 * The queue for what was given up: deliveries that the scheduler couldn't make, and events whose function failed at every
 * try. Nothing is lost with a message, since the tick stays owed; it says what failed and why.
 */
import { fullName, type ServiceSettings, serviceIds } from "./deployed-service.ts";
import { attribute, policy, type Resources, ref } from "./template.ts";

const fortnightSeconds = 14 * 86_400;

export const deadLetterQueueName = (settings: Pick<ServiceSettings, "service" | "stage">): string =>
  `${fullName(settings)}-dead-letters`;

/**
 * Messages are kept as long as SQS can, encrypted under its own keys. The queue's policy allows nobody anything: the scheduler
 * sends under the schedule's role and Lambda under the function's, each of which is allowed to
 * (https://docs.aws.amazon.com/scheduler/latest/UserGuide/configuring-schedule-dlq.html), so other accounts can't. What isn't
 * sent over TLS is denied.
 */
export const deadLetterResources = (settings: Pick<ServiceSettings, "service" | "stage">): Resources => ({
  [serviceIds.deadLetters]: {
    Type: "AWS::SQS::Queue",
    Properties: {
      QueueName: deadLetterQueueName(settings),
      MessageRetentionPeriod: fortnightSeconds,
      SqsManagedSseEnabled: true,
    },
  },
  [serviceIds.deadLettersPolicy]: {
    Type: "AWS::SQS::QueuePolicy",
    Properties: {
      Queues: [ref(serviceIds.deadLetters)],
      PolicyDocument: policy([
        {
          Sid: "OnlyOverTls",
          Effect: "Deny",
          Principal: "*",
          Action: ["sqs:*"],
          Resource: attribute(serviceIds.deadLetters, "Arn"),
          Condition: { Bool: { "aws:SecureTransport": "false" } },
        },
      ]),
    },
  },
});
