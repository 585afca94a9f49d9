/**
 * How the command ends: 0 if all is well, 1 for a problem that was found or an error, 2 for wrong usage. An error is one
 * sentence; `--debug` adds its stack. What the user's own modules print goes to standard error, so that standard output is
 * the command's alone; and a timer or connection that they leave open doesn't keep the command alive.
 */
import { Console } from "node:console";
import { type Command, CommanderError } from "commander";

export const runProgram = async (program: Command): Promise<void> => {
  globalThis.console = new Console(process.stderr, process.stderr);
  // Whoever reads our output may stop reading, as `head` does.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit(0);
  });
  isDebugging = () => program.opts().debug === true;
  const fail = (error: unknown): never => {
    complain(error);
    process.exit(1);
  };
  process.on("uncaughtException", fail).on("unhandledRejection", fail);
  exitBy(program);
  try {
    await program.parseAsync();
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
    else {
      complain(error);
      process.exitCode = 1;
    }
  }
  await written();
  process.exit();
};

let isDebugging = (): boolean => false;

/** Something is wrong, and the command goes on: it ends with status 1. */
export const report = (problem: string): void => {
  process.stderr.write(`cronfence: ${problem}\n`);
  process.exitCode = 1;
};

/** Where an error came from, for who asks. */
export const trace = (error: unknown): void => {
  if (isDebugging() && error instanceof Error) process.stderr.write(`${error.stack}\n`);
};

/** Writes a line, or several, to standard output. */
export const print = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

export const printJson = (value: unknown): void => print(JSON.stringify(value, undefined, 2));

const complain = (error: unknown): void => {
  process.stderr.write(`cronfence: ${error instanceof Error ? error.message : String(error)}\n`);
  trace(error);
};

/** Wrong usage is thrown, by all commands, instead of ending the process. */
const exitBy = (command: Command): void => {
  command.exitOverride();
  for (const sub of command.commands) exitBy(sub);
};

const written = (): Promise<void> => new Promise((resolve) => process.stdout.write("", () => resolve()));
