/** Checks the options of the schedule makers: small enough that a schema library would be most of the cost. */

import { distance } from "fastest-levenshtein";
import { InvalidOptionsError, InvalidScheduleError } from "../errors.ts";

/**
 * Refuses option names that aren't in `known`, and values that aren't among those listed there (undefined: any).
 * @throws InvalidOptionsError listing every problem.
 */
export function checkOptions(
  subject: string,
  options: object,
  known: Readonly<Record<string, readonly string[] | undefined>>,
): void {
  const problems: string[] = [];
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new InvalidOptionsError(subject, [
      `options must be an object with ${Object.keys(known).join(", ")}, not ${JSON.stringify(options)}`,
    ]);
  }
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(known, name)) problems.push(`unknown option "${name}"${suggest(name, Object.keys(known))}`);
    else if (value !== undefined && known[name] && !known[name].includes(value)) {
      problems.push(`${name}: "${value}" isn't one of ${known[name].map((allowed) => `"${allowed}"`).join(", ")}`);
    }
  }
  if (problems.length > 0) throw new InvalidOptionsError(subject, problems);
}

/** From JavaScript, or an environment variable that isn't set. */
export function refuseNonText(expression: unknown): void {
  if (typeof expression !== "string") {
    throw new InvalidScheduleError(String(expression), `an expression is a text, not ${typeof expression}`);
  }
}

const suggest = (name: string, known: readonly string[]): string => {
  const [nearest] = known.map((each) => ({ each, steps: distance(name, each) })).sort((a, b) => a.steps - b.steps);
  return nearest ? `; did you mean "${nearest.each}"?` : "";
};
