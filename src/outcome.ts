/**
 * How a run or an attempt ended, and what each ending means for the ticks it covered, for the failures counted in a
 * row, and for the platform that delivered the trigger. Expected outcomes are values; errors mean that somebody must act.
 */

/** How a run ended: the value of `outcome` in its record. */
export type RunOutcome =
  | "succeeded"
  /** Stopped at a bound with work left: a success with a backlog. */
  | "capped"
  | "failed"
  | "timed_out"
  /** Another holder was granted a higher fence while this run was going; none of its later writes was accepted. */
  | "lease_lost"
  /** Asked to stop by the platform (SIGTERM). */
  | "interrupted"
  /** Fenced out by an operator. */
  | "cancelled"
  /** Never finished; recorded by a successor under a higher fence. */
  | "crashed"
  | "guard_tripped"
  | "dry_run";

/** How an attempt ended that never became a run. */
export type AttemptOutcome =
  /** Another run holds the lease and covers this tick, or the job's policy is to leave the tick to the next run. */
  | "held"
  /** Another run holds the lease; it was asked to cover this tick too before it finishes. */
  | "queued"
  /** The tick has been completed already. */
  | "duplicate"
  | "paused";

export type Outcome = RunOutcome | AttemptOutcome;

interface Traits {
  /** What it does to the number of failures in a row. */
  readonly streak: "reset" | "extend" | "leave";
  /** Whether a Lambda invocation that ends so throws, so that the platform's own retry sees it. */
  readonly fails: boolean;
}

const traits: Record<Outcome, Traits> = {
  succeeded: { streak: "reset", fails: false },
  capped: { streak: "reset", fails: false },
  failed: { streak: "extend", fails: true },
  timed_out: { streak: "extend", fails: true },
  guard_tripped: { streak: "extend", fails: false },
  crashed: { streak: "extend", fails: false },
  lease_lost: { streak: "leave", fails: true },
  interrupted: { streak: "leave", fails: true },
  cancelled: { streak: "leave", fails: false },
  dry_run: { streak: "leave", fails: false },
  held: { streak: "leave", fails: false },
  queued: { streak: "leave", fails: false },
  duplicate: { streak: "leave", fails: false },
  paused: { streak: "leave", fails: false },
};

export const traitsOf = (outcome: Outcome): Traits => traits[outcome];
