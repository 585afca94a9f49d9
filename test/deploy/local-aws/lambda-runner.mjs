/**
 * One invocation of a deployed function, as Lambda's Node.js runtime does it: loads the handler from the unpacked zip, calls
 * it with the event on standard input, and writes what it returned, or its error, to a descriptor of its own.
 *
 *   node lambda-runner.mjs FOLDER FILE.EXPORT DESCRIPTOR
 */
import { existsSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, handler, descriptor] = process.argv.slice(2);
const { LOCAL_REQUEST_ID, LOCAL_TIMEOUT_MS, LOCAL_FUNCTION_ARN } = process.env;
for (const name of Object.keys(process.env)) if (name.startsWith("LOCAL_")) delete process.env[name];
const startedAt = Date.now();

const context = {
  awsRequestId: LOCAL_REQUEST_ID,
  functionName: process.env.AWS_LAMBDA_FUNCTION_NAME,
  functionVersion: process.env.AWS_LAMBDA_FUNCTION_VERSION,
  invokedFunctionArn: LOCAL_FUNCTION_ARN,
  memoryLimitInMB: process.env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
  logGroupName: process.env.AWS_LAMBDA_LOG_GROUP_NAME,
  getRemainingTimeInMillis: () => Number(LOCAL_TIMEOUT_MS) - (Date.now() - startedAt),
};

/** As a whole, also where the pipe takes only a part at a time. */
const answer = (value) => {
  const bytes = Buffer.from(JSON.stringify(value ?? null));
  for (let at = 0; at < bytes.length; ) at += writeSync(Number(descriptor), bytes, at);
};

const dot = handler.lastIndexOf(".");
const file = [".mjs", ".js", ".cjs"]
  .map((extension) => join(folder, handler.slice(0, dot) + extension))
  .find(existsSync);
try {
  if (file === undefined) throw new Error(`Cannot find module '${handler.slice(0, dot)}'`);
  const exported = await import(pathToFileURL(file).href);
  const event = JSON.parse(readFileSync(0, "utf8") || "{}");
  answer(await exported[handler.slice(dot + 1)](event, context));
  process.exit(0);
} catch (error) {
  console.error(error);
  answer({ errorType: error.name, errorMessage: error.message, trace: String(error.stack).split("\n") });
  process.exit(1);
}
