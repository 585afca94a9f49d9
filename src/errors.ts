/**
 * Every error that cronfence throws. Tell them apart by `code` (bundling can load a class twice, so `instanceof`
 * isn't reliable); the message is for people and may change. Expected outcomes (held, duplicate, paused…) are values
 * in a run's report, not errors: an error means that somebody must act.
 */

/** The base of all of cronfence's errors. */
export class CronfenceError extends Error {
  /** Stable, for programs. */
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(shortened(message, longestMessage), options);
    this.name = "CronfenceError";
    this.code = code;
  }
}

/** What a message quotes may be of any length; a log line or an answer that holds it may not. */
const longestMessage = 10_000;

const shortened = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** Whether `error` is one of cronfence's own with this code. Works across bundles. */
export const hasCode = (error: unknown, code: string): boolean =>
  typeof error === "object" && error !== null && (error as { code?: unknown }).code === code;

/** Options that can't be accepted; every problem found is listed, each with its option, value and what is allowed. */
export class InvalidOptionsError extends CronfenceError {
  override readonly name = "InvalidOptionsError";
  /** One sentence for each problem. */
  readonly problems: readonly string[];

  constructor(subject: string, problems: readonly string[], options?: ErrorOptions) {
    super("INVALID_OPTIONS", `${subject}: ${problems.join("; ")}`, options);
    this.problems = problems;
  }
}

/** A schedule expression that can't be parsed, never fires, or has no equivalent in the asked-for dialect. */
export class InvalidScheduleError extends CronfenceError {
  override readonly name = "InvalidScheduleError";
  readonly expression: string;
  /** Offset of the first offending character in `expression`, from 0, where one can be named. */
  readonly position: number | undefined;

  constructor(expression: string, reason: string, position?: number, options?: ErrorOptions) {
    super(
      "INVALID_SCHEDULE",
      `schedule "${shortened(expression, longestExpression)}"${position === undefined ? "" : ` at character ${position + 1}`}: ${reason}`,
      options,
    );
    this.expression = expression;
    this.position = position;
  }
}

/** The reason comes after it. */
const longestExpression = 200;

/** A commit that was refused before it was sent: nothing was written, and the run goes on. */
export class CommitRefusedError extends CronfenceError {
  override readonly name = "CommitRefusedError";
  /** The offending write, from 0, where one can be named. */
  readonly index: number | undefined;

  constructor(reason: string, index?: number, options?: ErrorOptions) {
    super("COMMIT_REFUSED", reason, options);
    this.index = index;
  }
}

/** A write of the user's that DynamoDB rejected. */
export interface RejectedWrite {
  /** Its place among the commit's writes, from 0. */
  readonly index: number;
  /** DynamoDB's cancellation code: ConditionalCheckFailed, ValidationError, ItemCollectionSizeLimitExceeded. */
  readonly code: string;
  readonly message?: string;
  /** The item as it stood, if the write asked for it with `ReturnValuesOnConditionCheckFailure: "ALL_OLD"`. */
  readonly oldItem?: Record<string, unknown>;
}

/** DynamoDB rejected writes of a commit: nothing of it was written, and the run goes on. */
export class WriteRejectedError extends CronfenceError {
  override readonly name = "WriteRejectedError";
  readonly job: string;
  readonly rejected: readonly RejectedWrite[];

  constructor(job: string, rejected: readonly RejectedWrite[], options?: ErrorOptions) {
    const which = rejected.map(
      ({ index, code, message }) => `write ${index}: ${code}${message ? ` (${message})` : ""}`,
    );
    super("WRITE_REJECTED", `job "${job}": nothing was written, since DynamoDB rejected ${which.join("; ")}`, options);
    this.job = job;
    this.rejected = rejected;
  }
}

/** The run no longer holds the lease: no later write of it is accepted, and none is sent. */
export class LeaseLostError extends CronfenceError {
  override readonly name = "LeaseLostError";
  readonly job: string;
  readonly runId: string;
  readonly fence: number;
  /** What became of the commit that found out; `none` where it was found out without one. */
  readonly lastCommit: "applied" | "not applied" | "unknown" | "none";

  constructor(
    lease: { readonly job: string; readonly fence: number; readonly run: { readonly id: string } },
    lastCommit: LeaseLostError["lastCommit"],
    options?: ErrorOptions,
  ) {
    const commit =
      lastCommit === "none"
        ? ""
        : `; its last commit was ${lastCommit === "unknown" ? "applied or not, which is unknown" : lastCommit}`;
    super(
      "LEASE_LOST",
      `job "${lease.job}": run ${lease.run.id} lost its lease (fence ${lease.fence})${commit}`,
      options,
    );
    this.job = lease.job;
    this.runId = lease.run.id;
    this.fence = lease.fence;
    this.lastCommit = lastCommit;
  }
}

