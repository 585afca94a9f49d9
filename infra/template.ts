/** What CloudFormation templates are made of: values that CloudFormation works out, resources, and their logical ids. */

/** A value that CloudFormation works out, such as `{ Ref: "AlarmTopic" }`. */
export type Intrinsic = Readonly<Record<string, unknown>>;

export type Value = string | Intrinsic;

export interface Resource {
  readonly Type: string;
  readonly DeletionPolicy?: "Retain";
  readonly UpdateReplacePolicy?: "Retain";
  readonly DependsOn?: readonly string[];
  readonly Properties: Readonly<Record<string, unknown>>;
}

/** By logical id. */
export type Resources = Readonly<Record<string, Resource>>;

/** One statement of an IAM policy. */
export interface Statement {
  /** What it is for: letters and digits. */
  readonly Sid?: string;
  readonly Effect: "Allow" | "Deny";
  readonly Principal?: "*" | Readonly<Record<string, Value>>;
  readonly Action: string | readonly string[];
  readonly Resource?: Value | readonly Value[];
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

export const ref = (id: string): Intrinsic => ({ Ref: id });

export const attribute = (id: string, name: string): Intrinsic => ({ "Fn::GetAtt": [id, name] });

/** The ARN of something in the stack's own account and Region; `rest` may contain `${…}` of CloudFormation. */
export const ownArn = (service: string, rest: string): Intrinsic => ({
  "Fn::Sub": `arn:\${AWS::Partition}:${service}:\${AWS::Region}:\${AWS::AccountId}:${rest}`,
});

export const policy = (statements: readonly Statement[]) => ({ Version: "2012-10-17", Statement: statements });

/**
 * A job's name, or another label, as a part of logical ids: letters and digits only. Different names may come out the same
 * ("a-b" and "aDashb"); `deploymentProblems` says so.
 */
export const logical = (name: string): string => name.replaceAll("-", "Dash").replaceAll("_", "Underscore");
