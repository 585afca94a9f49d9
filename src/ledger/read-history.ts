/** A job's history as the ledger needs it: pages of run records in the order of time, and its acts. Memory stays flat. */
import type {
  ActRecord,
  Budget,
  ControlState,
  ControlStore,
  RunCoverage,
  RunRecord,
} from "../control/control-store.ts";

/** What the ledger reads from. */
export type HistoryStore = Pick<ControlStore, "read" | "runs" | "runsSince" | "coverage" | "acts">;

export interface History {
  readonly state: ControlState | undefined;
  /** The job's names, oldest first. */
  readonly names: readonly string[];
  /** Pauses, resumptions and skips, oldest first. */
  readonly acts: readonly ActRecord[];
  /**
   * Pages of records, oldest first: all from the last on that hadn't settled `from` yet, and some more.
   * @param from a tick, in milliseconds since the epoch
   */
  recordsFor(from: number): AsyncGenerator<readonly RunRecord[]>;
  /** The same in brief. */
  coverageFor(from: number): AsyncGenerator<readonly RunCoverage[]>;
}

/** The control item is read first, so that what it says has been settled is on record by the time the records are read. */
export const readHistory = async (job: string, store: HistoryStore, budget: () => Budget): Promise<History> => {
  const state = await store.read(job, budget());
  const names = [job];
  for (let link = state?.movedFrom?.job; link !== undefined && !names.includes(link); ) {
    names.unshift(link);
    link = (await store.read(link, budget()))?.movedFrom?.job;
  }
  const acts: ActRecord[] = [];
  for (const name of names.toReversed()) await readActs(name, acts, store, budget);
  return {
    state,
    names,
    acts: acts.reverse(),
    recordsFor: (from) => pagesFor(from, names, store, budget, store.runsSince),
    coverageFor: (from) => pagesFor(from, names, store, budget, store.coverage),
  };
};

const ledgerActs = ["pause", "resume", "skip"];

/** Newest first, as they are read. */
const readActs = async (name: string, into: ActRecord[], store: HistoryStore, budget: () => Budget): Promise<void> => {
  let before: string | undefined;
  do {
    const page = await store.acts(name, { limit: 500, ...(before === undefined ? {} : { before }) }, budget());
    for (const act of page.acts) if (ledgerActs.includes(act.kind)) into.push(act);
    before = page.next;
  } while (before !== undefined);
};

async function* pagesFor<Run>(
  from: number,
  names: readonly string[],
  store: HistoryStore,
  budget: () => Budget,
  readPage: (
    job: string,
    page: { limit: number; from: number; after?: string },
    budget: Budget,
  ) => Promise<{ readonly runs: readonly Run[]; readonly next?: string }>,
): AsyncGenerator<readonly Run[]> {
  const start = await startFor(from, names, store, budget);
  for (const name of names.slice(start.name)) {
    const since = name === names[start.name] ? start.at : 0;
    const read = (after?: string) =>
      readPage(name, { limit: pageSize, from: since, ...(after === undefined ? {} : { after }) }, budget());
    let coming = read();
    for (;;) {
      const page = await coming;
      // The next one is on its way while this one is looked at.
      if (page.next !== undefined) {
        coming = read(page.next);
        coming.catch(() => {});
      }
      yield page.runs;
      if (page.next === undefined) break;
    }
  }
}

const pageSize = 1_000;

/**
 * Where to begin: at the last run that had left everything from `from` on unsettled, and a little before it, since records
 * stand in the order of their machines' clocks.
 */
const startFor = async (
  from: number,
  names: readonly string[],
  store: HistoryStore,
  budget: () => Budget,
): Promise<{ readonly name: number; readonly at: number }> => {
  for (let name = names.length - 1; name >= 0; name -= 1) {
    let before: string | undefined = `run#${new Date(Math.max(0, from)).toISOString()}`;
    do {
      const page = await store.runs(names[name] as string, { limit: 25, before }, budget());
      const unsettled = page.runs.find((record) => leftUnsettled(record, from));
      if (unsettled !== undefined) return { name, at: unsettled.startedAt - clocksDifferMs };
      before = page.next;
    } while (before !== undefined);
  }
  return { name: 0, at: 0 };
};

/** Whether the job had completed nothing from `from` on when the run ended, as far as its record tells. */
const leftUnsettled = ({ fence, outcome, completed }: RunRecord, from: number): boolean => {
  if (fence === undefined) return false;
  // Who records another's run knows only what that one completed itself.
  return completed === undefined ? outcome !== "crashed" && outcome !== "cancelled" : completed < from;
};

/** Far more than any skew that a lease is safe to be tried under. */
const clocksDifferMs = 10 * 60_000;
