/**
 * Another run, for a tick that was queued behind one with no time left for it, or for a backlog: the function invokes
 * itself, and doesn't wait. Needs `lambda:InvokeFunction` on the function itself, and @aws-sdk/client-lambda beside it (Lambda's Node.js
 * runtimes bring it); without either the work stays owed, and the next delivery does it.
 */
import { loadLambdaSdk } from "./lambda-sdk.ts";

const invokeAgain = async (event: object): Promise<void> => {
  const { InvokeCommand, LambdaClient } = await loadLambdaSdk();
  await new LambdaClient({}).send(
    new InvokeCommand({
      FunctionName: process.env.AWS_LAMBDA_FUNCTION_NAME,
      InvocationType: "Event",
      Payload: JSON.stringify(event),
    }),
  );
};

export const invokeForTick = (job: string, tick: number): Promise<void> =>
  invokeAgain({ job, scheduledTime: new Date(tick).toISOString() });

export const invokeForBacklog = (_job: string, chain: number): Promise<void> =>
  invokeAgain({ chain, reason: "backlog" });
