/** The answer to an option that doesn't exist: the nearest one that does. */
import { distance } from "fastest-levenshtein";

/** @param key the option as given, with its path where it is nested ("limit.itms") */
export const unknownOption = (key: string, known: readonly string[]): string => {
  const bare = key.split(".").at(-1) as string;
  const away = (option: string) => distance(bare.toLowerCase(), option.toLowerCase());
  const nearest = [...known].sort((one, other) => away(one) - away(other))[0] as string;
  const near = away(nearest) <= Math.max(2, bare.length / 3);
  return `${key} is not an option${near ? `; did you mean ${nearest}?` : `; known are ${known.join(", ")}`}`;
};
