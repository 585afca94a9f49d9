/** Values one by one, or as a range where three or more follow each other. */

/** The pieces of `values`, which are ascending: `value` writes one, and `to` stands between the ends of a range. */
export function valueRuns(values: readonly number[], value: (value: number) => string, to: string): string[] {
  const pieces: string[] = [];
  for (let index = 0; index < values.length; ) {
    let end = index;
    while (values[end + 1] === values[end]! + 1) end++;
    if (end - index >= 2) pieces.push(`${value(values[index]!)}${to}${value(values[end]!)}`);
    else pieces.push(...values.slice(index, end + 1).map(value));
    index = end + 1;
  }
  return pieces;
}
