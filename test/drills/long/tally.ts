/** Counts by name. */
export type Tally = (name: string) => void;

export const tallyInto =
  (counts: Map<string, number>): Tally =>
  (name) => {
    counts.set(name, (counts.get(name) ?? 0) + 1);
  };
