/** The same work once per id with Powertools: its idempotency, logger and metrics. It has no fence. */
import { randomUUID } from "node:crypto";
import { makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
import { Logger } from "@aws-lambda-powertools/logger";
import { Metrics, MetricUnit } from "@aws-lambda-powertools/metrics";
import { DynamoDBClient, PutItemCommand } from "@aws-sdk/client-dynamodb";

const client = new DynamoDBClient({});
const logger = new Logger({ serviceName: "bench" });
const metrics = new Metrics({ namespace: "bench", serviceName: "bench" });
const persistenceStore = new DynamoDBPersistenceLayer({ tableName: process.env.COLD_RESULTS as string });

const work = makeIdempotent(
  async (tick: { readonly id: string }) => {
    const Item = { id: { S: tick.id }, total: { N: "300" } };
    await client.send(new PutItemCommand({ TableName: process.env.COLD_RESULTS, Item }));
    return { total: 300 };
  },
  { persistenceStore },
);

export const handler = async () => {
  const id = randomUUID();
  logger.info("started", { id });
  await work({ id });
  metrics.addMetric("Succeeded", MetricUnit.Count, 1);
  metrics.publishStoredMetrics();
  logger.info("succeeded", { id });
};
