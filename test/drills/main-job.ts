/**
 * `npm start`: the main job over 10,000 carts on a local DynamoDB, in separate processes that are stopped, killed and
 * started at the worst moments. Prints what happens, then the runs and the checks. Ends with status 0 only if every
 * check holds; whatever it started ends with it, also on Ctrl-C.
 */
import { CronfenceError } from "cronfence";
import { type Engine, startEngine } from "cronfence/testing";
import { drill } from "./drill.ts";
import { verdictOn } from "./verdict.ts";
import type { WorkerProcess } from "./worker-process.ts";

// The SDK's advice on the version of Node is for who deploys, and would stand between the lines.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= "true";

const startedAt = performance.now();
const workers: WorkerProcess[] = [];
let engine: Engine | undefined;

const cleanUp = async () => {
  await Promise.all(workers.map((worker) => worker.end()));
  await engine?.stop();
};

let leaving = false;
const leave = async (signal: NodeJS.Signals) => {
  const status = signal === "SIGINT" ? 130 : 143;
  if (leaving) process.exit(status);
  leaving = true;
  console.log(`\n${signal}: ending the processes`);
  await cleanUp();
  process.exit(status);
};
process.on("SIGINT", leave).on("SIGTERM", leave);

const say = (line: string) => {
  if (leaving) return;
  const [, gap = "", text = ""] = /^(\n*)(.*)$/s.exec(line) ?? [];
  console.log(`${gap}${((performance.now() - startedAt) / 1_000).toFixed(1).padStart(5)} s  ${text}`);
};

const color = process.stdout.isTTY === true && !process.env.NO_COLOR;

/** The exit status. */
const perform = async (): Promise<number> => {
  if (process.platform === "win32") {
    throw new CronfenceError(
      "NO_SIGNALS",
      "this drill stops processes with SIGSTOP, which Windows hasn't got; use WSL",
    );
  }
  engine = await startEngine();
  say(`A local DynamoDB (${engine.kind}) is up at ${engine.endpoint}`);
  const { figures, processes } = await drill({
    engine,
    shares: [2_000, 2_000, 2_000, 1_000, 1_000, 2_000],
    say,
    onWorker: (worker) => workers.push(worker),
  });
  const { text, exitStatus } = verdictOn(figures, processes, color);
  console.log(`\n${text}`);
  return exitStatus;
};

const status = await perform().catch((error: Error) => {
  // What a person can act on needs no stack.
  const why = error instanceof CronfenceError ? error.message : (error.stack ?? error.message);
  if (!leaving) console.error(`The drill broke off: ${why}`);
  return 1;
});
if (!leaving) {
  await cleanUp();
  // A process that was still starting ends with this one.
  process.exit(status);
}
