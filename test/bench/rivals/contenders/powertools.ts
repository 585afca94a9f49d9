/**
 * Powertools' idempotency, as its documentation shows: around the handler, with the tick as the key; or around the work on each
 * record. What is under way expires when the invocation is out of time.
 */
import { IdempotencyConfig, makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { Handler, Surroundings } from "../contender.ts";
import { type Cart, expire, expireAll, locksTable, readDue } from "../expiry.ts";

export const openForTicks = (surroundings: Surroundings): Handler => {
  const { client, persistenceStore, configFor } = openStore(surroundings);
  const config = configFor("tick");
  const work = makeIdempotent(
    async (_: { readonly tick: string }) => {
      await expireAll(client, await readDue(client));
      return { said: "done" };
    },
    { persistenceStore, config: config.config },
  );
  return async (tick) => {
    config.begin();
    return (await work({ tick: new Date(tick).toISOString() })).said;
  };
};

export const openForItems = (surroundings: Surroundings): Handler => {
  const { client, persistenceStore, configFor } = openStore(surroundings);
  const config = configFor("id");
  const work = makeIdempotent(
    async (cart: Cart) => {
      await expire(client, [cart]);
      return { said: "done" };
    },
    { persistenceStore, config: config.config },
  );
  return async () => {
    config.begin();
    for (const cart of await readDue(client)) await work(cart);
    return "done";
  };
};

const openStore = ({ connect, leaseMs }: Surroundings) => {
  const client: DynamoDBClient = connect();
  return {
    client,
    persistenceStore: new DynamoDBPersistenceLayer({ tableName: locksTable, awsSdkV3Client: client }),
    configFor: (eventKeyJmesPath: string) => {
      const config = new IdempotencyConfig({ eventKeyJmesPath });
      return {
        config,
        /** The invocation has as long as a lock lasts with the others. */
        begin: () => {
          const until = performance.now() + leaseMs;
          const getRemainingTimeInMillis = () => Math.max(1, Math.round(until - performance.now()));
          config.registerLambdaContext({ getRemainingTimeInMillis } as never);
        },
      };
    },
  };
};
