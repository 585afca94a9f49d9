/** How runs are counted on the control item: failures in a row, recent runs, and owners that must not be granted again. */
import { type RunOutcome, traitsOf } from "../outcome.ts";
import type { ControlState, Finish, RunEntry } from "./control-store.ts";

type Tally = Pick<
  Finish,
  "unfinished" | "failedTicks" | "lastFailedTick" | "lastSuccessAt" | "recent" | "recentOwners"
>;

/**
 * What a run that ends as `outcome` leaves on the control item.
 *
 * @param state the item as it was when the run acquired the lease, its own acquisition counted
 * @param recorded predecessors that are known to be recorded
 */
export const tally = (
  state: ControlState,
  ended: {
    outcome: RunOutcome;
    owner: string;
    tick: number | undefined;
    at: number;
    durationMs: number;
    items: number;
  },
  recorded: readonly { readonly owner: string }[],
): Tally => {
  const recentOwners = rememberOwners(state, [...recorded.map(({ owner }) => owner), ended.owner]);
  const { streak } = traitsOf(ended.outcome);
  const kept = {
    recentOwners,
    recent: state.recent,
    ...(state.lastFailedTick === undefined ? {} : { lastFailedTick: state.lastFailedTick }),
  };
  if (streak === "reset") {
    const capped = ended.outcome === "capped" ? { capped: true as const } : {};
    const run = { durationMs: ended.durationMs, items: ended.items, ...capped };
    const recent = [...state.recent, run].slice(-rememberedRuns);
    return { recentOwners, recent, unfinished: 0, failedTicks: 0, lastSuccessAt: ended.at };
  }
  if (streak === "leave")
    return { ...kept, unfinished: Math.max(0, state.unfinished - 1), failedTicks: state.failedTicks };
  const before = failuresInARow(state);
  const sameTick = ended.tick !== undefined && state.lastFailedTick === ended.tick && state.failedTicks > 0;
  const again = sameTick || (ended.tick !== undefined && state.prev.some(({ tick }) => tick === ended.tick));
  return {
    ...kept,
    unfinished: 0,
    // Crashes of this tick may be in `before` already; the ticks that failed before it are in `failedTicks`.
    failedTicks: Math.max(again ? before : before + 1, state.failedTicks + (sameTick ? 0 : 1)),
    ...(ended.tick === undefined ? {} : { lastFailedTick: ended.tick }),
  };
};

/** Failed ticks, or unfinished runs less the one that is going, whichever is more: retries of one tick count once. */
export const failuresInARow = (state: ControlState): number =>
  Math.max(state.failedTicks, state.unfinished - (state.owner === undefined ? 0 : 1));

/** How many commits of an unfinished run are in the tables. */
export const commitsOf = ({ seq, seals = 0 }: Pick<RunEntry, "seq" | "seals">): number => seq - seals;

/** The last owners, `added` ones newest: a late repeated acquire of one of them isn't granted. */
export const rememberOwners = (state: ControlState, added: readonly string[]): readonly string[] =>
  [...state.recentOwners.filter((owner) => !added.includes(owner)), ...added].slice(-rememberedOwners);

const rememberedOwners = 8;
const rememberedRuns = 20;
