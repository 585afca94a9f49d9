/**
 * Another run for a tick that was queued behind one with no time left for it: the function invokes itself, and doesn't
 * wait. Needs `lambda:InvokeFunction` on the function itself, and @aws-sdk/client-lambda beside it (Lambda's Node.js
 * runtimes bring it); without either the tick stays owed, and the next delivery covers it.
 */
export const invokeAgain = async (job: string, tick: number): Promise<void> => {
  const { InvokeCommand, LambdaClient } = await import("@aws-sdk/client-lambda");
  await new LambdaClient({}).send(
    new InvokeCommand({
      FunctionName: process.env.AWS_LAMBDA_FUNCTION_NAME,
      InvocationType: "Event",
      Payload: JSON.stringify({ job, scheduledTime: new Date(tick).toISOString() }),
    }),
  );
};