/** A call on a run that has ended, from code that outlived it. Nothing was sent. */
export class RunEndedError extends CronfenceError {
  override readonly name = "RunEndedError";
  readonly job: string;
  readonly runId: string;

  constructor(job: string, runId: string, outcome: string) {
    super("RUN_ENDED", `job "${job}": run ${runId} has ended (${outcome}), so nothing more can be written under it`);
    this.job = job;
    this.runId = runId;
  }
}

/** Whether a request was applied couldn't be found out in time. It is settled by the run's finish or by the next run. */
export class OutcomeUnknownError extends CronfenceError {
  override readonly name = "OutcomeUnknownError";
  readonly job: string;
  readonly operation: string;

  constructor(job: string, operation: string, options?: ErrorOptions) {
    super(
      "OUTCOME_UNKNOWN",
      `job "${job}": whether the ${operation} was applied couldn't be found out in time`,
      options,
    );
    this.job = job;
    this.operation = operation;
  }
}

/** DynamoDB can't be used as asked: a missing table, no permission, no credentials, or throttled for too long. */
export class StoreUnavailableError extends CronfenceError {
  override readonly name = "StoreUnavailableError";
  readonly operation: string;

  constructor(subject: string, operation: string, options?: ErrorOptions) {
    const cause = options?.cause as { name?: string; message?: string } | undefined;
    const why = cause === undefined ? "" : `: ${[cause.name, cause.message].filter(Boolean).join(": ")}`;
    super("STORE_UNAVAILABLE", `${subject}: ${operation} failed, and nothing was written by it${why}`, options);
    this.operation = operation;
  }
}

/** The run reached its deadline. */
export class RunTimedOutError extends CronfenceError {
  override readonly name = "RunTimedOutError";

  constructor(job: string, runId: string, limitMs: number) {
    super("RUN_TIMED_OUT", `job "${job}": run ${runId} reached its deadline after ${limitMs} ms`);
  }
}

/** The platform asked the run to stop. */
export class RunInterruptedError extends CronfenceError {
  override readonly name = "RunInterruptedError";

  constructor(job: string, runId: string, reason: string) {
    super("RUN_INTERRUPTED", `job "${job}": run ${runId} was interrupted (${reason})`);
  }
}

/** An earlier try of this same invocation still holds the lease: thrown so that the platform tries again later. */
export class PredecessorUnfinishedError extends CronfenceError {
  override readonly name = "PredecessorUnfinishedError";

  constructor(job: string, runId: string, leaseUntil: number | undefined) {
    const until = leaseUntil === undefined ? "" : ` until ${new Date(leaseUntil).toISOString()}`;
    super(
      "PREDECESSOR_UNFINISHED",
      `job "${job}": run ${runId} of an earlier try of this invocation still holds the lease${until}; trying again after that`,
    );
  }
}

/** A source whose pages don't follow its contract, so that going on could loop or leave items out. */
export class SourceError extends CronfenceError {
  override readonly name = "SourceError";

  constructor(source: string, problem: string) {
    super("SOURCE", `${source}: ${problem}`);
  }
}

/** A tick of more writes than one transaction holds came back different when it was resumed. */
export class TickChangedError extends CronfenceError {
  override readonly name = "TickChangedError";

  constructor(job: string, tick: string, before: number, now: number) {
    super(
      "TICK_CHANGED",
      `job "${job}": tick ${tick} was half done with ${before} writes in all, and now has ${now}; ` +
        "a tick of more than 99 writes must return the same ones in the same order each time",
    );
  }
}

/** Settled ticks that can't be done after all; the run stopped there, and what it did before stays. */
export class BackfillRefusedError extends CronfenceError {
  override readonly name = "BackfillRefusedError";
  readonly job: string;

  constructor(job: string, why: string) {
    super("BACKFILL_REFUSED", `job "${job}": no backfill: ${why}`);
    this.job = job;
  }
}

/** More items failed in one run than may be parked: something that they all need is broken, so the run stops. */
export class ParkLimitError extends CronfenceError {
  override readonly name = "ParkLimitError";

  constructor(job: string, most: number, cause: unknown) {
    const { message } = (cause ?? {}) as { message?: unknown };
    super(
      "PARK_LIMIT",
      `job "${job}": more than ${most} items failed in one run, so it stopped instead of parking them all; the last: ${String(message ?? cause)}`,
      { cause },
    );
  }
}

