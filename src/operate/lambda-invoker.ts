/**
 * Invoking a job's function. An event is handed over once: a client that tried again on its own would start a second run where
 * only the first one's acknowledgement was lost. Where that can't be known, it is said.
 *
 * The SDK's Lambda client is loaded when it is used. Needs `lambda:InvokeFunction` on the jobs' functions.
 */
import { translate } from "../control/send.ts";
import { CronfenceError } from "../errors.ts";

/** What starts and asks functions; a tool of one's own may bring another. */
export interface FunctionInvoker {
  /**
   * Hands `event` over without waiting for what becomes of it, once.
   * @returns the platform's id of the invocation, which the run's record has, too
   * @throws InvocationUnknownError when it isn't known whether the event was taken
   */
  start(functionName: string, event: object): Promise<{ readonly requestId: string | undefined }>;
  /**
   * Waits for the function's answer, at most for `withinMs`.
   * @throws FunctionFailedError when the function threw
   */
  ask(functionName: string, event: object, withinMs: number): Promise<unknown>;
}

/** The event may have been taken, and may not: nothing was sent again. */
export class InvocationUnknownError extends CronfenceError {
  override readonly name = "InvocationUnknownError";

  constructor(functionName: string, options: ErrorOptions) {
    super(
      "INVOCATION_UNKNOWN",
      `it isn't known whether Lambda took the event for function ${functionName}, so it wasn't sent again; ` +
        "look at the job's runs in a minute before you start another one",
      options,
    );
  }
}

/** The function that was asked threw; the message is what it threw. */
export class FunctionFailedError extends CronfenceError {
  override readonly name = "FunctionFailedError";
  /** The name of what it threw. */
  readonly errorType: string | undefined;

  constructor(functionName: string, errorType: string | undefined, message: string) {
    super("FUNCTION_FAILED", `function ${functionName} answered ${errorType ?? "an error"}: ${message}`);
    this.errorType = errorType;
  }
}

/** @param client a `LambdaClient` that doesn't retry; by default one for the environment's region and credentials */
export const lambdaInvoker = (client?: {
  send(command: never, options?: object): Promise<unknown>;
}): FunctionInvoker => {
  const send = async (functionName: string, event: object, kind: "Event" | "RequestResponse", withinMs: number) => {
    const { InvokeCommand, LambdaClient } = await import("@aws-sdk/client-lambda");
    client ??= new LambdaClient({ maxAttempts: 1 });
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), withinMs);
    try {
      return (await client.send(
        new InvokeCommand({
          FunctionName: functionName,
          InvocationType: kind,
          Payload: JSON.stringify(event),
        }) as never,
        { abortSignal: limit.signal },
      )) as Answer;
    } finally {
      clearTimeout(timer);
    }
  };
  return {
    start: async (functionName, event) => {
      try {
        const { $metadata } = await send(functionName, event, "Event", takenWithinMs);
        return { requestId: $metadata?.requestId };
      } catch (error) {
        if (translate(error).kind === "unknown") throw new InvocationUnknownError(functionName, { cause: error });
        throw notInvoked(functionName, error);
      }
    },
    ask: async (functionName, event, withinMs) => {
      const answer = await send(functionName, event, "RequestResponse", withinMs).catch((error) => {
        throw notInvoked(functionName, error);
      });
      const text = new TextDecoder().decode(answer.Payload);
      const payload = text === "" ? undefined : (JSON.parse(text) as { errorType?: string; errorMessage?: string });
      if (answer.FunctionError === undefined) return payload;
      throw new FunctionFailedError(functionName, payload?.errorType, payload?.errorMessage ?? answer.FunctionError);
    },
  };
};

/** Lambda takes an event in milliseconds, or not at all. */
const takenWithinMs = 20_000;

interface Answer {
  readonly $metadata?: { readonly requestId?: string };
  readonly Payload?: Uint8Array;
  readonly FunctionError?: string;
}

const notInvoked = (functionName: string, cause: unknown): Error =>
  new CronfenceError("NOT_INVOKED", `function ${functionName} wasn't invoked`, { cause });
