/** A DynamoDB client that counts what is sent, attempt by attempt, and the capacity that the engine says it took. */
import { AsyncLocalStorage } from "node:async_hooks";
import { type ConsumedCapacity, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { localClientConfig } from "cronfence/testing";

export interface Usage {
  /** By operation, such as "UpdateItem". */
  readonly sent: Record<string, number>;
  writeUnits: number;
  readUnits: number;
}

const metered = new AsyncLocalStorage<Usage>();

export const meteredClient = (endpoint: string): DynamoDBClient => {
  const client = new DynamoDBClient({ ...localClientConfig(endpoint), maxAttempts: 1 });
  client.middlewareStack.add(
    (next) => (args) =>
      next({ ...args, input: { ...args.input, ReturnConsumedCapacity: "TOTAL" } as typeof args.input }),
    {
      step: "initialize",
    },
  );
  client.middlewareStack.add(
    (next, { commandName = "" }) =>
      async (args) => {
        const usage = metered.getStore();
        const operation = commandName.replace(/Command$/, "");
        if (usage !== undefined) usage.sent[operation] = (usage.sent[operation] ?? 0) + 1;
        const result = await next(args);
        const { ConsumedCapacity: consumed } = result.output as {
          ConsumedCapacity?: ConsumedCapacity | ConsumedCapacity[];
        };
        const units = [consumed ?? []].flat().reduce((sum, { CapacityUnits = 0 }) => sum + CapacityUnits, 0);
        if (usage !== undefined) usage[reads.has(operation) ? "readUnits" : "writeUnits"] += units;
        return result;
      },
    // Behind the retries, so that each attempt is seen.
    { step: "finalizeRequest", priority: "low" },
  );
  return client;
};

/** What `work`, and everything it starts, sends over metered clients. */
export const usageOf = async (work: () => Promise<unknown>): Promise<Usage> => {
  const usage: Usage = { sent: {}, writeUnits: 0, readUnits: 0 };
  await metered.run(usage, work);
  return usage;
};

/** Where metering was once used, it slows every promise of the process, and so what is timed later. */
export const stopMetering = (): void => metered.disable();

const reads = new Set(["Query", "GetItem"]);

export const readsIn = ({ sent }: Usage): number => total(sent, (operation) => reads.has(operation));
export const writesIn = ({ sent }: Usage): number => total(sent, (operation) => !reads.has(operation));

const total = (sent: Usage["sent"], counts: (operation: string) => boolean): number =>
  Object.entries(sent).reduce((sum, [operation, times]) => sum + (counts(operation) ? times : 0), 0);
