/**
 * The faults that the proxy can produce, and the error bodies DynamoDB sends with them. A fault is turned into a plan:
 * what happens before the request is forwarded, whether and how often it is, and what the client gets.
 */

/** What goes wrong with one request. Several in a list are combined, the later one winning where they disagree. */
export type Fault = SingleFault | readonly SingleFault[];

/** One thing that goes wrong. "Applied" means that the engine got the request, before its client knew. */
export type SingleFault =
  /** Applied; then the connection breaks. */
  | "lost-reply"
  /** Not applied; the connection breaks. */
  | "drop"
  /** 500 InternalServerError, not applied or applied. */
  | "500-before"
  | "500-after"
  /** 400 ProvisionedThroughputExceededException, not applied. */
  | "throttle"
  /** Applied twice, one after the other; the client gets the first reply. */
  | "duplicate"
  /** Forwarded without its ClientRequestToken: a server that ignores tokens. */
  | "strip-token"
  /** Never answered; not applied, unless `applied`. */
  | { readonly hang: true; readonly applied?: boolean }
  /** Applied twice; which reply the client gets. */
  | { readonly duplicate: "first" | "second" }
  /** Held until the promise settles, then applied, even when the client is gone by then. */
  | { readonly delay: Promise<unknown> }
  /** Refused for a concurrent transaction: as TransactWriteItems, at its first action. Not applied. */
  | { readonly conflict: true }
  /** TransactionCanceledException with these reasons in the order of the actions. Not applied. */
  | { readonly cancel: readonly (string | CancellationReason)[] }
  /** Any other error by the name of its exception, with status 400 unless given. Not applied. */
  | { readonly error: string; readonly status?: number; readonly message?: string }
  /** Awaited before the request is forwarded, and after it was applied but before the client hears of it. */
  | { readonly before?: () => unknown; readonly after?: () => unknown };

/** Why one action of a transaction was refused; the item is in DynamoDB's own form (`{ id: { S: "a" } }`). */
export interface CancellationReason {
  readonly Code: string;
  readonly Message?: string;
  readonly Item?: Record<string, unknown>;
}

/** An HTTP reply, with its body as text. */
export interface Reply {
  readonly status: number;
  readonly body: string;
}

/** @internal What the proxy does with a request; without any entry it passes it on. */
export interface Plan {
  before?: () => unknown;
  after?: () => unknown;
  /** How often it is forwarded. @default 1 */
  forward?: 0 | 1 | 2;
  stripToken?: boolean;
  /** What the client gets in place of the engine's first reply. */
  reply?: "second" | "hang" | "break" | Reply;
}

/** @internal The plan for a request of `operation` with `actions` actions (1 where it isn't a transaction). */
export const planOf = (fault: Fault, operation: string, actions: number): Plan =>
  Object.assign({}, ...[fault].flat().map((single) => planOfOne(single as SingleFault, operation, actions)));

const planOfOne = (fault: SingleFault, operation: string, actions: number): Plan => {
  if (typeof fault === "string") return namedPlans[fault];
  if ("hang" in fault) return { forward: fault.applied ? 1 : 0, reply: "hang" };
  if ("duplicate" in fault) return { forward: 2, ...(fault.duplicate === "second" && { reply: "second" as const }) };
  if ("delay" in fault) return { before: () => fault.delay.catch(() => {}) };
  if ("cancel" in fault) return { forward: 0, reply: cancellation(fault.cancel) };
  if ("error" in fault) return { forward: 0, reply: errorReply(fault.error, fault.message, fault.status) };
  if ("conflict" in fault) return { forward: 0, reply: conflict(operation, actions) };
  return fault;
};

/** The body of an error as DynamoDB sends it. */
const errorReply = (
  exception: string,
  message = `${exception} by the fault proxy`,
  status = 400,
  more = {},
): Reply => ({
  status,
  body: JSON.stringify({
    __type: `${namespaces[exception] ?? "com.amazonaws.dynamodb.v20120810"}#${exception}`,
    // The one exception whose member is spelled with a capital; clients look for both.
    [exception === "TransactionCanceledException" ? "Message" : "message"]: message,
    ...more,
  }),
});

const namespaces: Record<string, string> = {
  ThrottlingException: "com.amazon.coral.availability",
  ValidationException: "com.amazon.coral.validate",
};

const serverError = errorReply(
  "InternalServerError",
  "The request processing has failed because of an unknown error.",
  500,
);

const namedPlans: Record<Extract<SingleFault, string>, Plan> = {
  "lost-reply": { reply: "break" },
  drop: { forward: 0, reply: "break" },
  "500-before": { forward: 0, reply: serverError },
  "500-after": { reply: serverError },
  throttle: {
    forward: 0,
    reply: errorReply(
      "ProvisionedThroughputExceededException",
      "The level of configured provisioned throughput for the table was exceeded. " +
        "Consider increasing your provisioning level with the UpdateTable API",
    ),
  },
  duplicate: { forward: 2 },
  "strip-token": { stripToken: true },
};

const ongoing = "Transaction is ongoing for the item";

const reasonMessages: Record<string, string> = {
  ConditionalCheckFailed: "The conditional request failed",
  ItemCollectionSizeLimitExceeded: "Collection size exceeded.",
  TransactionConflict: ongoing,
  ProvisionedThroughputExceeded: "The level of configured provisioned throughput for the table was exceeded.",
  ThrottlingError: "Throughput exceeds the current capacity for one or more global secondary indexes.",
  ValidationError: "One or more parameter values were invalid.",
};

const cancellation = (given: readonly (string | CancellationReason)[]): Reply => {
  const reasons = given.map((reason): CancellationReason => {
    const full = typeof reason === "string" ? { Code: reason } : reason;
    const message = reasonMessages[full.Code];
    return message === undefined ? full : { Message: message, ...full };
  });
  const codes = reasons.map((reason) => reason.Code).join(", ");
  return errorReply(
    "TransactionCanceledException",
    `Transaction cancelled, please refer cancellation reasons for specific reasons [${codes}]`,
    400,
    { CancellationReasons: reasons },
  );
};

const conflict = (operation: string, actions: number): Reply =>
  operation === "TransactWriteItems"
    ? cancellation(["TransactionConflict", ...Array<string>(Math.max(0, actions - 1)).fill("None")])
    : errorReply("TransactionConflictException", ongoing);
