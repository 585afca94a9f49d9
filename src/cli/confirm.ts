/** Acts that change state say what they will do and ask, on a terminal; elsewhere `--yes` must say that it is meant. */
import { createInterface } from "node:readline/promises";
import { Option } from "commander";
import { CronfenceError } from "../errors.ts";
import { note, UsageError } from "./exit.ts";

export interface ConfirmOptions {
  readonly yes?: boolean;
}

export const yesOption = (): Option => new Option("--yes", "doesn't ask");

/**
 * Resolves when somebody has said that it is meant.
 * @param will what will be done, as a sentence without its full stop
 * @param word what to type for an act that can't be taken back; by default a "y"
 * @throws CronfenceError (`NOT_CONFIRMED`) when the answer is no
 * @throws UsageError where nobody can be asked
 */
export const confirmed = async (will: string, { yes }: ConfirmOptions, word?: string): Promise<void> => {
  if (yes) return;
  if (!process.stdin.isTTY) throw new UsageError(`${will}; say that this is meant with --yes`);
  note(`${will}.`);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // Readline takes Ctrl-C for itself.
  terminal.on("SIGINT", () => process.kill(process.pid, "SIGINT"));
  const answer = await terminal.question(word === undefined ? "Go on? [y/N] " : `Type ${word} to go on: `);
  terminal.close();
  const said = answer.trim();
  if (word === undefined ? /^y(es)?$/i.test(said) : said === word) return;
  throw new CronfenceError("NOT_CONFIRMED", "nothing was changed");
};
