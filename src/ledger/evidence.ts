/** What is on record of one tick: the runs that were to do it, and what operators did about it. */
import type { ActRecord, RunRecord } from "../control/control-store.ts";
import type { LedgerEntry } from "./entry.ts";
import type { History } from "./read-history.ts";

export interface TickEvidence {
  /** Runs that were to do it, or did it, in the order in which they started; the last of very many. */
  readonly runs: readonly RunRecord[];
  /** How many more there were before these. */
  readonly moreRuns: number;
  /** The pause that it fell into, the act that skipped it. */
  readonly acts: readonly ActRecord[];
}

export const evidenceOf = async (history: History, entry: LedgerEntry): Promise<TickEvidence> => {
  const { tick } = entry;
  const runs: RunRecord[] = [];
  let moreRuns = 0;
  let beyond = 0;
  for await (const page of history.recordsFor(tick)) {
    for (const record of page) {
      if (concerns(record, entry)) runs.push(record);
      if (runs.length > mostRuns) {
        runs.shift();
        moreRuns += 1;
      }
      if ((record.completed ?? Number.NEGATIVE_INFINITY) >= tick) beyond += 1;
    }
    // Records stand nearly in the order in which runs were granted the lease.
    if (beyond > 100) break;
  }
  return { runs, moreRuns, acts: history.acts.filter((act) => concernsAct(act, entry)) };
};

const mostRuns = 20;

const concerns = ({ id, ticks, outcome, completed }: RunRecord, { tick, run, others = [] }: LedgerEntry): boolean => {
  if (id === run || others.includes(id)) return true;
  if (ticks === undefined || ticks.through < tick) return false;
  // Of a run that somebody else recorded only its last tick is known: it was to do all that were owed through that.
  const secondHand = outcome === "crashed" || outcome === "cancelled";
  const done = outcome === "succeeded" || (completed !== undefined && completed >= tick);
  return secondHand ? !done : ticks.from <= tick && !done;
};

const concernsAct = (act: ActRecord, { tick, state, by, why }: LedgerEntry): boolean => {
  if (act.kind === "skip") return act.ticks !== undefined && tick >= act.ticks.from && tick <= act.ticks.through;
  return state === "paused" && act.kind === "pause" && act.by === by && act.why === why;
};
