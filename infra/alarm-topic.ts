/**
 * Whom alarms page. A topic that is made with the stack is encrypted under a key of its own: the key that AWS manages for SNS
 * doesn't let CloudWatch in, whose alarms would go off and tell nobody. The same goes for the key of a topic that is given.
 * https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html#compatibility-with-aws-services
 */
import { fullName, type ServiceSettings, serviceIds } from "./deployed-service.ts";
import { attribute, ownArn, policy, type Resources, ref, type Value } from "./template.ts";

type TopicSettings = Pick<ServiceSettings, "service" | "stage" | "alarmTopic">;

export const alarmActions = ({ alarmTopic }: TopicSettings): readonly Value[] =>
  alarmTopic === undefined ? [] : ["arn" in alarmTopic ? alarmTopic.arn : ref(serviceIds.alarmTopic)];

export const alarmTopicResources = (settings: TopicSettings): Resources => {
  const { alarmTopic } = settings;
  if (alarmTopic === undefined || "arn" in alarmTopic) return {};
  const alarmsOfService = {
    StringEquals: { "aws:SourceAccount": ref("AWS::AccountId") },
    ArnLike: { "aws:SourceArn": ownArn("cloudwatch", `alarm:${fullName(settings)}-*`) },
  };
  const cloudWatch = { Service: "cloudwatch.amazonaws.com" };
  return {
    [serviceIds.alarmKey]: {
      Type: "AWS::KMS::Key",
      Properties: {
        Description: `Alarms of ${fullName(settings)}`,
        EnableKeyRotation: true,
        // In a key's policy "*" means this key: https://docs.aws.amazon.com/kms/latest/developerguide/key-policy-overview.html
        KeyPolicy: policy([
          {
            Sid: "Administration",
            Effect: "Allow",
            // biome-ignore lint/suspicious/noTemplateCurlyInString: CloudFormation fills these in
            Principal: { AWS: { "Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:root" } },
            Action: ["kms:*"],
            Resource: "*",
          },
          {
            Sid: "Alarms",
            Effect: "Allow",
            Principal: cloudWatch,
            Action: ["kms:Decrypt", "kms:GenerateDataKey*"],
            Resource: "*",
            Condition: alarmsOfService,
          },
        ]),
      },
    },
    [serviceIds.alarmTopic]: {
      Type: "AWS::SNS::Topic",
      Properties: {
        TopicName: `${fullName(settings)}-alarms`,
        KmsMasterKeyId: attribute(serviceIds.alarmKey, "Arn"),
      },
    },
    [serviceIds.alarmTopicPolicy]: {
      Type: "AWS::SNS::TopicPolicy",
      Properties: {
        Topics: [ref(serviceIds.alarmTopic)],
        PolicyDocument: policy([
          {
            Sid: "Alarms",
            Effect: "Allow",
            Principal: cloudWatch,
            Action: ["sns:Publish"],
            Resource: ref(serviceIds.alarmTopic),
            Condition: alarmsOfService,
          },
        ]),
      },
    },
  };
};
