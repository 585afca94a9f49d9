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
      `options must be an object with ${Object.keys(known).join(", ")}, not ${shown(options)}`,
    ]);
  }
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(known, name)) problems.push(`unknown option "${name}"${suggest(name, Object.keys(known))}`);
    else if (value !== undefined && known[name] && !known[name].includes(value)) {
      problems.push(`${name}: ${shown(value)} isn't one of ${known[name].map((allowed) => `"${allowed}"`).join(", ")}`);
    }
  }
  if (problems.length > 0) throw new InvalidOptionsError(subject, problems);
}

/** From JavaScript, or an environment variable that isn't set. */
export function refuseNonText(expression: unknown): void {
  if (typeof expression !== "string") {
    throw new InvalidScheduleError(shown(expression), `an expression is a text, not ${typeof expression}`);
  }
  if (expression.length > longestExpression) {
    throw new InvalidScheduleError(
      expression,
      `it has ${expression.length} characters, and at most ${longestExpression} are allowed`,
      longestExpression,
    );
  }
}

/** Five full lists of values have fewer; what reads an expression may take the square of its length. */
const longestExpression = 1_000;

/** A value of whatever kind; an object isn't asked, since it may not be one that can be made a text. */
export const shown = (value: unknown): string =>
  typeof value === "string"
    ? JSON.stringify(value)
    : typeof value === "object" && value !== null
      ? Array.isArray(value)
        ? "a list"
        : "an object"
      : String(value);

const suggest = (name: string, known: readonly string[]): string => {
  if (name.length > 100) return "";
  const [nearest] = known.map((each) => ({ each, steps: distance(name, each) })).sort((a, b) => a.steps - b.steps);
  return nearest ? `; did you mean "${nearest.each}"?` : "";
};
