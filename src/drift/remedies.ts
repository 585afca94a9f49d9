/**
 * The commands that put drift right. CloudFormation compares a new template with the last one, not with what is there: a
 * deployment of an unchanged template leaves a change by hand as it is, with `--force` too. A drift-aware change set compares
 * with what is there: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/drift-aware-change-sets.html
 */
import type { Finding } from "./findings.ts";
import type { Stack } from "./stack.ts";

export interface Remedy {
  readonly why: string;
  /** One after the other. */
  readonly commands: readonly string[];
}

/** @param deploy the command that deploys the service, such as `npx osls deploy --stage prod` */
export const remediesFor = (findings: readonly Finding[], deploy: string, stack: Stack): Remedy[] => {
  const deployable = findings.filter((finding) => finding.deployable);
  const strays = findings.filter(({ logicalId }) => logicalId === "");
  const reverted = findings.filter((finding) => !finding.deployable && finding.logicalId !== "");
  const remedies: Remedy[] = [];
  if (deployable.length > 0) {
    const what = deployable.every(({ cause }) => cause === "not deployed")
      ? "what isn't deployed"
      : "what the repo has changed since the last deployment";
    remedies.push({ why: `deploys ${what}`, commands: [deploy] });
  }
  if (reverted.length > 0) {
    const at = `--stack-name ${stack.name} --change-set-name revert-drift --region ${stack.region}`;
    const parameters = Object.keys(stack.parameters).map((key) => ` ParameterKey=${key},UsePreviousValue=true`);
    remedies.push({
      why: `sets back what was changed by hand (${deploy} doesn't, where the template is unchanged)`,
      commands: [
        `aws cloudformation create-change-set ${at} --use-previous-template --deployment-mode REVERT_DRIFT ` +
          `--capabilities CAPABILITY_NAMED_IAM${parameters.length === 0 ? "" : ` --parameters${parameters.join("")}`}`,
        `aws cloudformation wait change-set-create-complete ${at}`,
        `aws cloudformation execute-change-set ${at}`,
      ],
    });
  }
  if (strays.length > 0) {
    remedies.push({
      why: "deletes schedules that no template has",
      commands: strays.map(({ name }) => {
        const [group, schedule] = name.split("/");
        return `aws scheduler delete-schedule --group-name ${group} --name ${schedule} --region ${stack.region}`;
      }),
    });
  }
  return remedies;
};
