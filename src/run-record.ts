/** What is kept of a run. */
import type { Attempt } from "./attempt.ts";
import type { ControlState, Lease, RunRecord, SkippedTicks, TickRange } from "./control/control-store.ts";
import type { RunOutcome } from "./outcome.ts";
import type { Progress } from "./progress.ts";
import { errorOf } from "./report.ts";

/** How the work ended. */
export interface Ending {
  readonly outcome: RunOutcome;
  /** The tick that is complete with this, where the work's own commits don't say so. */
  readonly completes?: number;
  /** The settled ticks that it did after all. */
  readonly backfilled?: TickRange;
  /** What was thrown. */
  readonly error?: unknown;
  /** What is left, for `capped`. */
  readonly backlog?: string;
  /** The plan that tripped the guard. */
  readonly tripped?: { readonly count: number; readonly hash: string };
}

export const recordOf = (
  { spec, trigger, runId, startedAt, version }: Attempt,
  { owner, fence }: Lease,
  state: ControlState,
  ended: Ending & {
    readonly at: number;
    readonly ticks: TickRange | undefined;
    readonly skipped: readonly SkippedTicks[];
    readonly progress: Progress;
  },
): RunRecord => {
  const { progress, ticks, at } = ended;
  const nextTick = spec.schedule?.next(Math.max(at, ticks?.through ?? at));
  return {
    job: spec.name,
    id: runId,
    owner,
    fence,
    outcome: ended.outcome,
    trigger: trigger.kind,
    startedAt,
    endedAt: at,
    items: progress.items,
    commits: progress.commits,
    ...(progress.itemsSkipped === 0 ? {} : { itemsSkipped: progress.itemsSkipped }),
    ...(progress.itemsParked === 0 ? {} : { itemsParked: progress.itemsParked }),
    ...(ticks === undefined ? {} : { ticks }),
    ...(ended.skipped.length === 0 ? {} : { skipped: ended.skipped }),
    ...(progress.completed === undefined ? {} : { completed: progress.completed }),
    ...(ended.backfilled === undefined ? {} : { backfilled: ended.backfilled }),
    ...(trigger.requestId === undefined ? {} : { requestId: trigger.requestId }),
    ...(trigger.reason === undefined ? {} : { reason: trigger.reason }),
    ...(version === undefined ? {} : { version }),
    ...(state.watermark === undefined ? {} : { watermarkBefore: state.watermark }),
    ...(progress.watermark === undefined ? {} : { watermarkAfter: progress.watermark }),
    ...(ended.error === undefined ? {} : { error: errorOf(ended.error) }),
    ...(ended.backlog === undefined ? {} : { backlog: ended.backlog }),
    ...(nextTick === undefined ? {} : { nextTick }),
  };
};
