/**
 * Carts that nobody ordered in time expire, and each leaves a row in the audit table. Both are written in the transaction
 * that moves the job's watermark on, so whatever happens to a run, a cart expires exactly once.
 */
import { cron, defineJob } from "cronfence";
import { lambdaHandler } from "cronfence/lambda";
import { queryAfter } from "cronfence/sources";

interface Cart {
  readonly id: string;
  readonly shop: string;
  readonly status: "open" | "ordered" | "expired";
  /** When it expires, as an ISO 8601 instant in UTC, and its id: unique, and in the order of time. */
  readonly expiresAtId: string;
}

export const job = defineJob({
  name: "expire-carts",
  schedule: cron("*/5 * * * *"),
  timeout: "4m",
  limit: { items: 10_000 },
  // What its role may do besides reading the source.
  access: [
    { table: "carts", write: true },
    { table: "cart-audit", write: true },
  ],
  source: queryAfter<Cart>({
    table: "carts",
    index: "byExpiry",
    partition: { shop: "eu" },
    sort: "expiresAtId",
    settle: "30s",
  }),
  process: (cart, run) => {
    if (cart.status === "ordered") return [];
    return [
      {
        Update: {
          TableName: "carts",
          Key: { id: cart.id },
          UpdateExpression: "SET #status = :expired",
          // A customer may order between our read and our write. Then this cart is skipped, and the others are written.
          ConditionExpression: "#status <> :ordered",
          ExpressionAttributeNames: { "#status": "status" },
          ExpressionAttributeValues: { ":expired": "expired", ":ordered": "ordered" },
        },
      },
      {
        Update: {
          TableName: "cart-audit",
          Key: { id: cart.id },
          // A cart that expired twice would show it here.
          UpdateExpression: "SET runId = :run, fence = :fence, tickId = :tick ADD times :one",
          ExpressionAttributeValues: { ":run": run.id, ":fence": run.fence, ":tick": run.tick?.id ?? null, ":one": 1 },
        },
      },
    ];
  },
});

export const handler = lambdaHandler(job);

/** What `npm run dev` makes on the local engine: the tables, and some carts that expire within the next hour. */
export const local = {
  tables: [
    { name: "carts", key: { hash: "id" }, indexes: { byExpiry: { hash: "shop", range: "expiresAtId" } } },
    { name: "cart-audit", key: { hash: "id" } },
  ],
  seed: (now: number): { readonly carts: readonly Cart[] } => ({
    carts: Array.from({ length: 360 }, (_, index) => cartExpiring(now + index * 10_000, `cart-${index}`)),
  }),
};

/** An open cart. */
export const cartExpiring = (at: number, id: string): Cart => ({
  id,
  shop: "eu",
  status: "open",
  expiresAtId: `${new Date(at).toISOString()}#${id}`,
});
