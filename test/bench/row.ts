/** One figure of the benchmark. */
export interface Row {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly goal?: Goal;
}

/** `exactly` is for counts, which are the same on every machine: one that is off is a fault. The others are figures. */
export type Goal = { readonly exactly: number } | { readonly atMost: number } | { readonly atLeast: number };

export const row = (name: string, value: number, unit: string, goal?: Goal): Row => ({
  name,
  value,
  unit,
  ...(goal === undefined ? {} : { goal }),
});

/** Whether the goal is reached; `undefined` where there is none. */
export const isMet = ({ value, goal }: Row): boolean | undefined => {
  if (goal === undefined) return undefined;
  if ("exactly" in goal) return value === goal.exactly;
  return "atMost" in goal ? value <= goal.atMost : value >= goal.atLeast;
};

/** A count that isn't what it must be. */
export const isFault = (row: Row): boolean => row.goal !== undefined && "exactly" in row.goal && isMet(row) === false;
