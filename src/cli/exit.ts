/**
 * How the command ends: 0 if all is well, 1 for a problem that was found or an error, 2 for wrong usage, and 130 after
 * Ctrl-C (143 after SIGTERM), as shells have it. An error is one sentence; `--debug` adds its stack. What the user's own
 * modules print goes to standard error, so that standard output is the command's alone; and a timer or connection that they
 * leave open doesn't keep the command alive.
 */
import { Console } from "node:console";
import { type Command, CommanderError } from "commander";
import { explained } from "./explain-error.ts";
import { cleaned } from "./paint.ts";
import { clearProgress } from "./progress.ts";

/** Wrong usage that shows only once the command is under way: it ends with 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

export const runProgram = async (program: Command): Promise<void> => {
  globalThis.console = new Console(process.stderr, process.stderr);
  // Whoever reads our output may stop reading, as `head` does.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    end(0);
  });
  isDebugging = () => program.opts().debug === true;
  const fail = (error: unknown): void => {
    complain(error);
    end(1);
  };
  process.on("uncaughtException", fail).on("unhandledRejection", fail);
  process.on("SIGINT", () => interrupted(130)).on("SIGTERM", () => interrupted(143));
  // Timers of a clock don't keep a process alive.
  setInterval(() => {}, 60_000);
  exitBy(program);
  try {
    await program.parseAsync();
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
    else {
      complain(error);
      process.exitCode = error instanceof UsageError ? 2 : 1;
    }
  }
  await written();
  await end();
};

let isDebugging = (): boolean => false;

/** Something is wrong, and the command goes on: it ends with status 1. */
export const report = (problem: string): void => {
  clearProgress();
  process.stderr.write(cleaned(`cronfence: ${problem}\n`));
  process.exitCode = 1;
};

/** Where an error came from, for who asks. */
export const trace = (error: unknown): void => {
  if (!isDebugging()) return;
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    process.stderr.write(cleaned(`${cause.stack}\n`));
};

/** Writes a line, or several, to standard output. */
export const print = (text: string): void => {
  clearProgress();
  process.stdout.write(cleaned(`${text}\n`));
};

/** Writes a line to standard error: what is going on, which isn't the command's result. */
export const note = (text: string): void => {
  clearProgress();
  process.stderr.write(cleaned(`${text}\n`));
};

export const printJson = (value: unknown): void => print(JSON.stringify(value, undefined, 2));

/** Called before the process ends, however it ends, except by a second Ctrl-C. */
export const atEnd = (close: () => Promise<unknown>): void => {
  closers.push(close);
};
const closers: (() => Promise<unknown>)[] = [];

/**
 * What the first Ctrl-C does instead of ending the command: it stops what is under way, and the command then ends by
 * itself. A second one ends it at once.
 */
export const onInterrupt = (stop: () => void): void => {
  stopping = stop;
};
let stopping: (() => void) | undefined;

let ending: number | undefined;
const interrupted = (status: number): void => {
  if (ending !== undefined) process.exit(status);
  ending = status;
  clearProgress();
  if (stopping === undefined) end(status);
  else {
    process.exitCode = status;
    stopping();
  }
};

const end = async (status?: number): Promise<void> => {
  clearProgress();
  await Promise.allSettled(closers.map((close) => close()));
  process.exit(ending ?? status ?? process.exitCode);
};

const complain = (error: unknown): void => {
  clearProgress();
  const { AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL, AWS_REGION, AWS_PROFILE, CRONFENCE_TABLE } = process.env;
  const sentence = explained(error, {
    endpoint: AWS_ENDPOINT_URL_DYNAMODB || AWS_ENDPOINT_URL || undefined,
    region: AWS_REGION || undefined,
    profile: AWS_PROFILE || undefined,
    table: CRONFENCE_TABLE || "cronfence",
  });
  process.stderr.write(cleaned(`cronfence: ${sentence}\n`));
  trace(error);
};

/** Wrong usage is thrown, by all commands, instead of ending the process. */
const exitBy = (command: Command): void => {
  command.exitOverride();
  for (const sub of command.commands) exitBy(sub);
};

const written = (): Promise<void> => new Promise((resolve) => process.stdout.write("", () => resolve()));
