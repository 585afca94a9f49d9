/** What starts a run. The tick's identity is its scheduled time, never the delivery. */
import type { TriggerKind } from "./control/control-store.ts";

export interface Trigger {
  readonly kind: TriggerKind;
  /**
   * The tick that was delivered, in milliseconds since the epoch. A manual run without one covers no ticks, except
   * those that are queued behind it.
   */
  readonly tick?: number;
  /** The platform's id of the invocation, the same on its retries: tells our own crashed predecessor from a stranger. */
  readonly requestId?: string;
  /** Which try of the delivery this is, from 1, where the platform says so. For the log. */
  readonly attempt?: number;
  /** Do everything but write: takes no lease and leaves no record. */
  readonly dryRun?: boolean;
  /** How many runs in a row have gone before this one, each leaving a backlog (`onBacklog: "continue"`). */
  readonly chain?: number;
  /** Does these parked items instead of what is due: their keys, or all of them. Covers no ticks. */
  readonly parked?: readonly string[] | "all";
  /**
   * Does these settled ticks after all, oldest first, each once: instants in milliseconds since the epoch that a person
   * vouches for not being done. Covers no ticks.
   */
  readonly backfill?: readonly number[];
  /** Why a person started it. */
  readonly reason?: string;
}
