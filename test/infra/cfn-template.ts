/** CloudFormation templates as values: YAML with its short tags (`!Ref x`) in their long form (`{ Ref: "x" }`). */
import { execFile } from "node:child_process";
import { type CollectionTag, parse, type ScalarTag, type YAMLMap, type YAMLSeq } from "yaml";

// biome-ignore lint/suspicious/noExplicitAny: a template is looked into by path
export type Template = any;

const functions = [
  "Ref",
  "GetAtt",
  "Sub",
  "Join",
  "Select",
  "If",
  "Equals",
  "Not",
  "And",
  "Or",
  "FindInMap",
  "Condition",
];

const longName = (name: string) => (["Ref", "Condition"].includes(name) ? name : `Fn::${name}`);

const tags = functions.flatMap((name): (ScalarTag | CollectionTag)[] => [
  {
    tag: `!${name}`,
    resolve: (text: string) => ({ [longName(name)]: name === "GetAtt" ? text.split(".") : text }),
  },
  {
    tag: `!${name}`,
    collection: "seq",
    resolve: (items: YAMLMap | YAMLSeq) => ({ [longName(name)]: items.toJSON() }) as never,
  },
]);

export const parseTemplate = (text: string): Template => parse(text, { customTags: tags });

/** What cfn-lint says of template files; `undefined` where it isn't installed. */
export const cfnLint = (...files: readonly string[]): Promise<string | undefined> =>
  new Promise((resolve) => {
    execFile("cfn-lint", files, (error, stdout, stderr) => {
      resolve(error?.code === "ENOENT" ? undefined : `${stdout}${stderr}`.trim());
    });
  });

export const noCfnLint = "cfn-lint isn't installed here, so the template wasn't linted";
