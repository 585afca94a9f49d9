/**
 * `tick` jobs: each due tick is done by itself, oldest first, and completed in the same transaction as its last writes.
 * A tick of more than one transaction's writes keeps its place on the control item, and is resumed there.
 */
import { mostActions, type Write } from "../control/writes.ts";
import { TickChangedError } from "../errors.ts";
import type { TickResult, Work } from "../job.ts";
import type { LiveRun } from "../live-run.ts";
import type { Batch } from "../progress.ts";
import { type TickRun, tickAt } from "../run-context.ts";
import type { Ending } from "../run-record.ts";
import { holdForGuard, passGuard, planner } from "./guard.ts";
import { outOfTime } from "./reserve.ts";

export const performTicks = async (
  { tick: work, destructive }: Work & { readonly shape: "tick" },
  live: LiveRun,
  run: TickRun,
): Promise<Ending> => {
  const { plan } = live;
  const { clock } = live.attempt;
  const last = plan?.ticks.at(-1);
  let slowestTickMs = 0;
  for (const instant of plan?.ticks ?? []) {
    const begunAt = clock.now();
    holdForGuard(destructive, live);
    const result = resultOf(await work(tickAt(instant), run));
    if (destructive !== undefined) await passGuard(destructive, live, run, planOf(result.writes));
    const batches = batchesOf(live, instant, result);
    for (const batch of batches) {
      if (batch.tick !== undefined && instant === last) {
        live.stage(batch);
        continue;
      }
      await live.commit(batch);
      const complete = batch.tick !== undefined;
      slowestTickMs = Math.max(slowestTickMs, clock.now() - begunAt);
      // Once a tick is begun, its writes are worth going on with.
      if (outOfTime(live, complete ? slowestTickMs : 0)) return cappedAfter(instant, complete);
    }
  }
  const owed = plan?.owed ?? 0;
  return owed === 0 ? { outcome: "succeeded" } : { outcome: "capped", backlog: `${owed} ticks (stopped by maxTicks)` };
};

/** A tick's writes are its plan. */
export const planOf = (writes: readonly Write[]) => {
  const planned = planner();
  for (const write of writes) planned.add(JSON.stringify(write));
  return { ...planned.plan(), sample: [] };
};

export const resultOf = (result: readonly Write[] | TickResult | undefined): TickResult =>
  result === undefined ? { writes: [] } : isWrites(result) ? { writes: result } : result;

const isWrites = (result: readonly Write[] | TickResult): result is readonly Write[] => Array.isArray(result);

const cappedAfter = (instant: number, complete: boolean): Ending => ({
  outcome: "capped",
  backlog: complete
    ? `ticks after ${tickAt(instant).id}`
    : `the rest of tick ${tickAt(instant).id}, and those after it`,
});

/** The transactions that a tick's writes make: each keeps the tick's place, and the last completes it. */
const batchesOf = (live: LiveRun, tick: number, { writes, watermark }: TickResult): Batch[] => {
  const { spec, store } = live.attempt;
  const total = writes.length;
  const resumed = live.tickPart?.tick === tick ? live.tickPart : undefined;
  if (resumed !== undefined && resumed.total !== total) {
    throw new TickChangedError(spec.name, tickAt(tick).id, resumed.total, total);
  }
  const batches: Batch[] = [];
  let done = resumed?.done ?? 0;
  do {
    const part = writes.slice(done, done + mostActions);
    done += part.length;
    const complete = done >= total;
    const mark = complete ? watermark : undefined;
    batches.push({
      writes: store.prepare(part, mark),
      items: part.length,
      ...(mark === undefined ? {} : { watermark: mark }),
      ...(complete ? { tick } : { tickPart: { tick, done, total } }),
      ...(complete && (resumed !== undefined || batches.length > 0) ? { tickPart: null } : {}),
    });
  } while (done < total);
  return batches;
};
