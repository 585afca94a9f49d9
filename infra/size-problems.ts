/** What of a service is too much for one stack, or for one role. */
import type { Job } from "cronfence";
import type { DeployedJob, DeployedService } from "./deployed-service.ts";
import { jobStatements } from "./job-role.ts";
import { problemIf } from "./problem-if.ts";
import { serviceResources } from "./service-resources.ts";
import { policy } from "./template.ts";

/** Of all inline policies of a role, without white space: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html */
const mostPolicyCharacters = 10_240;
/** https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html */
const mostResources = 500;

/** One sentence for each problem. */
export const sizeProblems = (service: DeployedService): string[] => {
  const resources = Object.keys(serviceResources(service)).length + service.jobs.length;
  return [
    ...problemIf(
      resources > mostResources,
      `${service.jobs.length} jobs come to ${resources} resources with their functions, and a stack takes at most ${mostResources}: ` +
        "divide the service in two, each with a watchdog",
    ),
    ...service.jobs.flatMap((deployed) => {
      const characters = policyCharacters(deployed, service);
      return problemIf(
        characters > mostPolicyCharacters,
        `job "${deployed.job.name}": its role's policy comes to about ${characters} characters, and IAM takes at most ` +
          `${mostPolicyCharacters}: ${shorter(deployed.job)}`,
      );
    }),
  ];
};

const shorter = ({ watches }: Job): string =>
  watches === undefined ? "name fewer tables in access" : "divide the service in two, each with a watchdog";

/** As long as it gets once CloudFormation has put in the account and the longest names of partition and Region. */
const policyCharacters = (deployed: DeployedJob, service: DeployedService): number =>
  JSON.stringify(policy(jobStatements(deployed, service)), (_, value) =>
    value?.["Fn::GetAtt"] === undefined ? (value?.["Fn::Sub"] ?? value) : longArn,
  ).replace(/\$\{AWS::(\w+)\}/g, (_, name: string) => longest[name] ?? longArn).length;

const longArn = "x".repeat(120);
const longest: Readonly<Record<string, string>> = {
  Partition: "aws-us-gov",
  Region: "ap-southeast-1",
  AccountId: "123456789012",
};
