/** What CloudFormation makes of intrinsic functions, as far as the builders use them, in an account and Region of its own. */
import type { Template } from "./cfn-template.ts";

export const account = "123456789012";
export const region = "eu-central-1";

const pseudo: Readonly<Record<string, string>> = {
  "AWS::Partition": "aws",
  "AWS::AccountId": account,
  "AWS::Region": region,
};

/** The value with all functions worked out; parameters by their names. A resource that has no name is called by its logical id. */
export const resolved = (
  value: Template,
  template: Template,
  parameters: Readonly<Record<string, unknown>> = {},
): Template => {
  const again = (inner: Template): Template => resolved(inner, template, parameters);
  if (Array.isArray(value)) return value.map(again).filter((each) => each !== noValue);
  if (typeof value !== "object" || value === null) return value;
  const [name, argument] = Object.entries(value)[0] ?? [];
  if (Object.keys(value).length === 1) {
    if (name === "Ref") return referred(argument as string, template, parameters, again);
    if (name === "Fn::GetAtt") return attributeOf(argument as [string, string], template, again);
    if (name === "Fn::Sub") return substituted(argument as Template, again);
    if (name === "Fn::If") {
      const [condition, yes, no] = argument as [string, unknown, unknown];
      return again(holds({ Condition: condition }, template, again) ? yes : no);
    }
    if (name === "Fn::Join") {
      const [separator, parts] = argument as [string, unknown];
      return again(parts).join(separator);
    }
  }
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, inner]) => [key, again(inner)])
      .filter(([, inner]) => inner !== noValue),
  );
};

/** All resources whose conditions hold, with everything worked out. */
export const resolvedResources = (template: Template, parameters: Readonly<Record<string, unknown>>): Template => {
  const again = (value: Template): Template => resolved(value, template, parameters);
  return Object.fromEntries(
    Object.entries(template.Resources as Template)
      .filter(
        ([, { Condition }]: [string, Template]) => Condition === undefined || holds({ Condition }, template, again),
      )
      .map(([id, { Condition, Properties, ...rest }]: [string, Template]) => [
        id,
        { ...rest, Properties: again(Properties) },
      ]),
  );
};

const noValue = Symbol("AWS::NoValue");

const referred = (
  id: string,
  template: Template,
  parameters: Readonly<Record<string, unknown>>,
  again: (value: Template) => Template,
) => {
  if (id === "AWS::NoValue") return noValue;
  if (pseudo[id] !== undefined) return pseudo[id];
  if (id in parameters) return parameters[id];
  const parameter = template.Parameters?.[id];
  if (parameter?.Type === "Number") return Number(parameter.Default);
  if (parameter?.Type === "CommaDelimitedList") return parameter.Default.split(",");
  if (parameter !== undefined) return parameter.Default;
  return nameOf(id, template, again);
};

const substituted = (argument: Template, again: (value: Template) => Template): string =>
  (argument as string).replace(/\$\{([A-Za-z0-9:.]+)\}/g, (_, id: string) => {
    const [resource, attribute] = id.split(".") as [string, string?];
    return again(attribute === undefined ? { Ref: id } : { "Fn::GetAtt": [resource, attribute] });
  });

const holds = (condition: Template, template: Template, again: (value: Template) => Template): boolean => {
  const [name, argument] = Object.entries(condition)[0] as [string, Template];
  const inner = (each: Template) => holds(each, template, again);
  if (name === "Condition") return inner(template.Conditions[argument]);
  if (name === "Fn::Not") return !inner(argument[0]);
  if (name === "Fn::And") return argument.every(inner);
  if (name === "Fn::Or") return argument.some(inner);
  if (name !== "Fn::Equals") throw new Error(`${name} isn't worked out here`);
  const [one, other] = again(argument);
  return String(one) === String(other);
};

/** By the property that names a resource of each type. */
const names: Readonly<Record<string, readonly [property: string, arn: (name: string) => string]>> = {
  "AWS::DynamoDB::Table": ["TableName", (name) => own("dynamodb", `table/${name}`)],
  "AWS::Lambda::Function": ["FunctionName", (name) => own("lambda", `function:${name}`)],
  "AWS::Logs::LogGroup": ["LogGroupName", (name) => own("logs", `log-group:${name}:*`)],
  "AWS::SQS::Queue": ["QueueName", (name) => own("sqs", name)],
  "AWS::SNS::Topic": ["TopicName", (name) => own("sns", name)],
  "AWS::Scheduler::ScheduleGroup": ["Name", (name) => own("scheduler", `schedule-group/${name}`)],
  "AWS::IAM::Role": ["RoleName", (name) => `arn:aws:iam::${account}:role/${name}`],
  "AWS::KMS::Key": ["", (name) => own("kms", `key/${name}`)],
};

const own = (service: string, rest: string): string => `arn:aws:${service}:${region}:${account}:${rest}`;

const nameOf = (id: string, template: Template, again: (value: Template) => Template): string => {
  const { Type, Properties } = template.Resources[id] ?? {};
  const [property] = names[Type] ?? [];
  if (property === undefined) throw new Error(`${id} refers to nothing that is known`);
  return again(Properties[property] ?? id);
};

const attributeOf = (
  [id, attribute]: [string, string],
  template: Template,
  again: (value: Template) => Template,
): string => {
  const name = nameOf(id, template, again);
  const [, arn] = names[template.Resources[id].Type] ?? [];
  if (attribute === "Arn" && arn !== undefined) return arn(name);
  if (attribute === "QueueName") return name;
  throw new Error(`${id} has no ${attribute}`);
};
