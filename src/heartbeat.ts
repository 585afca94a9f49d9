/**
 * Keeping a lease: every commit renews it, and a heartbeat does where none has come for a third of its length. It only
 * decides whether others try early; that they can't write is the fence's doing.
 */
import type { Attempt } from "./attempt.ts";
import type { ControlStore, Lease } from "./control/control-store.ts";
import { hasCode } from "./errors.ts";
import { errorOf } from "./report.ts";
import type { Stopping } from "./stopping.ts";
import type { Turns } from "./turns.ts";

export interface Heartbeat {
  /** Until when the lease lasts if it is renewed now; never earlier than it was promised before. */
  prolonged(): number;
  /** The next beat comes a third of the lease's length from now. */
  arm(): void;
  cancel(): void;
}

export const heartbeat = (
  { spec, clock, deadline, ...attempt }: Attempt,
  lease: Lease,
  grantedUntil: number,
  store: ControlStore,
  stopping: Stopping,
  queue: Turns,
): Heartbeat => {
  let leaseUntil = grantedUntil;
  let cancel = () => {};
  const prolonged = () => {
    leaseUntil = Math.max(leaseUntil, clock.now() + spec.ttlMs);
    return leaseUntil;
  };
  const arm = () => {
    cancel();
    if (stopping.halted === undefined) cancel = clock.after(spec.ttlMs / 3, () => void beat());
  };
  const beat = async () => {
    try {
      await queue.take(async () => {
        const renewedMeanwhile = leaseUntil - clock.now() > (spec.ttlMs * 2) / 3;
        if (stopping.halted !== undefined || renewedMeanwhile) return;
        const until = Math.min(deadline, clock.now() + spec.ttlMs / 3);
        await store.renew(lease, prolonged(), { clock, random: attempt.random, until });
      });
    } catch (error) {
      if (hasCode(error, "LEASE_LOST")) stopping.stop("lease_lost", error as Error);
      else attempt.log.warn({ error: errorOf(error) }, "the lease couldn't be renewed");
    }
    arm();
  };
  return { prolonged, arm, cancel: () => cancel() };
};
