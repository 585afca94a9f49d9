/** The AWS clients that drift is looked for with, loaded when they are used. */

export interface ClientConfig {
  readonly region?: string;
}

/** Spelt out: the type that is inferred would write out each module, and import what only the SDK depends on. */
export interface Clients {
  readonly cloudFormation: import("@aws-sdk/client-cloudformation").CloudFormationClient;
  readonly scheduler: import("@aws-sdk/client-scheduler").SchedulerClient;
  readonly lambda: import("@aws-sdk/client-lambda").LambdaClient;
  readonly cloudWatch: import("@aws-sdk/client-cloudwatch").CloudWatchClient;
  readonly logs: import("@aws-sdk/client-cloudwatch-logs").CloudWatchLogsClient;
  readonly dynamo: import("@aws-sdk/client-dynamodb").DynamoDBClient;
  readonly sdk: {
    readonly cloudFormation: typeof import("@aws-sdk/client-cloudformation");
    readonly scheduler: typeof import("@aws-sdk/client-scheduler");
    readonly lambda: typeof import("@aws-sdk/client-lambda");
    readonly cloudWatch: typeof import("@aws-sdk/client-cloudwatch");
    readonly logs: typeof import("@aws-sdk/client-cloudwatch-logs");
    readonly dynamo: typeof import("@aws-sdk/client-dynamodb");
  };
  close(): void;
}

/** @param config the environment says the rest */
export const openClients = async (config: ClientConfig): Promise<Clients> => {
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
