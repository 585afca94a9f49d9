/**
 * A process that starts an engine, prints its endpoint and pid as one line of JSON, and then ends in the way its
 * argument says: by itself, or by the signal that it waits for. Started by engine-end.test.ts.
 */
import { DynamoDBClient, ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { localClientConfig, startEngine } from "cronfence/testing";

const way = process.argv[2];
const engine = await startEngine({}, {});

if (way?.startsWith("wait")) setInterval(() => {}, 60_000);
if (way === "wait with own handler") {
  const cleanUp = async (signal: string) => {
    const { TableNames } = await new DynamoDBClient(localClientConfig(engine.endpoint)).send(new ListTablesCommand({}));
    console.log(JSON.stringify({ signal, tables: TableNames }));
    process.exit(3);
  };
  process.once("SIGINT", cleanUp).once("SIGTERM", cleanUp);
}
console.log(JSON.stringify({ endpoint: engine.endpoint, pid: engine.pid }));

if (way === "exit") process.exit(7);
if (way === "reject") void Promise.reject(new Error("rejected on purpose"));
if (way === "throw") {
  // In a turn of its own, or it would be a rejection of this module.
  setImmediate(() => {
    throw new Error("thrown on purpose");
  });
}
