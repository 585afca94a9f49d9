/** A job's runs, from their records, and those that are going. */
import type { ActRecord, RunEntry, RunPage, RunRecord } from "../control/control-store.ts";
import type { RunOutcome } from "../outcome.ts";
import { refuse, timeProblems } from "./act-check.ts";
import { budgetOf, type OperateDeps } from "./operator.ts";

export interface RunFilter {
  /** The most runs. @default all */
  readonly limit?: number;
  /** Only runs that started before this instant, in milliseconds since the epoch. */
  readonly before?: number;
  /** Only runs that ended so. */
  readonly outcome?: RunOutcome | readonly RunOutcome[];
}

/**
 * The runs of `job` that are on record, newest first, in pages: memory stays flat. Of a job that was renamed, the runs under
 * its older name follow. A run that is still going has no record; `jobStatuses` shows it.
 * @throws InvalidOptionsError for a `before` that is no instant
 * @throws StoreUnavailableError
 */
export async function* listRuns(job: string, filter: RunFilter, deps: OperateDeps): AsyncGenerator<RunRecord> {
  const { limit = Number.POSITIVE_INFINITY, before } = filter;
  refuse("list of runs", before === undefined ? [] : timeProblems("before", before));
  const wanted = filter.outcome === undefined ? undefined : [filter.outcome].flat();
  let found = 0;
  for await (const name of namesOf(job, deps)) {
    // A run's sort key begins with when it started, and this comes before all that started at that instant.
    let start = before === undefined ? undefined : `run#${new Date(before).toISOString()}`;
    for (;;) {
      if (found >= limit) return;
      // A filter may leave out much of a page.
      const most = wanted === undefined ? Math.min(pageSize, limit - found) : pageSize;
      const page: RunPage = await deps.store.runs(
        name,
        { limit: most, ...(start === undefined ? {} : { before: start }) },
        budgetOf(deps),
      );
      for (const record of page.runs) {
        if (wanted !== undefined && !wanted.includes(record.outcome)) continue;
        yield record;
        if (++found >= limit) return;
      }
      if (page.next === undefined) break;
      start = page.next;
    }
  }
}

const pageSize = 1_000;

/** The job's name, and those that it had before, newest first. */
async function* namesOf(job: string, deps: OperateDeps): AsyncGenerator<string> {
  const seen = new Set<string>();
  let name: string | undefined = job;
  while (name !== undefined && !seen.has(name)) {
    yield name;
    seen.add(name);
    const state = await deps.store.read(name, budgetOf(deps));
    name = state?.movedFrom?.job;
  }
}

/** A run that is on record, or that is going or died and isn't recorded yet. */
export type FoundRun =
  | { readonly job: string; readonly record: RunRecord }
  | { readonly job: string; readonly going: RunEntry; readonly holdsLease: boolean };

/**
 * The runs whose id is `id` or begins with it: none, the one, or some of several where that beginning isn't unique (at most
 * `mostFound`). The control items are looked at first; a beginning is then looked for in all records of each job, newest
 * first, which takes a query for every 2,000 runs or so.
 * @throws StoreUnavailableError
 */
export const findRun = async (jobs: readonly string[], id: string, deps: OperateDeps): Promise<readonly FoundRun[]> => {
  const found: FoundRun[] = [];
  if (id === "") return found;
  for (const job of jobs) {
    for await (const name of namesOf(job, deps)) {
      const state = await deps.store.read(name, budgetOf(deps));
      const records = await deps.store.runsNamed(name, id, mostFound, budgetOf(deps));
      for (const record of records) found.push({ job: name, record });
      const recorded = new Set(records.map((record) => record.id));
      for (const going of [state?.run, ...(state?.prev ?? [])]) {
        if (going === undefined || !going.id.startsWith(id) || recorded.has(going.id)) continue;
        found.push({ job: name, going, holdsLease: going === state?.run });
      }
      const exact = found.filter((run) => ("record" in run ? run.record.id : run.going.id) === id);
      if (exact.length > 0) return exact.slice(0, 1);
      if (found.length >= mostFound) return found.slice(0, mostFound);
    }
  }
  return found;
};

/** As many as are worth showing to somebody who has to say which. */
const mostFound = 5;

/** What operators did to `job`, newest first, under its older names too. */
export async function* listActs(
  job: string,
  filter: { readonly limit?: number },
  deps: OperateDeps,
): AsyncGenerator<ActRecord> {
  const { limit = Number.POSITIVE_INFINITY } = filter;
  let found = 0;
  for await (const name of namesOf(job, deps)) {
    let before: string | undefined;
    do {
      if (found >= limit) return;
      const page = await deps.store.acts(
        name,
        { limit: Math.min(pageSize, limit - found), ...(before === undefined ? {} : { before }) },
        budgetOf(deps),
      );
      for (const act of page.acts) {
        yield act;
        found += 1;
      }
      before = page.next;
    } while (before !== undefined);
  }
}
