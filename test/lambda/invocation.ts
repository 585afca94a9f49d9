/** Invocations as Lambda makes them: the context of a function, with its remaining time on the test's clock. */
import { randomUUID } from "node:crypto";
import type { Context } from "aws-lambda";
import type { Clock } from "cronfence";

export interface InvocationOptions {
  /** The same on the platform's retries. @default a new one */
  readonly requestId?: string;
  /** Milliseconds until the platform ends the invocation. @default 60000 */
  readonly leftMs?: number;
}

export const invocation = (
  clock: Clock,
  { requestId = randomUUID(), leftMs = 60_000 }: InvocationOptions = {},
): Context => {
  const endsAt = clock.now() + leftMs;
  return {
    awsRequestId: requestId,
    getRemainingTimeInMillis: () => Math.max(0, endsAt - clock.now()),
    callbackWaitsForEmptyEventLoop: true,
    functionName: "expire-carts",
    functionVersion: "$LATEST",
    invokedFunctionArn: "arn:aws:lambda:eu-central-1:123456789012:function:expire-carts",
    memoryLimitInMB: "256",
    logGroupName: "/aws/lambda/expire-carts",
    logStreamName: "2026/01/01/[$LATEST]0",
    done: () => {},
    fail: () => {},
    succeed: () => {},
  };
};

/** The input of a schedule as docs and templates write it, with the context attributes filled in. */
export const scheduled = (job: string, at: string, { executionId = randomUUID(), attempt = "1" } = {}) => ({
  job,
  scheduledTime: at,
  attempt,
  executionId,
  scheduleArn: `arn:aws:scheduler:eu-central-1:123456789012:schedule/default/${job}`,
});
