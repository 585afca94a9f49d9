/**
 * What stood between the job and the ticks that it hasn't settled: runs that were to do them and didn't, runs that held the
 * lease when they came, pauses. Pure; small however long the history is, since what a later run was to do covers what an
 * earlier one was.
 */
import type { ActRecord, RunCoverage } from "../control/control-store.ts";
import type { RunOutcome } from "../outcome.ts";

/** A run that was to do ticks and ended without having done all of them. Instants are in milliseconds since the epoch. */
export interface Try {
  readonly run: string;
  /** The last tick that it was to do; the first is the oldest that was owed. */
  readonly through: number;
  /** Absent where it isn't on record how it ended: its lease is over, or it was replaced. */
  readonly outcome?: RunOutcome;
}

/** A run that held the lease in [from, to). */
interface Holding {
  readonly run: string;
  readonly from: number;
  readonly to: number;
}

/** A time in [from, to) in which no run was granted. */
export interface Pause {
  readonly from: number;
  readonly to: number;
  readonly by: string;
  readonly why: string;
}

export interface Attempts {
  /** In the order in which the runs started. */
  add(record: RunCoverage): void;
  addTry(tried: Try): void;
  /** Ticks up to this one are settled, and nothing more is asked of them. */
  settled(through: number): void;
  /** The last run that was to do `tick`. */
  lastTry(tick: number): Try | undefined;
  /** A run that held the lease at `tick`, which wasn't among those that it was to do. */
  holding(tick: number): Holding | undefined;
  /** The last ticks of all tries: delivered, whatever the schedule says. */
  delivered(): readonly number[];
}

export const attempts = (): Attempts => {
  /** Each ends before the one before it: a later run that goes as far makes an earlier one's try a thing of the past. */
  const tries: Try[] = [];
  /** Ascending by their end. */
  const holdings: Holding[] = [];
  const addTry = (tried: Try): void => {
    while (tries.length > 0 && tries.at(-1)!.through <= tried.through) tries.pop();
    tries.push(tried);
    while (holdings.length > 0 && holdings[0]!.to <= tried.through) holdings.shift();
  };
  return {
    addTry,
    add: ({ id, ticks, startedAt, endedAt, outcome }) => {
      if (ticks !== undefined && outcome !== "succeeded") {
        addTry({ run: id, through: ticks.through, outcome });
      }
      // A tick that came while it ran; those that it was to do are its own.
      const from = Math.max(startedAt, (ticks?.through ?? Number.NEGATIVE_INFINITY) + 1);
      // When a run that died let go of it isn't known: it is on record as ended when its successor found it.
      if (from >= endedAt || outcome === "crashed") return;
      holdings.push({ run: id, from, to: endedAt });
      if (holdings.length > mostHoldings) holdings.shift();
    },
    settled: (through) => {
      while (tries.length > 0 && tries.at(-1)!.through <= through) tries.pop();
      let past = 0;
      while (past < holdings.length && holdings[past]!.to <= through) past += 1;
      if (past > 0) holdings.splice(0, past);
    },
    lastTry: (tick) => tries.findLast(({ through }) => through >= tick),
    holding: (tick) => holdings.findLast(({ from, to }) => tick >= from && tick < to),
    delivered: () => tries.map(({ through }) => through).reverse(),
  };
};

/** Runs that cover no ticks (by hand, or dry) while the job stands still are remembered so far back. */
const mostHoldings = 1_000;

/** @param acts ascending */
export const pausesOf = (acts: readonly ActRecord[]): Pause[] => {
  const pauses: Pause[] = [];
  const close = (at: number): void => {
    const last = pauses.at(-1);
    if (last !== undefined && last.to > at) pauses[pauses.length - 1] = { ...last, to: at };
  };
  for (const { kind, at, by, why, until = Number.POSITIVE_INFINITY } of acts) {
    if (kind !== "pause" && kind !== "resume") continue;
    close(at);
    if (kind === "pause") pauses.push({ from: at, to: until, by, why });
  }
  return pauses.filter(({ from, to }) => from < to);
};
