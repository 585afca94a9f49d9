/**
 * A store under which nothing is written for the user: commits are checked and counted, and never sent; watermark and
 * tick don't move. It wraps the real store, so that no path of a run can go around it.
 */
import type { ControlStore, Finish } from "./control-store.ts";
import { noWrites, type PreparedWrites } from "./writes.ts";

/**
 * @param adHoc neither lease nor record: not even the control table is written. Otherwise the lease is real, so that
 * two dry runs don't overlap, and the run is recorded.
 * @param seen is told of every batch of writes that would have been sent
 */
export const dryRunStore = (
  store: ControlStore,
  adHoc: boolean,
  seen: (writes: PreparedWrites) => void,
): ControlStore => {
  const dry: ControlStore = {
    ...store,
    commit: async (_lease, { seq, writes }) => {
      seen(writes);
      return { seq: seq + 1 };
    },
    finish: (lease, finish, budget) => {
      seen(finish.writes);
      return store.finish(lease, recordOnly(finish), budget);
    },
  };
  if (!adHoc) return dry;
  return {
    ...dry,
    renew: async () => {},
    recordCrashed: async () => [],
    recordLost: async (record) => record,
    finish: async (_lease, { record, writes }) => {
      seen(writes);
      return { kind: "finished", outcome: record.outcome };
    },
  };
};

/** No commit was sent, so seq is still 0. */
const recordOnly = ({ watermark, tick, tickPart, success, usesApproval, ...finish }: Finish): Finish => ({
  ...finish,
  seq: 0,
  writes: noWrites,
});
