/** Who does what to a job, and why: every act is recorded with both. */
import { userInfo } from "node:os";
import { InvalidArgumentError, Option } from "commander";
import type { Act } from "../control/control-store.ts";
import { CronfenceError } from "../errors.ts";

export interface ActOptions {
  readonly by?: string;
  readonly why: string;
}

export const byOption = (): Option => new Option("--by <name>", "who does it (default: the user of this machine)");
export const whyOption = (): Option =>
  new Option("--why <reason>", "why; it is recorded").makeOptionMandatory().argParser(nonEmpty);

const nonEmpty = (text: string): string => {
  if (text.trim() !== "") return text;
  throw new InvalidArgumentError("It must say why.");
};

/** @throws CronfenceError where the machine doesn't know its user. */
export const actOf = ({ by, why }: ActOptions): Act => ({ by: nameOf(by), why });

export const nameOf = (by: string | undefined): string => {
  if (by !== undefined && by.trim() !== "") return by;
  try {
    return userInfo().username;
  } catch (error) {
    throw new CronfenceError("NO_USER", "this machine doesn't know who you are; say it with --by", { cause: error });
  }
};
