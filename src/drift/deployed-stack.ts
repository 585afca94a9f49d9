/** A stack as CloudFormation has it: its resources, its parameters, and the template that was deployed last. */
import { CronfenceError } from "../errors.ts";
import type { Clients } from "./clients.ts";
import type { Stack } from "./stack.ts";
import { readTemplate, type Template } from "./template.ts";

/** There is no such stack. */
class NoStackError extends CronfenceError {
  override readonly name = "NoStackError";

  constructor(stack: string, region: string) {
    super(
      "NO_STACK",
      `there is no stack "${stack}" in ${region}: it isn't deployed there; --stage and --region say where to look`,
    );
  }
}

/**
 * @throws NoStackError
 */
export const readStack = async (name: string, clients: Clients): Promise<{ stack: Stack; template: Template }> => {
  const { cloudFormation, sdk } = clients;
  const region = await cloudFormation.config.region();
  const described = await cloudFormation
    .send(new sdk.cloudFormation.DescribeStacksCommand({ StackName: name }))
    .catch((error: Error) => {
      if (/does not exist/.test(error.message)) throw new NoStackError(name, region);
      throw error;
    });
  const [found] = described.Stacks ?? [];
  if (found?.StackId === undefined) throw new NoStackError(name, region);
  const [, partition = "aws", , , account = ""] = found.StackId.split(":");
  const { TemplateBody = "" } = await cloudFormation.send(
    new sdk.cloudFormation.GetTemplateCommand({ StackName: name, TemplateStage: "Processed" }),
  );
  // What is marked NoEcho comes as asterisks.
  const parameters = (found.Parameters ?? []).flatMap(({ ParameterKey = "", ParameterValue = "", ResolvedValue }) =>
    /^\*+$/.test(ParameterValue) ? [] : [[ParameterKey, ResolvedValue ?? ParameterValue]],
  );
  return {
    stack: {
      name,
      region,
      account,
      partition,
      parameters: Object.fromEntries(parameters),
      resources: await readResources(name, clients),
    },
    template: readTemplate(TemplateBody, `the template of stack "${name}"`),
  };
};

const readResources = async (StackName: string, { cloudFormation, sdk }: Clients): Promise<Stack["resources"]> => {
  const resources: Record<string, { type: string; physicalId: string }> = {};
  let NextToken: string | undefined;
  do {
    const page = await cloudFormation.send(
      new sdk.cloudFormation.ListStackResourcesCommand({
        StackName,
        ...(NextToken === undefined ? {} : { NextToken }),
      }),
    );
    for (const { LogicalResourceId, PhysicalResourceId, ResourceType, ResourceStatus } of page.StackResourceSummaries ??
      []) {
      if (LogicalResourceId === undefined || PhysicalResourceId === undefined || ResourceType === undefined) continue;
      if (ResourceStatus === "DELETE_COMPLETE") continue;
      resources[LogicalResourceId] = { type: ResourceType, physicalId: PhysicalResourceId };
    }
    NextToken = page.NextToken;
  } while (NextToken !== undefined);
  return resources;
};
