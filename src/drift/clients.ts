/** The AWS clients that drift is looked for with, loaded when they are used. */

export interface ClientConfig {
  readonly region?: string;
}

/** @param config the environment says the rest */
export const openClients = async (config: ClientConfig) => {
  const [cloudFormation, scheduler, lambda, cloudWatch, logs, dynamo] = await Promise.all([
    import("@aws-sdk/client-cloudformation"),
    import("@aws-sdk/client-scheduler"),
    import("@aws-sdk/client-lambda"),
    import("@aws-sdk/client-cloudwatch"),
    import("@aws-sdk/client-cloudwatch-logs"),
    import("@aws-sdk/client-dynamodb"),
  ]);
  const clients = {
    cloudFormation: new cloudFormation.CloudFormationClient(config),
    scheduler: new scheduler.SchedulerClient(config),
    lambda: new lambda.LambdaClient(config),
    cloudWatch: new cloudWatch.CloudWatchClient(config),
    logs: new logs.CloudWatchLogsClient(config),
    dynamo: new dynamo.DynamoDBClient(config),
  };
  return {
    ...clients,
    sdk: { cloudFormation, scheduler, lambda, cloudWatch, logs, dynamo },
    close: () => {
      for (const client of Object.values(clients)) client.destroy();
    },
  };
};

export type Clients = Awaited<ReturnType<typeof openClients>>;
