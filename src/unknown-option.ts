/** The answer to a name that doesn't exist: the nearest one that does. */
import { distance } from "fastest-levenshtein";

/** @param key the option as given, with its path where it is nested ("limit.itms") */
export const unknownOption = (key: string, known: readonly string[]): string => {
  const near = nearest(key.split(".").at(-1) as string, known);
  return `${key} is not an option${near === undefined ? `; known are ${known.join(", ")}` : `; did you mean ${near}?`}`;
};

/** The one of `known` that somebody who wrote `name` most likely meant, if any is like it. */
export const nearest = (name: string, known: readonly string[]): string | undefined => {
  if (name.length > 100) return undefined;
  const away = (other: string) => distance(name.toLowerCase(), other.toLowerCase());
  const [first] = [...known].sort((one, other) => away(one) - away(other));
  return first !== undefined && away(first) <= Math.max(2, name.length / 3) ? first : undefined;
};
