/**
 * `npm run drill -- --minutes 5 --seed 7`: real processes under everything that goes wrong, for as long as one likes. Ends
 * with status 0 only if all was done exactly once; prints what differs and the seed otherwise. Whatever it started ends with
 * it, also on Ctrl-C.
 */
import { parseArgs } from "node:util";
import { CronfenceError } from "cronfence";
import { longDrill } from "./long/drill.ts";
import { longVerdictOn } from "./long/verdict.ts";

// The SDK's advice on the version of Node is for who deploys, and would stand between the lines.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= "true";

const usage = "npm run drill -- [--minutes N | --seconds N] [--seed N] [--processes N]";

const wholeNumber = (name: string, text: string, least: number): number => {
  const value = Number(text);
  if (Number.isInteger(value) && value >= least && value <= 1_000_000) return value;
  throw new CronfenceError(
    "INVALID_OPTIONS",
    `--${name} is "${text}", and must be a whole number from ${least} on\nusage: ${usage}`,
  );
};

const readArguments = () => {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string" },
      seconds: { type: "string" },
      seed: { type: "string" },
      processes: { type: "string", default: "4" },
    },
  });
  if (values.minutes !== undefined && values.seconds !== undefined) {
    throw new CronfenceError("INVALID_OPTIONS", `give --minutes or --seconds, not both\nusage: ${usage}`);
  }
  return {
    seconds:
      values.seconds === undefined
        ? 60 * wholeNumber("minutes", values.minutes ?? "1", 1)
        : wholeNumber("seconds", values.seconds, 1),
    seed: values.seed === undefined ? Math.floor(Math.random() * 1_000_000) : wholeNumber("seed", values.seed, 0),
    processes: wholeNumber("processes", values.processes, 2),
  };
};

const startedAt = performance.now();
const leaving = new AbortController();
let status = 1;
for (const [signal, number] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const) {
  process.on(signal, () => {
    if (leaving.signal.aborted) process.exit(number);
    console.log(`\n${signal}: ending the processes`);
    status = number;
    leaving.abort();
  });
}

const say = (line: string) =>
  console.log(`${((performance.now() - startedAt) / 1_000).toFixed(1).padStart(6)} s  ${line}`);

try {
  if (process.platform === "win32") {
    throw new CronfenceError(
      "NO_SIGNALS",
      "this drill stops processes with SIGSTOP, which Windows hasn't got; use WSL",
    );
  }
  const { text, exitStatus } = longVerdictOn(await longDrill({ ...readArguments(), say, signal: leaving.signal }));
  console.log(`\n${text}`);
  status = exitStatus;
} catch (error) {
  // What a person can act on needs no stack.
  const { message, stack, code } = error as Error & { code?: string | number };
  const plain = error instanceof CronfenceError || String(code).startsWith("ERR_PARSE_ARGS");
  if (!leaving.signal.aborted) console.error(`The drill broke off: ${plain ? message : (stack ?? message)}`);
}
process.exit(status);
