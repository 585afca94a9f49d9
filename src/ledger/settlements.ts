/**
 * Which run settled which ticks, from the run records alone. Pure.
 *
 * A record says which ticks its run covered, which of them it passed over, and which was the job's last completed tick when
 * it ended. So a run settled the ticks of its range up to that one, whatever its outcome: it did them, or left them out for
 * the reason that it gives. A run that died says only how far its commits had come: what it settled begins where the run
 * before it had stopped. An operator who skips ticks settles them as a run does, under a fence of the act's own.
 *
 * Runs settle in the order of their fences. Records come about in the order in which the runs started, by the clocks of their
 * machines, which is nearly the same; how far it may differ is bounded, so that a long history needs little memory.
 */
import type { ActRecord, RunCoverage, RunEntry, SkippedTicks } from "../control/control-store.ts";

/** A run or an act, as far as it settles ticks. Instants are in milliseconds since the epoch. */
export interface Settler {
  readonly fence: number;
  readonly run?: string;
  readonly act?: ActRecord;
  readonly startedAt: number;
  readonly endedAt?: number;
  /** The first and the last tick that it covered; the first isn't known of a run that somebody else recorded. */
  readonly from: number | undefined;
  readonly last: number | undefined;
  /** The job's last completed tick at its end. */
  readonly completed: number;
  readonly skipped: readonly SkippedTicks[];
  /** When the job was due next, by the schedule that it had then. */
  readonly nextTick?: number;
}

/** Ticks in [from, through], settled by one; by more than one where something went wrong that can't. */
export interface Settlement {
  readonly from: number;
  readonly through: number;
  readonly by: readonly [Settler, ...Settler[]];
}

/** What a record says of who settled what; `undefined` where the run settled nothing. */
export const settlerOf = (record: RunCoverage): Settler | undefined => {
  const { id, fence, outcome, ticks, completed } = record;
  // A run without a fence never committed anything.
  if (fence === undefined || outcome === "dry_run" || completed === undefined) return undefined;
  const secondHand = outcome === "crashed" || outcome === "cancelled";
  if (!secondHand && (ticks === undefined || completed < ticks.from)) return undefined;
  return {
    fence,
    run: id,
    startedAt: record.startedAt,
    endedAt: record.endedAt,
    from: secondHand ? undefined : ticks?.from,
    last: ticks?.through,
    completed,
    skipped: record.skipped ?? [],
    ...(record.nextTick === undefined ? {} : { nextTick: record.nextTick }),
  };
};

/** The same of a run that isn't on record yet, as the control item shows it. */
export const settlerOfEntry = (entry: RunEntry, fence: number | undefined): Settler | undefined => {
  const { id, completed, tick, startedAt, skipped = [] } = entry;
  if (fence === undefined || completed === undefined) return undefined;
  return { fence, run: id, startedAt, from: undefined, last: tick, completed, skipped };
};

/** The same of an operator's act. */
export const settlerOfAct = (act: ActRecord): Settler | undefined => {
  const { kind, fence, ticks, at } = act;
  if (kind !== "skip" || fence === undefined || ticks === undefined) return undefined;
  return { fence, act, startedAt: at, from: ticks.from, last: ticks.through, completed: ticks.through, skipped: [] };
};

export interface Settlements {
  /** Takes in one more; what is certain by now comes back, in the order of the ticks. */
  add(settler: Settler): readonly Settlement[];
  /** The rest. */
  end(): readonly Settlement[];
}

/**
 * @param first of the ticks that a run settled which somebody else recorded, where nothing is known to have been settled before
 * @param lookahead how many runs may start between two whose fences are the other way round. Beyond it, a tick that is settled
 * twice isn't found out either
 */
export const settlements = (first: number, lookahead: number): Settlements => {
  /** Ascending by fence. */
  const waiting: Settler[] = [];
  /** Ascending by tick, without overlap. */
  const settled: Settlement[] = [];
  let completed = Number.NEGATIVE_INFINITY;

  const place = (settler: Settler): void => {
    const from = settler.from ?? Math.max(first, completed + 1);
    const through = settler.completed;
    if (through < from) return;
    // The doubled part goes to those who had settled it.
    for (let index = settled.length - 1; index >= 0 && settled[index]!.through >= from; index -= 1) {
      settled.splice(index, 1, ...split(settled[index]!, from, through, settler));
    }
    const rest = Math.max(from, completed + 1);
    if (rest <= through) settled.push({ from: rest, through, by: [settler] });
    completed = Math.max(completed, through);
  };

  return {
    add: (settler) => {
      let index = waiting.length;
      while (index > 0 && waiting[index - 1]!.fence > settler.fence) index -= 1;
      waiting.splice(index, 0, settler);
      if (waiting.length > lookahead) place(waiting.shift() as Settler);
      return settled.length > lookahead ? settled.splice(0, settled.length - lookahead) : none;
    },
    end: () => {
      for (const settler of waiting.splice(0)) place(settler);
      return settled.splice(0);
    },
  };
};

const none: readonly Settlement[] = [];

/** `settlement` with `settler` added where it overlaps [from, through]. */
const split = (settlement: Settlement, from: number, through: number, settler: Settler): Settlement[] => {
  const { by } = settlement;
  const start = Math.max(settlement.from, from);
  const stop = Math.min(settlement.through, through);
  if (start > stop) return [settlement];
  return [
    ...(settlement.from < start ? [{ from: settlement.from, through: start - 1, by }] : []),
    { from: start, through: stop, by: [...by, settler] as const },
    ...(settlement.through > stop ? [{ from: stop + 1, through: settlement.through, by }] : []),
  ];
};

/** Why `settler` left `tick` out, if it did. */
export const leftOut = ({ skipped }: Settler, tick: number): SkippedTicks["reason"] | undefined =>
  skipped.length === 0 ? undefined : skipped.find(({ from, through }) => tick >= from && tick <= through)?.reason;
