/**
 * npm dynamodb-lock-client with a lock that "fails open" and heartbeats, as its README shows; or with its fencing token kept
 * on every item and checked by every write, and no further work once a heartbeat has failed, which is more than it shows.
 * It takes a client of the SDK's version 2 for the lock; the job itself uses version 3, as everywhere here.
 */
import DynamoDB from "aws-sdk/clients/dynamodb.js";
import { FailOpen, type Lock } from "dynamodb-lock-client";
import type { Handler, Surroundings } from "../contender.ts";
import { expireAll, locksTable, readDue } from "../expiry.ts";

type Care = "as its README shows" | "token on items";

export const open = ({ endpoint, connect, leaseMs, metered }: Surroundings, care: Care): Handler => {
  const client = connect();
  const service = new DynamoDB({
    endpoint,
    region: "local",
    accessKeyId: "local",
    secretAccessKey: "local",
  });
  const dynamodb = new DynamoDB.DocumentClient({ service });
  if (metered) meter(dynamodb);
  const locks = new FailOpen({
    dynamodb,
    lockTable: locksTable,
    partitionKey: "id",
    heartbeatPeriodMs: Math.floor(leaseMs / 3),
    leaseDurationMs: leaseMs,
  });
  return async () => {
    const lock = await new Promise<Lock>((resolve, reject) =>
      locks.acquireLock(`lock, ${care}`, (error, acquired) => (error ? reject(error) : resolve(acquired))),
    );
    let beating = true;
    lock.on("error", () => {
      beating = false;
    });
    const careful = { fence: lock.fencingToken, goesOn: () => beating };
    try {
      await expireAll(client, await readDue(client), care === "token on items" ? careful : {});
    } finally {
      await new Promise<void>((resolve, reject) => lock.release((error) => (error ? reject(error) : resolve())));
    }
    return "done";
  };
};

/** Its types leave out both. */
const meter = (client: DynamoDB.DocumentClient): void =>
  (client as unknown as Customized).service.customizeRequests((request) => {
    request.params.ReturnConsumedCapacity = "TOTAL";
  });

interface Customized {
  readonly service: {
    customizeRequests(customize: (request: { readonly params: Record<string, unknown> }) => void): void;
  };
}
