/** The ledger and its explanation, for tools of your own. */
import { type Explanation, explain } from "../ledger/explain.ts";
import type { ExplainedJob } from "../ledger/explained-job.ts";
import { type Ledger, type LedgerSpan, ledgerOf } from "../ledger/read-ledger.ts";
import { isoOf } from "../report.ts";
import type { WatchedJob } from "../watchdog/watched-job.ts";
import { backfillKey } from "../work/backfill-key.ts";
import { budgetOf, clockOf, type OperateDeps } from "./operator.ts";

/**
 * Every tick of `job` from `from` to `to` (both included, in milliseconds since the epoch) and up to now, with its one state, in
 * the order of time. Iterate it once, then look at its `counts`. Memory stays flat however long the span is.
 * @throws InvalidOptionsError for a job without a schedule, or a span that ends before it begins
 * @throws StoreUnavailableError, while it is iterated
 * @example
 * ```ts
 * const ledger = readLedger(job, { from, to }, { store: dynamoStore() });
 * for await (const { tick, state } of ledger) if (state === "missed") console.log(new Date(tick));
 * console.log(ledger.counts);
 * ```
 */
export const readLedger = (job: WatchedJob, span: LedgerSpan, deps: OperateDeps): Ledger =>
  ledgerOf(job, span, ledgerDeps(deps));

/**
 * Why one tick of `job` is in the state that it is in, in sentences, with the evidence: runs, acts, the lease; and what will
 * happen next, and when.
 * @param tick in milliseconds since the epoch
 * @throws InvalidOptionsError for a job without a schedule, or an instant that is no tick of the job's
 * @throws StoreUnavailableError
 */
export const explainTick = async (job: ExplainedJob, tick: number, deps: OperateDeps): Promise<Explanation> => {
  const explanation = await explain(job, tick, ledgerDeps(deps));
  const { entry, sentences } = explanation;
  if (entry.state !== "skipped" && entry.state !== "before") return explanation;
  const done = await deps.store.readOnce(job.name, backfillKey(tick), budgetOf(deps));
  if (done === undefined) return explanation;
  return {
    ...explanation,
    sentences: [...sentences, `Run ${done.run} did it after all at ${isoOf(done.at)}: a backfill.`],
  };
};

const ledgerDeps = (deps: OperateDeps) => ({
  store: deps.store,
  now: () => clockOf(deps).now(),
  budget: () => budgetOf(deps),
});
