/**
 * Doing settled ticks after all: ticks that a person vouches for not being done, such as those that the job's policy or an
 * operator left out, or that are from before the job began. Each is done in one transaction that also says so, so that it is
 * done once however often it is asked for; neither the watermark nor the job's last completed tick moves.
 */
import { joinWrites, mostActions } from "../control/writes.ts";
import { BackfillRefusedError } from "../errors.ts";
import type { Work } from "../job.ts";
import type { LiveRun } from "../live-run.ts";
import { isoOf } from "../report.ts";
import { type TickRun, tickAt } from "../run-context.ts";
import type { Ending } from "../run-record.ts";
import { backfillKey } from "./backfill-key.ts";
import { holdForGuard, passGuard } from "./guard.ts";
import { outOfTime } from "./reserve.ts";
import { planOf, resultOf } from "./tick-shape.ts";

/** @param wanted instants, in milliseconds since the epoch */
export const backfillTicks = async (
  { tick: work, destructive }: Work & { readonly shape: "tick" },
  live: LiveRun,
  run: TickRun,
  wanted: readonly number[],
): Promise<Ending> => {
  const { spec, store, clock, random, deadline } = live.attempt;
  const ticks = [...new Set(wanted)].sort((one, other) => one - other);
  const owed = ticks.find((tick) => tick > live.settledThrough);
  if (owed !== undefined) {
    throw new BackfillRefusedError(spec.name, `tick ${isoOf(owed)} isn't settled, so a run for it does it`);
  }
  const done: number[] = [];
  const ending = (): Pick<Ending, "backfilled"> => {
    const [from, through] = [done[0], done.at(-1)];
    // A dry run has done nothing.
    return from === undefined || through === undefined || live.dryRun
      ? {}
      : { backfilled: { from, through, count: done.length } };
  };
  let slowestTickMs = 0;
  for (const [index, tick] of ticks.entries()) {
    const begunAt = clock.now();
    if (live.signal.aborted) throw live.signal.reason;
    if (outOfTime(live, slowestTickMs)) {
      return { ...ending(), outcome: "capped", backlog: `${ticks.length - index} of ${ticks.length} ticks` };
    }
    const key = backfillKey(tick);
    if ((await store.readOnce(spec.name, key, { clock, random, until: deadline })) !== undefined) continue;
    holdForGuard(destructive, live);
    const { writes, watermark } = resultOf(await work(tickAt(tick), run));
    if (watermark !== undefined) {
      throw new BackfillRefusedError(spec.name, "its ticks move a watermark, which an older tick would move back");
    }
    if (writes.length > mostActionsOfBackfill) {
      throw new BackfillRefusedError(
        spec.name,
        `tick ${isoOf(tick)} has ${writes.length} writes, and at most ${mostActionsOfBackfill} fit into the one transaction that does it`,
      );
    }
    if (destructive !== undefined) await passGuard(destructive, live, run, planOf(writes));
    const said = store.doneOnce(spec.name, key, { fence: live.fence, run: run.id, at: clock.now() });
    await live.commit({ writes: joinWrites([said, store.prepare(writes)]), items: writes.length });
    done.push(tick);
    slowestTickMs = Math.max(slowestTickMs, clock.now() - begunAt);
  }
  return { ...ending(), outcome: "succeeded" };
};

/** One write says that the tick is done. */
const mostActionsOfBackfill = mostActions - 1;
