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
  /** The lease was renewed: the next beat comes a third of its length from now. */
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
  let renewals = 0;
  let cancel = () => {};
  const prolonged = () => {
    leaseUntil = Math.max(leaseUntil, clock.now() + spec.ttlMs);
    return leaseUntil;
  };
  const arm = () => {
    cancel();
    renewals += 1;
    if (stopping.halted === undefined) cancel = clock.after(spec.ttlMs / 3, () => void beat());
  };
  const beat = async () => {
    const seen = renewals;
    try {
      await queue.take(async () => {
        // A commit that it waited for may have renewed the lease, or have been rejected and renewed nothing.
        if (stopping.halted !== undefined || renewals !== seen) return;
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
