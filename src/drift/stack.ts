/**
 * A deployed stack, and what a template's references come to in it: `Ref`, `Fn::GetAtt`, `Fn::Sub` and `Fn::Join` of things
 * whose value follows from the stack's own list of its resources. Anything else (another stack's export, a secret that
 * CloudFormation fetches, a condition) is unknown, and is never called drift.
 */

export interface Stack {
  readonly name: string;
  readonly region: string;
  readonly account: string;
  readonly partition: string;
  /** By name; those that CloudFormation doesn't show aren't here. */
  readonly parameters: Readonly<Record<string, string>>;
  /** By logical id. */
  readonly resources: Readonly<Record<string, { readonly type: string; readonly physicalId: string }>>;
}

/** What can't be known from outside of CloudFormation. */
const unknown = Symbol("unknown");

/** Whether a value, or anything in it, is unknown. */
export const isUnknown = (value: unknown): boolean =>
  value === unknown || (typeof value === "object" && value !== null && Object.values(value).some(isUnknown));

/** A value of a template, with its references replaced by what they come to. */
export const resolved = (value: unknown, stack: Stack): unknown => {
  if (typeof value === "string") return value.includes("{{resolve:") ? unknown : value;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((each) => resolved(each, stack));
  const [key = "", ...more] = Object.keys(value);
  if (more.length === 0 && (key === "Ref" || key.startsWith("Fn::"))) {
    const argument = (value as Record<string, unknown>)[key];
    return functions[key]?.(argument, stack) ?? unknown;
  }
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, resolved(each, stack)]));
};

const functions: Readonly<Record<string, (argument: unknown, stack: Stack) => unknown>> = {
  Ref: (name, stack) => reference(String(name), stack),
  "Fn::GetAtt": (path, stack) => {
    const [id, ...attribute] = Array.isArray(path) ? path.map(String) : String(path).split(".");
    return attributeOf(id as string, attribute.join("."), stack);
  },
  "Fn::Sub": (argument, stack) => {
    const [text, given] = Array.isArray(argument) ? [String(argument[0]), argument[1]] : [String(argument), {}];
    return substituted(text, resolved(given, stack) as Record<string, unknown>, stack);
  },
  "Fn::Join": (argument, stack) => {
    const [separator, parts] = argument as [string, unknown];
    const list = resolved(parts, stack);
    return Array.isArray(list) && !isUnknown(list) ? list.join(separator) : unknown;
  },
};

const substituted = (text: string, given: Record<string, unknown>, stack: Stack): unknown => {
  let complete = true;
  const result = text.replace(/\$\{(!?)([^}]+)\}/g, (whole, literal: string, name: string) => {
    if (literal !== "") return whole.replace("!", "");
    const [id, ...attribute] = name.split(".");
    const found =
      given[name] ??
      (attribute.length > 0 ? attributeOf(id as string, attribute.join("."), stack) : reference(name, stack));
    complete &&= found !== unknown;
    return String(complete ? found : "");
  });
  return complete ? result : unknown;
};

/** https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/pseudo-parameter-reference.html */
const reference = (
  name: string,
  { region, account, partition, name: stackName, parameters, resources }: Stack,
): unknown => {
  const pseudo: Readonly<Record<string, string>> = {
    "AWS::Region": region,
    "AWS::AccountId": account,
    "AWS::Partition": partition,
    "AWS::StackName": stackName,
    "AWS::URLSuffix": partition === "aws-cn" ? "amazonaws.com.cn" : "amazonaws.com",
  };
  return pseudo[name] ?? parameters[name] ?? resources[name]?.physicalId ?? unknown;
};

/** The attributes of which a stack's list of resources says enough. */
const attributeOf = (id: string, attribute: string, stack: Stack): unknown => {
  const resource = stack.resources[id];
  if (resource === undefined) return unknown;
  const { type, physicalId } = resource;
  const name = physicalId.slice(physicalId.lastIndexOf("/") + 1);
  if (type === "AWS::SQS::Queue" && attribute === "QueueName") return name;
  if (attribute !== "Arn") return unknown;
  if (physicalId.startsWith("arn:")) return physicalId;
  const arn = (service: string, rest: string, region = stack.region) =>
    `arn:${stack.partition}:${service}:${region}:${stack.account}:${rest}`;
  const arns: Readonly<Record<string, string>> = {
    "AWS::Lambda::Function": arn("lambda", `function:${physicalId}`),
    "AWS::IAM::Role": arn("iam", `role/${physicalId}`, ""),
    "AWS::SQS::Queue": arn("sqs", name),
    "AWS::DynamoDB::Table": arn("dynamodb", `table/${physicalId}`),
    "AWS::Logs::LogGroup": arn("logs", `log-group:${physicalId}:*`),
    "AWS::Scheduler::ScheduleGroup": arn("scheduler", `schedule-group/${name}`),
  };
  return arns[type] ?? unknown;
};
