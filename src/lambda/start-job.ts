/**
 * Starting a job from another function, such as the watchdog: an asynchronous invocation with the tick as its identity, as
 * the schedule would have made it. Needs `lambda:InvokeFunction` on the jobs' functions, and @aws-sdk/client-lambda beside
 * it (Lambda's Node.js runtimes bring it).
 */
import { CronfenceError } from "../errors.ts";
import { loadLambdaSdk } from "./lambda-sdk.ts";

export interface StartByInvokingOptions {
  /**
   * The name or ARN of each job's function: a text in which `{job}` stands for the job's name, or a function of it.
   * @default the environment's CRONFENCE_FUNCTION_NAME, such as "shop-jobs-prod-{job}"
   */
  readonly functionName?: string | ((job: string) => string);
  /** A `LambdaClient`. @default one for the environment's region and credentials */
  readonly client?: { send(command: never): Promise<unknown> };
}

/** It isn't known which function runs the job. */
export class UnknownFunctionError extends CronfenceError {
  override readonly name = "UnknownFunctionError";

  constructor(job: string) {
    super(
      "UNKNOWN_FUNCTION",
      `job "${job}" can't be started: give startByInvoking a functionName, or set CRONFENCE_FUNCTION_NAME, such as "shop-jobs-prod-{job}"`,
    );
  }
}

/**
 * What `watchdog({ heal: true, start })` wants on Lambda. Resolves when Lambda has taken the event; whether the job then
 * runs, its own records tell.
 * @throws UnknownFunctionError, when it is called, where nothing says which function runs the job
 */
export const startByInvoking = (options: StartByInvokingOptions = {}) => {
  let { client } = options;
  return async (job: string, tick: number): Promise<void> => {
    const named = options.functionName ?? process.env.CRONFENCE_FUNCTION_NAME;
    if (named === undefined || named === "") throw new UnknownFunctionError(job);
    const { InvokeCommand, LambdaClient } = await loadLambdaSdk();
    client ??= new LambdaClient({});
    await client.send(
      new InvokeCommand({
        FunctionName: typeof named === "function" ? named(job) : named.replaceAll("{job}", job),
        InvocationType: "Event",
        Payload: JSON.stringify({ job, scheduledTime: new Date(tick).toISOString() }),
      }) as never,
    );
  };
};
