/**
 * SIGTERM as an abort signal. Lambda sends it before it ends an environment that has an extension registered, and
 * container platforms always do: https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html
 */

let controller: AbortController | undefined;

/** Aborted when the process is asked to stop. One listener for the whole process, set at the first call. */
export const terminationSignal = (): AbortSignal => {
  if (controller === undefined) {
    const created = new AbortController();
    controller = created;
    process.once("SIGTERM", () => created.abort("SIGTERM"));
  }
  return controller.signal;
};
