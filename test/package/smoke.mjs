/**
 * What a user's program does with the packed tarball, on plain node: a job run on the local engine, twice. Copied into an
 * empty project by check-package.ts, which expects the printed line.
 */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { createControlTable, defineJob, dynamoStore, runJob } from "cronfence";
import { createTable, dumpTable, localClientConfig, startEngine } from "cronfence/testing";

const engine = await startEngine();
const client = new DynamoDBClient({ ...localClientConfig(engine.endpoint), maxAttempts: 1 });
await createControlTable(client, "jobs");
await createTable(client, { name: "greetings", key: { hash: "id" } });
const greet = defineJob({
  name: "greet",
  timeout: "1m",
  tick: (tick) => [{ Put: { TableName: "greetings", Item: { id: tick.id } } }],
});
const deps = { store: dynamoStore({ client, table: "jobs" }) };
const tick = Date.parse("2026-01-01T00:00:00Z");
const outcomes = [];
for (let delivery = 0; delivery < 2; delivery += 1)
  outcomes.push((await runJob(greet, { kind: "schedule", tick }, deps)).outcome);
console.log(`${outcomes.join(", ")}; ${(await dumpTable(client, "greetings")).map(({ id }) => id)}`);
client.destroy();
await engine.stop();
