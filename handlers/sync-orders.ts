/**
 * New orders are fetched from a shop's REST API and kept as rows; each large one is announced to a webhook.
 *
 * A row is written together with the cursor that passes its order, so none is left out or kept twice. The webhook is
 * outside DynamoDB: `run.once` calls it once for an order and remembers that, and where a run died over the call, it is
 * called again under the same idempotency key, by which the receiver can tell.
 */
import { cron, defineJob, NotDoneError } from "cronfence";
import { lambdaHandler } from "cronfence/lambda";
import { fromAsyncIterable } from "cronfence/sources";

interface Order {
  /** Ascending, without end. */
  readonly number: number;
  readonly customer: string;
  readonly cents: number;
}

/** Without a URL there are no orders, and nobody is told of them. */
const { ORDERS_URL, ORDERS_WEBHOOK_URL } = process.env;
const largeCents = 100_000;

/** The API gives at most 100 orders a page: `GET /orders?after=41`. */
async function* ordersAfter(after: number | undefined, signal: AbortSignal): AsyncGenerator<Order> {
  if (ORDERS_URL === undefined) return;
  for (let last = after ?? 0; ; ) {
    const answer = await fetch(`${ORDERS_URL}/orders?after=${last}`, { signal });
    if (!answer.ok) throw new Error(`the orders API answered ${answer.status}`);
    const { orders } = (await answer.json()) as { readonly orders: readonly Order[] };
    if (orders.length === 0) return;
    yield* orders;
    last = orders.at(-1)?.number as number;
  }
}

const announce = async (url: string, order: Order, idempotencyKey: string, signal: AbortSignal): Promise<void> => {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": idempotencyKey },
    body: JSON.stringify(order),
    signal,
  });
  // The receiver refused it, so it certainly wasn't done; of a 500 nobody knows.
  if (answer.status >= 400 && answer.status < 500) throw new NotDoneError(`the webhook answered ${answer.status}`);
  if (!answer.ok) throw new Error(`the webhook answered ${answer.status}`);
};

export const job = defineJob({
  name: "sync-orders",
  schedule: cron("*/10 * * * *"),
  timeout: "8m",
  limit: { items: 5_000 },
  onBacklog: "continue",
  onItemError: "park",
  onUnknown: "retry",
  access: [{ table: "orders", write: true }],
  source: fromAsyncIterable<Order, number>({
    name: "orders API",
    items: (after, { signal }) => ordersAfter(after, signal),
    cursor: (order) => order.number,
    pageSize: 100,
  }),
  process: async (order, run) => {
    if (ORDERS_WEBHOOK_URL !== undefined && order.cents >= largeCents) {
      await run.once(`large-order-${order.number}`, ({ idempotencyKey, signal }) =>
        announce(ORDERS_WEBHOOK_URL, order, idempotencyKey, signal),
      );
    }
    return [{ Put: { TableName: "orders", Item: { ...order, run: run.id } } }];
  },
});

export const handler = lambdaHandler(job);

/** What `npm run dev` makes on the local engine. */
export const local = { tables: [{ name: "orders", key: { hash: "number", types: { number: "N" as const } } }] };
