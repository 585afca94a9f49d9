import { describe, expect, it } from "vitest";
import { isUnknown, resolved, type Stack } from "../../src/drift/stack.ts";

const stack: Stack = {
  name: "shop-prod",
  region: "eu-central-1",
  account: "123456789012",
  partition: "aws",
  parameters: { Level: "high" },
  resources: {
    Fn: { type: "AWS::Lambda::Function", physicalId: "shop-prod-fn" },
    Role: { type: "AWS::IAM::Role", physicalId: "shop-prod-role-1A2B" },
    Queue: { type: "AWS::SQS::Queue", physicalId: "https://sqs.eu-central-1.amazonaws.com/123456789012/dead" },
    Topic: { type: "AWS::SNS::Topic", physicalId: "arn:aws:sns:eu-central-1:123456789012:alarms" },
    Table: { type: "AWS::DynamoDB::Table", physicalId: "jobs" },
    Group: { type: "AWS::Scheduler::ScheduleGroup", physicalId: "shop-prod" },
    Key: { type: "AWS::KMS::Key", physicalId: "1234-abcd" },
  },
};

// CloudFormation fills these in, not JavaScript.
const filled = (text: string) => text.replaceAll("<", "${").replaceAll(">", "}");

describe("a reference in a template", () => {
  it.each([
    ["a resource", { Ref: "Group" }, "shop-prod"],
    ["a parameter", { Ref: "Level" }, "high"],
    ["the region", { Ref: "AWS::Region" }, "eu-central-1"],
    [
      "a function's ARN",
      { "Fn::GetAtt": ["Fn", "Arn"] },
      "arn:aws:lambda:eu-central-1:123456789012:function:shop-prod-fn",
    ],
    [
      "the same, as one text",
      { "Fn::GetAtt": "Fn.Arn" },
      "arn:aws:lambda:eu-central-1:123456789012:function:shop-prod-fn",
    ],
    ["a role's ARN", { "Fn::GetAtt": ["Role", "Arn"] }, "arn:aws:iam::123456789012:role/shop-prod-role-1A2B"],
    ["a queue's ARN", { "Fn::GetAtt": ["Queue", "Arn"] }, "arn:aws:sqs:eu-central-1:123456789012:dead"],
    ["a queue's name", { "Fn::GetAtt": ["Queue", "QueueName"] }, "dead"],
    ["a topic", { Ref: "Topic" }, "arn:aws:sns:eu-central-1:123456789012:alarms"],
    ["a table's ARN", { "Fn::GetAtt": ["Table", "Arn"] }, "arn:aws:dynamodb:eu-central-1:123456789012:table/jobs"],
    [
      "a text",
      { "Fn::Sub": filled("a-<AWS::Partition>-<Table>-<Fn.Arn>-<!Literal>") },
      "a-aws-jobs-arn:aws:lambda:eu-central-1:123456789012:function:shop-prod-fn-".concat(filled("<Literal>")),
    ],
    [
      "a text with values of its own",
      { "Fn::Sub": [filled("<name>/<Group>"), { name: { Ref: "Level" } }] },
      "high/shop-prod",
    ],
    ["a joined list", { "Fn::Join": [":", ["a", { Ref: "Table" }]] }, "a:jobs"],
  ])("to %s is what it comes to in the stack", (_what, value, expected) => {
    expect(resolved({ deep: [value] }, stack)).toEqual({ deep: [expected] });
  });

  it.each([
    ["another stack's export", { "Fn::ImportValue": "shared-topic" }],
    ["a resource that isn't deployed", { Ref: "Nothing" }],
    ["an attribute that nobody can know", { "Fn::GetAtt": ["Key", "Arn"] }],
    ["a secret", "{{resolve:secretsmanager:token}}"],
    ["a condition", { "Fn::If": ["IsProd", 1, 2] }],
    ["a text with one of them", { "Fn::Sub": filled("x-<Nothing>") }],
    ["a list with one of them", { "Fn::Join": ["", ["a", { "Fn::ImportValue": "b" }]] }],
  ])("to %s is unknown", (_what, value) => {
    expect(isUnknown(resolved({ deep: [value] }, stack))).toBe(true);
  });

  it("isn't seen in what only looks like one", () => {
    const value = { Ref: "Table", Other: 1, text: "Ref" };
    expect(resolved(value, stack)).toEqual(value);
  });
});
