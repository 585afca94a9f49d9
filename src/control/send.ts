/**
 * One request at a time, until its outcome is known. The only place that translates the SDK's failures.
 *
 * Guarantees: the same request is sent again while its outcome is unknown (timeout, reset, 5xx) or while DynamoDB was
 * merely busy (conflict, throttling), with full jitter inside the budget; whether an earlier try may have been applied
 * is always reported as `doubt`. It never guesses: with doubt left at the end of the budget, the answer is "spent".
 */
import type { CancellationReason } from "@aws-sdk/client-dynamodb";
import { pause } from "../clock.ts";
import type { Budget } from "./control-store.ts";
import type { Item } from "./items.ts";

export interface Reason {
  readonly code: string;
  readonly message?: string;
  readonly item?: Item;
}

type Failure =
  /** A condition of a single-item write doesn't hold. */
  | { readonly kind: "refused"; readonly item?: Item }
  /** A transaction was refused; `reasons` are in the order of its actions. */
  | { readonly kind: "cancelled"; readonly reasons: readonly Reason[] }
  /** Not applied; worth another try. */
  | { readonly kind: "busy" }
  /** May have been applied. */
  | { readonly kind: "unknown" }
  /** Not applied, and the same request won't do better. */
  | { readonly kind: "failed" };

export type Settled<T> = (
  | { readonly kind: "done"; readonly value: T }
  | { readonly kind: "refused"; readonly item?: Item }
  | { readonly kind: "cancelled"; readonly reasons: readonly Reason[]; readonly error: unknown }
  | { readonly kind: "failed"; readonly error: unknown }
  | { readonly kind: "spent"; readonly error: unknown }
) & {
  /** An earlier try of this request may have been applied. */
  readonly doubt: boolean;
};

/**
 * Sends until the outcome is known or the budget is spent.
 * The first try always goes out; every further one only before `budget.until`.
 */
export const settle = async <T>(send: () => Promise<T>, budget: Budget): Promise<Settled<T>> => {
  let doubt = false;
  for (let failures = 0; ; failures += 1) {
    let error: unknown;
    try {
      return { kind: "done", value: await send(), doubt };
    } catch (caught) {
      error = caught;
    }
    const failure = translate(error);
    // The SDK's own retries, if a caller's client makes any, hide tries whose outcome it never learnt.
    doubt ||= failure.kind === "unknown" || attemptsOf(error) > 1;
    if (failure.kind === "refused") return { ...failure, doubt };
    if (failure.kind === "failed") return { kind: "failed", error, doubt };
    if (failure.kind === "cancelled") {
      const verdict = verdictOn(failure.reasons);
      if (verdict === "final") return { ...failure, error, doubt };
    }
    const delayMs = budget.random() * Math.min(longestDelayMs, firstDelayMs * 2 ** failures);
    if (budget.clock.now() + delayMs >= budget.until) return { kind: "spent", error, doubt };
    await pause(budget.clock, delayMs);
  }
};

const firstDelayMs = 50;
const longestDelayMs = 2_000;

const attemptsOf = (error: unknown): number =>
  (error as { $metadata?: { attempts?: number } } | undefined)?.$metadata?.attempts ?? 1;

/**
 * The first action is always the control item's, and its word goes first:
 *
 * | control | others | verdict |
 * | --- | --- | --- |
 * | condition failed | any | final: the lease |
 * | None | a condition, validation or collection size | final: the user's write |
 * | None | only conflicts and throttling | busy |
 * | conflict, throttling | any | busy: what the others said may have been caused by our own earlier try |
 * | validation | any | final |
 */
const verdictOn = (reasons: readonly Reason[]): "final" | "busy" => {
  const control = reasons[0]?.code ?? "None";
  if (busyCodes.has(control)) return "busy";
  if (control !== "None") return "final";
  return reasons.some(({ code }) => code !== "None" && !busyCodes.has(code)) ? "final" : "busy";
};

/** https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html */
const busyCodes = new Set([
  "TransactionConflict",
  "ProvisionedThroughputExceeded",
  "ThrottlingError",
  "RequestLimitExceeded",
]);

const busyNames = new Set([
  "TransactionConflictException",
  "ProvisionedThroughputExceededException",
  "ThrottlingException",
  "Throttling",
  "ThrottledException",
  "RequestLimitExceeded",
  "RequestThrottled",
  "TooManyRequestsException",
  "LimitExceededException",
]);

/** Failures to connect: no request was sent. */
const unconnectedCodes = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

export const translate = (error: unknown): Failure => {
  const { name, code, Item, CancellationReasons, $metadata } = error as {
    name?: string;
    code?: string;
    Item?: Item;
    CancellationReasons?: CancellationReason[];
    $metadata?: { httpStatusCode?: number };
  };
  if (name === "ConditionalCheckFailedException") return { kind: "refused", ...(Item ? { item: Item } : {}) };
  if (name === "TransactionCanceledException") {
    return { kind: "cancelled", reasons: (CancellationReasons ?? []).map(readReason) };
  }
  if (name === "TransactionInProgressException") return { kind: "unknown" };
  if (name !== undefined && busyNames.has(name)) return { kind: "busy" };
  if (code !== undefined && unconnectedCodes.has(code)) return { kind: "busy" };
  const status = $metadata?.httpStatusCode;
  if (status !== undefined) return { kind: refusingStatus(status) ? "failed" : "unknown" };
  // Without a status nothing was answered. What the SDK throws before it sends is named, and has no metadata; all else
  // may have been applied (fetch, where it is what sends, reports a lost reply as a TypeError).
  const unsent = name !== undefined && unsentNames.has(name) && $metadata === undefined;
  return { kind: unsent ? "failed" : "unknown" };
};

/** Only a 4xx says that nothing was applied: an error with any other status is an answer that couldn't be read. */
const refusingStatus = (status: number): boolean => status >= 400 && status < 500 && status !== 408 && status !== 429;

const unsentNames = new Set([
  "CredentialsProviderError",
  "RegionMissingError",
  "TypeError",
  "RangeError",
  "SyntaxError",
]);

const readReason = (reason: CancellationReason): Reason => ({
  code: reason.Code ?? "None",
  ...(reason.Message === undefined ? {} : { message: reason.Message }),
  ...(reason.Item === undefined ? {} : { item: reason.Item }),
});
