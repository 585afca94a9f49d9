/**
 * Measuring one thing against another on a machine that does other things, too: both are done in every round, in turns
 * first, and what counts is the ratio within a round. A slow moment then hits both, and the median forgets it.
 */

export interface Compared {
  /** The median over the rounds of `ours` / `theirs`. */
  readonly ratio: number;
  /** Medians, in milliseconds. */
  readonly oursMs: number;
  readonly theirsMs: number;
}

export const compare = async (
  ours: () => Promise<unknown>,
  theirs: () => Promise<unknown>,
  { rounds, warmUps }: { readonly rounds: number; readonly warmUps: number },
): Promise<Compared> => {
  const measured: { oursMs: number; theirsMs: number }[] = [];
  for (let round = -warmUps; round < rounds; round += 1) {
    const oursFirst = round % 2 === 0;
    const early = await elapsed(oursFirst ? ours : theirs);
    const late = await elapsed(oursFirst ? theirs : ours);
    if (round >= 0) measured.push(oursFirst ? { oursMs: early, theirsMs: late } : { oursMs: late, theirsMs: early });
  }
  return {
    ratio: median(measured.map(({ oursMs, theirsMs }) => oursMs / theirsMs)),
    oursMs: median(measured.map(({ oursMs }) => oursMs)),
    theirsMs: median(measured.map(({ theirsMs }) => theirsMs)),
  };
};

const elapsed = async (work: () => Promise<unknown>): Promise<number> => {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
};

const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return Number.isInteger(middle)
    ? ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2
    : (sorted[Math.floor(middle)] as number);
};
