/** The queue for what was given up. */
import { expect, it } from "vitest";
import { deadLetterResources } from "../../infra/dead-letters.ts";
import { settings } from "./sample-service.ts";

const { CronfenceDeadLetters: queue, CronfenceDeadLettersPolicy: policy } = deadLetterResources(settings);

it("Dead letters are kept for two weeks, which is as long as SQS can, and encrypted", () => {
  expect(queue).toEqual({
    Type: "AWS::SQS::Queue",
    Properties: { QueueName: "shop-prod-dead-letters", MessageRetentionPeriod: 1_209_600, SqsManagedSseEnabled: true },
  });
});

it("Dead letters' queue allows nobody anything by itself, and takes nothing that isn't sent over TLS", () => {
  expect(policy?.Properties).toEqual({
    Queues: [{ Ref: "CronfenceDeadLetters" }],
    PolicyDocument: {
      Version: "2012-10-17",
      Statement: [
        {
          Sid: "OnlyOverTls",
          Effect: "Deny",
          Principal: "*",
          Action: ["sqs:*"],
          Resource: { "Fn::GetAtt": ["CronfenceDeadLetters", "Arn"] },
          Condition: { Bool: { "aws:SecureTransport": "false" } },
        },
      ],
    },
  });
});
