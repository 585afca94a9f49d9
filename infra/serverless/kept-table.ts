/**
 * The control table outlives its stack, since a fence must never be handed out twice. So a service that was removed and comes
 * back finds its table there, and CloudFormation would fail over it half way: that is told before anything is deployed.
 */
import { CronfenceError } from "cronfence";
import { serviceIds } from "../service.ts";
import type { AwsProvider } from "./host.ts";

export const keptTableText = (table: string): string =>
  `cronfence: the control table "${table}" is kept, with every job's fence, watermark and runs. To deploy the service again on ` +
  `it, say controlTable: { name: ${table} } under custom.cronfence.`;

/**
 * Where the table is there and the stack doesn't have it. What can't be found out, for lack of a permission, is left to
 * CloudFormation.
 * @throws CronfenceError (`TABLE_EXISTS`)
 */
export const refuseForeignTable = async (provider: AwsProvider, table: string): Promise<void> => {
  const ask = asker(provider);
  if (ask === undefined || !(await ask.tableExists(table))) return;
  if (await ask.stackHas(provider.naming.getStackName(), serviceIds.controlTable)) return;
  throw new CronfenceError(
    "TABLE_EXISTS",
    `the control table "${table}" is there already, and isn't this stack's: an earlier remove kept it, or another service has it. ` +
      `To go on with it, say controlTable: { name: ${table} } under custom.cronfence; otherwise give the new one another name`,
  );
};

interface Asker {
  tableExists(table: string): Promise<boolean>;
  stackHas(stack: string, logicalId: string): Promise<boolean>;
}

const asker = (provider: AwsProvider): Asker | undefined => {
  if (provider.getAwsSdkV3Config !== undefined) return clients(provider.getAwsSdkV3Config.bind(provider));
  if (provider.request === undefined) return undefined;
  const request = provider.request.bind(provider);
  return {
    tableExists: (TableName) => succeeds(request("DynamoDB", "describeTable", { TableName })),
    stackHas: (StackName, LogicalResourceId) =>
      succeeds(request("CloudFormation", "describeStackResource", { StackName, LogicalResourceId })),
  };
};

const clients = (config: () => Promise<object>): Asker => ({
  tableExists: async (TableName) => {
    const { DescribeTableCommand, DynamoDBClient } = await import("@aws-sdk/client-dynamodb");
    return await succeeds(new DynamoDBClient(await config()).send(new DescribeTableCommand({ TableName })));
  },
  stackHas: async (StackName, LogicalResourceId) => {
    const { CloudFormationClient, DescribeStackResourceCommand } = await import("@aws-sdk/client-cloudformation");
    const command = new DescribeStackResourceCommand({ StackName, LogicalResourceId });
    return await succeeds(new CloudFormationClient(await config()).send(command));
  },
});

const succeeds = (answer: Promise<unknown>): Promise<boolean> =>
  answer.then(
    () => true,
    () => false,
  );
