/** What every act must say, checked before anything is asked or written. */
import type { SeenAct } from "../control/control-store.ts";
import { InvalidOptionsError } from "../errors.ts";

/** One sentence for each thing that is missing or can't be. */
export const problemsOf = (act: SeenAct): string[] => {
  const problems: string[] = [];
  for (const name of ["by", "why"] as const) {
    const value: unknown = act[name];
    if (typeof value !== "string" || value.trim() === "")
      problems.push(`${name} is ${show(value)}, and must say ${name === "by" ? "who does it" : "why"}`);
  }
  if (act.fence !== undefined && !Number.isInteger(act.fence))
    problems.push(`fence is ${show(act.fence)}, and must be the fence that was seen, a whole number`);
  return problems;
};

/** @throws InvalidOptionsError where there are any */
export const refuse = (act: string, problems: readonly string[]): void => {
  if (problems.length > 0) throw new InvalidOptionsError(act, problems);
};

export const show = (value: unknown): string => JSON.stringify(value) ?? String(value);
