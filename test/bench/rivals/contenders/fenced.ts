/** A cronfence job with a source, through its Lambda handler. */
import { defineJob, dynamoStore, type Logger } from "cronfence";
import { lambdaHandler } from "cronfence/lambda";
import { queryAfter } from "cronfence/sources";
import type { Handler, Surroundings } from "../contender.ts";
import { type Cart, cartsTable, dueIndex, shop, writesFor } from "../expiry.ts";

export const controlTable = "control";

const silent: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => silent };

export const open = ({ connect, leaseMs }: Surroundings): Handler => {
  const job = defineJob({
    name: "expire-carts",
    timeout: "5m",
    ttl: leaseMs,
    skew: skewMs,
    source: queryAfter<Cart>({ table: cartsTable, index: dueIndex, partition: { dueIn: shop }, sort: "expiresAtId" }),
    process: (cart) => writesFor(cart),
  });
  // It retries by itself, and knows what may be repeated.
  const client = connect({ maxAttempts: 1 });
  const store = dynamoStore({
    client,
    table: controlTable,
    requestTimeoutMs: Math.min(1_000, Math.floor(leaseMs / 3)),
  });
  const handler = lambdaHandler(job, { store, log: silent });
  return async (tick) => (await handler({ job: job.name, scheduledTime: new Date(tick).toISOString() })).outcome;
};

const skewMs = 100;