/** An earlier run began an effect, and nobody knows how it ended: a person must say (or the job's `onUnknown`). */
export class EffectUnknownError extends CronfenceError {
  override readonly name = "EffectUnknownError";
  readonly job: string;
  readonly key: string;

  constructor(job: string, key: string, run: string, at: number) {
    super(
      "EFFECT_UNKNOWN",
      `job "${job}": run ${run} began effect ${JSON.stringify(key)} at ${new Date(at).toISOString()}, and nobody knows ` +
        "whether it was done; it isn't called again until somebody says so",
    );
    this.job = job;
    this.key = key;
  }
}

/** Thrown by an effect to say that it certainly wasn't done: it may be called again. Keeps what made it fail as `cause`. */
export class NotDoneError extends CronfenceError {
  override readonly name = "NotDoneError";

  constructor(message: string, options?: ErrorOptions) {
    super("NOT_DONE", message, options);
  }
}

/** A destructive run was about to affect more than it may: nothing of its plan was written (earlier ticks' plans may have been). */
export class GuardTrippedError extends CronfenceError {
  override readonly name = "GuardTrippedError";
  readonly job: string;
  readonly planned: number;
  /** Of the planned set: an approval is for this one. */
  readonly hash: string;

  constructor(job: string, plan: { readonly count: number; readonly hash: string }, exceeded: string) {
    super(
      "GUARD_TRIPPED",
      `job "${job}": nothing of this plan was written, since ${plan.count} planned items exceed ${exceeded}; ` +
        "look at the plan, and approve it if it is right",
    );
    this.job = job;
    this.planned = plan.count;
    this.hash = plan.hash;
  }
}

/** Parked items that were retried and failed again; they stay parked. */
export class ParkedItemsFailedError extends CronfenceError {
  override readonly name = "ParkedItemsFailedError";

  constructor(job: string, count: number, last: unknown) {
    const { message } = (last ?? {}) as { message?: unknown };
    super(
      "PARKED_ITEMS_FAILED",
      `job "${job}": ${count} parked ${count === 1 ? "item" : "items"} failed again; the last: ${String(message ?? last)}`,
      { cause: last },
    );
  }
}

/** AWS refused calls, or did them only in part, and the job's code went on as if all was well. */
export class SilentFailureError extends CronfenceError {
  override readonly name = "SilentFailureError";
  readonly job: string;
  readonly failures: readonly { readonly call: string; readonly code: string; readonly count: number }[];

  constructor(job: string, failures: SilentFailureError["failures"]) {
    const which = failures.map(({ call, code, count }) => `${call}: ${code}${count > 1 ? ` (${count} times)` : ""}`);
    super(
      "SILENT_FAILURE",
      `job "${job}": the work went on although AWS didn't do all it was asked: ${which.join("; ")}`,
    );
    this.job = job;
    this.failures = failures;
  }
}

/** An operator's act that the job isn't in the state for. Nothing was changed. */
export class ActRefusedError extends CronfenceError {
  override readonly name = "ActRefusedError";
  readonly job: string;
  /** Which act: "pause", "cancel", "skip" … */
  readonly act: string;

  constructor(job: string, act: string, why: string) {
    super("ACT_REFUSED", `job "${job}": ${act} refused, and nothing was changed: ${why}`);
    this.job = job;
    this.act = act;
  }
}

/** The job was moved to another name, or is on its way to this one: no run starts under this name. */
export class JobMovedError extends CronfenceError {
  override readonly name = "JobMovedError";
  readonly job: string;
  /** The name that the job has now, where this one is the old one. */
  readonly to: string | undefined;

  constructor(
    job: string,
    moving: { readonly by: string; readonly why: string; readonly at: number } & (
      | { readonly to: string }
      | { readonly from: string }
    ),
  ) {
    const { by, why, at } = moving;
    const when = `by ${by} at ${new Date(at).toISOString()} (${why})`;
    super(
      "JOB_MOVED",
      "to" in moving
        ? `job "${job}" was moved to "${moving.to}" ${when}, and nothing runs under its old name: deploy it as "${moving.to}", and take "${job}" away`
        : `job "${job}" is being moved here from "${moving.from}", begun ${when}, and not all is here yet: ` +
            `"npx cronfence move ${moving.from} ${job}" goes on with it`,
    );
    this.job = job;
    this.to = "to" in moving ? moving.to : undefined;
  }
}
