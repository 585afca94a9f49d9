/** Whom alarms page. */
import { describe, expect, it } from "vitest";
import { alarmActions, alarmTopicResources } from "../../infra/alarm-topic.ts";
import type { Template } from "./cfn-template.ts";
import { settings } from "./sample-service.ts";

describe("A topic that is made for alarms", () => {
  const { CronfenceAlarmKey, CronfenceAlarmTopic, CronfenceAlarmTopicPolicy } = alarmTopicResources(
    settings,
  ) as Template;

  it("is what alarms page, encrypted under a key of its own, which is rotated", () => {
    expect(alarmActions(settings)).toEqual([{ Ref: "CronfenceAlarmTopic" }]);
    expect(CronfenceAlarmTopic.Properties).toEqual({
      TopicName: "shop-prod-alarms",
      KmsMasterKeyId: { "Fn::GetAtt": ["CronfenceAlarmKey", "Arn"] },
    });
    expect(CronfenceAlarmKey.Properties.EnableKeyRotation).toBe(true);
  });

  it("lets CloudWatch publish and use the key, for the service's own alarms only", () => {
    const ofService = {
      StringEquals: { "aws:SourceAccount": { Ref: "AWS::AccountId" } },
      ArnLike: {
        "aws:SourceArn": {
          // biome-ignore lint/suspicious/noTemplateCurlyInString: CloudFormation fills these in
          "Fn::Sub": "arn:${AWS::Partition}:cloudwatch:${AWS::Region}:${AWS::AccountId}:alarm:shop-prod-*",
        },
      },
    };
    const CloudWatch = { Service: "cloudwatch.amazonaws.com" };
    expect(CronfenceAlarmTopicPolicy.Properties.PolicyDocument.Statement).toEqual([
      {
        Sid: "Alarms",
        Effect: "Allow",
        Principal: CloudWatch,
        Action: ["sns:Publish"],
        Resource: { Ref: "CronfenceAlarmTopic" },
        Condition: ofService,
      },
    ]);
    expect(CronfenceAlarmKey.Properties.KeyPolicy.Statement[1]).toEqual({
      Sid: "Alarms",
      Effect: "Allow",
      Principal: CloudWatch,
      Action: ["kms:Decrypt", "kms:GenerateDataKey*"],
      Resource: "*",
      Condition: ofService,
    });
  });
});

it("A topic that is given is paged, and nothing is made; without one nobody is", () => {
  const given = { ...settings, alarmTopic: { arn: "arn:aws:sns:eu-central-1:123456789012:ops" } };
  expect([alarmActions(given), alarmTopicResources(given)]).toEqual([[given.alarmTopic.arn], {}]);
  const nobody = { ...settings, alarmTopic: undefined };
  expect([alarmActions(nobody), alarmTopicResources(nobody)]).toEqual([[], {}]);
});
