/**
 * The one interface to whatever holds leases and watermarks, in terms of lease, fence, watermark and writes.
 *
 * What every implementation guarantees (the conformance suite in test/control checks it):
 * - no write under a fence is accepted once a greater fence has been granted;
 * - watermark, tick and the writes they cover become visible together or not at all;
 * - a lost reply changes nothing: each operation finds out what happened, and says so when it can't.
 *
 * What it doesn't guarantee: that a run which has just committed still holds the lease. Success means "applied".
 */
import type { Clock } from "../clock.ts";
import type { WriteRejectedError } from "../errors.ts";
import type { Json } from "../json.ts";
import type { RunOutcome } from "../outcome.ts";
import type { PreparedWrites, Write } from "./writes.ts";

/** How long an operation may go on trying, and with whose time and randomness. */
export interface Budget {
  readonly clock: Clock;
  /** No new try starts after this instant, in milliseconds since the epoch. */
  readonly until: number;
  /** From 0 up to 1, for the jitter between tries. */
  readonly random: () => number;
}

/** Why a run was started. */
export type TriggerKind = "schedule" | "manual";

/** A run as the control item shows it while it isn't finished. */
export interface RunEntry {
  readonly id: string;
  /** The nonce of its acquisition. */
  readonly owner: string;
  /** The latest tick it covers, in milliseconds since the epoch; absent for a manual run that covers none. */
  readonly tick?: number;
  readonly startedAt: number;
  readonly trigger: TriggerKind;
  /** The platform's id of the invocation, the same on its retries. */
  readonly requestId?: string;
  readonly version?: string;
  /** Commits so far, seals among them. */
  readonly seq: number;
  /** How many of these wrote nothing, and only took the place of a commit in doubt. */
  readonly seals?: number;
  /** Items committed so far. */
  readonly items?: number;
  /** Known from the first commit on. */
  readonly fence?: number;
  /** Which request made the last commit: tells an earlier commit that arrived late from the present one. */
  readonly token?: string;
  /** The last tick that its commits completed, and those that they passed over: what a run that dies leaves to be recorded. */
  readonly completed?: number;
  readonly skipped?: readonly SkippedTicks[];
}

/** New runs are blocked; a run that is going isn't touched. */
export interface Paused {
  readonly by: string;
  readonly why: string;
  readonly at: number;
  /** When the pause ends by itself, in milliseconds since the epoch. */
  readonly until?: number;
}

/** The plan over which a destructive run's guard tripped last. */
export interface Tripped {
  readonly count: number;
  /** Of the planned set. */
  readonly hash: string;
  readonly at: number;
}

/** Lets one run do a plan that its guard would stop. */
export interface Approval {
  readonly max: number;
  /** The approved plan, and no other. */
  readonly hash: string;
  /** Until when, in milliseconds since the epoch. */
  readonly until: number;
  readonly by: string;
  readonly why: string;
}

/** A tick of more writes than one transaction holds, partly committed. */
export interface TickPart {
  readonly tick: number;
  /** Writes of it committed so far. */
  readonly done: number;
  /** Writes it consists of. */
  readonly total: number;
}

/** A start of an overdue job by the watchdog. */
export interface Healed {
  /** Its identity: no tick is started twice. */
  readonly tick: number;
  readonly at: number;
  /** How many starts there have been in a row, this one included, without a success. */
  readonly times: number;
  /** A nonce, to recognise an own note whose reply was lost. */
  readonly by: string;
}

/** The job is known under another name, or is on its way to this one: no run is granted. */
export type Moving = Act & {
  readonly at: number;
} & (
    | { readonly to: string }
    /** What the other job had beside its control item isn't all here yet. */
    | { readonly from: string }
  );

/** A job's control item, decoded. */
export interface ControlState {
  readonly job: string;
  readonly fence: number;
  readonly owner?: string;
  readonly leaseUntil?: number;
  readonly run?: RunEntry;
  /** Predecessors that never finished and aren't yet known to be recorded. */
  readonly prev: readonly RunEntry[];
  readonly recentOwners: readonly string[];
  readonly watermark?: Json;
  /** The last completed tick, in milliseconds since the epoch. */
  readonly tick?: number;
  readonly tickPart?: TickPart;
  /** When the job was first known: ticks before it aren't owed. */
  readonly since: number;
  /**
   * When the job was created, resumed, restored or given another schedule last: older ticks are late only after the next
   * delivery.
   */
  readonly activeSince?: number;
  /** The latest tick that was delivered while another run held the lease. */
  readonly pending?: number;
  readonly paused?: Paused;
  readonly moving?: Moving;
  /** The job's name before, under which its older runs and acts are kept, and since when it has this one. */
  readonly movedFrom?: { readonly job: string; readonly at: number };
  readonly tripped?: Tripped;
  readonly approval?: Approval;
  /** Acquisitions since the last finish. */
  readonly unfinished: number;
  readonly failedTicks: number;
  /** The tick counted last in `failedTicks`: retries of one tick count once. */
  readonly lastFailedTick?: number;
  readonly lastSuccessAt?: number;
  /** The tick after the last success, by the schedule of the run that had it: tells when the schedule has changed. */
  readonly nextTick?: number;
  /** The watchdog's last start of this job. */
  readonly healed?: Healed;
  /** Runs that succeeded or were capped, newest last; at most 20. */
  readonly recent: readonly { readonly durationMs: number; readonly items: number; readonly capped?: true }[];
}

/** The right to run, as its holder knows it. Doesn't change over a run. */
export interface Lease {
  readonly job: string;
  readonly owner: string;
  readonly fence: number;
  readonly run: RunEntry;
  readonly ttlMs: number;
}

export interface AcquireRequest {
  readonly job: string;
  /** A nonce, new per acquisition and the same on all its tries. */
  readonly owner: string;
  readonly run: Omit<RunEntry, "seq" | "seals" | "owner" | "items" | "fence" | "token" | "completed" | "skipped">;
  /** The same on all tries of one acquisition. */
  readonly now: number;
  readonly ttlMs: number;
  /** How far two machines' clocks may differ before a lease is tried for too early. Availability only. */
  readonly skewMs: number;
  /** Refuse unless this tick is later than the last completed one. */
  readonly tick?: number;
  /** Fence out the holder, if the fence is still this one. */
  readonly takeover?: { readonly fence: number };
  /** For the first use of a job: ticks before it aren't owed. Default: `now`. */
  readonly since?: number;
}

export type AcquireResult =
  | { readonly kind: "acquired"; readonly lease: Lease; readonly state: ControlState }
  | { readonly kind: "held" | "duplicate" | "paused"; readonly state: ControlState };

/** What a commit sets besides carrying the user's writes. */
export interface Commit {
  /** Commits of this run that are known to have been applied. */
  readonly seq: number;
  /**
   * How many of these were seals.
   * @default 0
   */
  readonly seals?: number;
  readonly leaseUntil: number;
  readonly writes: PreparedWrites;
  readonly watermark?: Json;
  /** Completes this tick, in milliseconds since the epoch. */
  readonly tick?: number;
  /** All ticks that this run has passed over by then. */
  readonly skipped?: readonly SkippedTicks[];
  /** Where a large tick stands; `null` takes an earlier one away. */
  readonly tickPart?: TickPart | null;
  /** The run covers ticks up to this one from now on. */
  readonly covers?: number;
  /** Items committed by this run, this commit included. */
  readonly items: number;
  /** Predecessors still to be recorded, where that has changed. */
  readonly prev?: readonly RunEntry[];
  /** With those that were taken off it: a late repetition of their acquisition mustn't be granted. */
  readonly recentOwners?: readonly string[];
  /** The approval is used up. */
  readonly usesApproval?: boolean;
}

export interface CommitResult {
  /** Commits of this run that are known to have been applied, with what it took to find that out. */
  readonly seq: number;
  /** DynamoDB rejected writes of the user's: nothing was written, and nothing of it can be written any more. */
  readonly rejected?: WriteRejectedError;
}

/** What a run leaves behind: its record, and how the control item counts it. */
export interface Finish {
  readonly seq: number;
  /**
   * How many of these commits were seals.
   * @default 0
   */
  readonly seals?: number;
  readonly record: RunRecord;
  readonly writes: PreparedWrites;
  readonly watermark?: Json;
  readonly tick?: number;
  readonly tickPart?: TickPart | null;
  /**
   * A success takes `pending` away and is refused while a tick later than this one is pending (`undefined`: any).
   * Absent for all other outcomes, which leave `pending` alone.
   */
  readonly success?: { readonly covered: number | undefined };
  readonly usesApproval?: boolean;
  readonly tripped?: Tripped;
  readonly prev: readonly RunEntry[];
  readonly recentOwners: readonly string[];
  readonly unfinished: number;
  readonly failedTicks: number;
  readonly lastFailedTick?: number;
  readonly lastSuccessAt?: number;
  readonly recent: ControlState["recent"];
}

export type FinishResult =
  /**
   * How the run is recorded: as asked, unless an operator or an earlier try of this finish was first. `record` is what
   * was found, where that isn't what was asked for.
   */
  | { readonly kind: "finished"; readonly outcome: RunOutcome; readonly record?: RunRecord }
  /** An earlier commit was applied after all: it counts, and finish has to be sent again with the next seq. */
  | { readonly kind: "late_commit"; readonly state: ControlState }
  /** A later tick is pending: go round again. */
  | { readonly kind: "pending"; readonly tick: number };

/** The ticks that a run covers. */
export interface TickRange {
  /** The first one, in milliseconds since the epoch. */
  readonly from: number;
  readonly through: number;
  readonly count: number;
}

/** Ticks that were due and that a run settled without doing them. */
export interface SkippedTicks extends TickRange {
  /**
   * `calendar`: removed by an exception. `before startAt`: from before the job began. `startWithin`: too late to be any
   * use. `catchUp`: missed, and the job doesn't make up for it.
   */
  readonly reason: "calendar" | "before startAt" | "startWithin" | "catchUp";
}

/** One run as it is kept. Instants are in milliseconds since the epoch. */
export interface RunRecord {
  readonly job: string;
  readonly id: string;
  readonly owner: string;
  readonly fence?: number;
  readonly outcome: RunOutcome;
  readonly trigger: TriggerKind;
  readonly requestId?: string;
  /** Why a person started it. */
  readonly reason?: string;
  readonly version?: string;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly ticks?: TickRange;
  /** Those of them that were left out. */
  readonly skipped?: readonly SkippedTicks[];
  /** Settled ticks that a person had it do after all. */
  readonly backfilled?: TickRange;
  /** The job's last completed tick when the run ended. */
  readonly completed?: number;
  readonly items: number;
  /** Items whose own condition didn't hold: done elsewhere, or no longer needed. */
  readonly itemsSkipped?: number;
  /** Items set aside after repeated failure. */
  readonly itemsParked?: number;
  readonly commits: number;
  readonly watermarkBefore?: Json;
  readonly watermarkAfter?: Json;
  readonly error?: { readonly name: string; readonly code?: string; readonly message: string };
  /** When the job is due next. */
  readonly nextTick?: number;
  /** What is left to do after `capped`, where the job could say. */
  readonly backlog?: string;
}

/** Of a run's record, what tells which ticks it settled. */
export type RunCoverage = Pick<
  RunRecord,
  "id" | "fence" | "outcome" | "startedAt" | "endedAt" | "ticks" | "skipped" | "completed" | "nextTick"
>;

/** Oldest first. */
export interface CoveragePage {
  readonly runs: readonly RunCoverage[];
  /** Pass it as `after` for the next page; absent at the end. */
  readonly next?: string;
}

/** An item that was set aside after repeated failure, to be retried or dropped by a person. */
export interface ParkedItem {
  /** Names it among the job's parked items. */
  readonly key: string;
  readonly cursor: Json;
  /** The item itself, where its source can't read it again. */
  readonly item?: Json;
  readonly attempts: number;
  readonly error: { readonly name: string; readonly code?: string; readonly message: string };
  /** When it was parked, in milliseconds since the epoch, and by which run. */
  readonly at: number;
  readonly run: string;
}

export interface ParkedPage {
  readonly items: readonly ParkedItem[];
  /** Pass it as `after` for the next page; absent at the end. */
  readonly next?: string;
}

/** What is known of an effect outside DynamoDB. */
export interface OnceState {
  /** `intended`: begun, and nobody knows how it ended. */
  readonly state: "intended" | "done";
  readonly fence: number;
  readonly run: string;
  /** When it was begun, in milliseconds since the epoch. */
  readonly at: number;
  /** The one that it was begun with, where the job had another name then. */
  readonly idempotencyKey?: string;
  readonly result?: Json;
}

/** Who does an operator act, and why. */
export interface Act {
  readonly by: string;
  readonly why: string;
}

/** An act of somebody who has looked at the job before. */
export interface SeenAct extends Act {
  /**
   * The fence that the operator saw: the act is refused when it isn't this one any more, since another run has been granted
   * the lease. Default: the one that is found.
   */
  readonly fence?: number;
}

/** An act that can't be done under a run, and may be told to end it. */
export interface EndingAct extends SeenAct {
  /** Fences the holder out and records its run as `cancelled`, in the same transaction. Default: refused while a run holds the lease. */
  readonly cancel?: boolean;
}

export type ActKind =
  | "pause"
  | "resume"
  | "approve"
  | "cancel"
  | "rewind"
  | "skip"
  | "move"
  | "drop"
  | "release"
  | "restored";

/** An operator act as it is kept, for good. */
export interface ActRecord extends Act {
  readonly id: string;
  readonly kind: ActKind;
  /** In milliseconds since the epoch. */
  readonly at: number;
  /** The job's fence since then, where the act raised it: greater than those of all runs before. */
  readonly fence?: number;
  /** The run that it cancelled. */
  readonly run?: string;
  /** Of a pause or an approval: when it ends by itself. */
  readonly until?: number;
  /** Of a skip: the ticks that it settled. */
  readonly ticks?: TickRange;
  /** Of a rewind: the watermarks, as JSON text. Of a move: the two names. */
  readonly from?: string;
  readonly to?: string;
  /** Of a drop or a release: which parked item or effect. */
  readonly key?: string;
}

/** Newest first. */
export interface ActPage {
  readonly acts: readonly ActRecord[];
  /** Pass it as `before` for the next page; absent at the end. */
  readonly next?: string;
}

export interface ControlStore {
  /** The name of what it keeps its items in, which no user write may touch. */
  readonly table: string;
  /** How long one request may take, in milliseconds: two of these are a run's least reserve. */
  readonly requestTimeoutMs: number;

  /** Checks writes and their watermark against every limit and makes them ready to send. */
  prepare(writes: readonly Write[], watermark?: Json): PreparedWrites;

  /** The write that parks an item, to go out with the commit that passes it. */
  park(job: string, item: Omit<ParkedItem, "key" | "item"> & { readonly item?: unknown }): PreparedWrites;
  /** The write that takes a parked item away, to go out with its work. */
  unpark(job: string, key: string): PreparedWrites;
  parked(job: string, page: { limit: number; after?: string }, budget: Budget): Promise<ParkedPage>;
  readParked(job: string, key: string, budget: Budget): Promise<ParkedItem | undefined>;
  dropParked(job: string, key: string, act: Act, at: number, budget: Budget): Promise<void>;

  readOnce(job: string, key: string, budget: Budget): Promise<OnceState | undefined>;
  /** The writes before an effect, after it, and for one that wasn't done after all. */
  intend(
    job: string,
    key: string,
    intent: { fence: number; run: string; at: number; seen: OnceState | undefined },
  ): PreparedWrites;
  fulfil(
    job: string,
    key: string,
    done: { fence: number; run: string; at: number; result: Json | undefined },
  ): PreparedWrites;
  withdraw(job: string, key: string, fence: number, run: string): PreparedWrites;
  /** The write that says that what it goes out with is done, and refuses it where that was said before. */
  doneOnce(job: string, key: string, done: { fence: number; run: string; at: number }): PreparedWrites;
  releaseOnce(
    job: string,
    key: string,
    verdict: "done" | "not done",
    act: Act,
    at: number,
    budget: Budget,
  ): Promise<void>;

  /** Makes a job known, if it isn't yet. */
  create(job: string, since: number, budget: Budget): Promise<void>;
  read(job: string, budget: Budget): Promise<ControlState | undefined>;
  /** Several at once, by job; what can't be decoded is there as an error, what doesn't exist isn't there. */
  readMany(jobs: readonly string[], budget: Budget): Promise<ReadonlyMap<string, ControlState | Error>>;
  acquire(request: AcquireRequest, budget: Budget): Promise<AcquireResult>;

  /**
   * Asks the holder that refused us to cover `tick` too.
   * `moved`: the lease has changed hands or become free meanwhile, so acquire again.
   */
  queue(job: string, tick: number, holder: ControlState, budget: Budget): Promise<"queued" | "moved">;

  /** Resolves when the commit is known to have been applied, or can't be any more. */
  commit(lease: Lease, commit: Commit, budget: Budget): Promise<CommitResult>;
  renew(lease: Lease, leaseUntil: number, budget: Budget): Promise<void>;
  finish(lease: Lease, finish: Finish, budget: Budget): Promise<FinishResult>;

  /** Records predecessors that never finished as `crashed`, and returns those that are known to be recorded. */
  recordCrashed(job: string, entries: readonly RunEntry[], at: number, budget: Budget): Promise<readonly RunEntry[]>;
  /**
   * Keeps the record of a run that lost its lease, unless it is on record as anything but `crashed`, or as `crashed` with more
   * commits than `record` counts; what is on record now.
   */
  recordLost(record: RunRecord, budget: Budget): Promise<RunRecord>;
  runs(job: string, page: { limit: number; before?: string }, budget: Budget): Promise<RunPage>;
  /** Oldest first: runs that started at or after `from`, in milliseconds since the epoch; `after` is `next` of the page before. */
  runsSince(job: string, page: { limit: number; from: number; after?: string }, budget: Budget): Promise<RunPage>;
  /** The same of each run in brief: a year of minutely runs is half a million. */
  coverage(job: string, page: { limit: number; from: number; after?: string }, budget: Budget): Promise<CoveragePage>;
  /** Runs whose id begins with `beginning`, newest first, at most `most`. Reads the job's records until it has found these. */
  runsNamed(job: string, beginning: string, most: number, budget: Budget): Promise<readonly RunRecord[]>;
  /** What operators did. */
  acts(job: string, page: { limit: number; before?: string }, budget: Budget): Promise<ActPage>;

  /** Notes that the watchdog is about to start a tick; `refused` when it is done, or somebody has noted it already. */
  noteHealed(job: string, healed: Healed, budget: Budget): Promise<"noted" | "refused">;
  /** Notes that the job has another schedule since `at`, unless the item no longer expects the tick `seen`. */
  noteSchedule(job: string, change: { nextTick: number; seen: number; at: number }, budget: Budget): Promise<void>;

  /** Blocks new runs; one that is going isn't touched, unless the act says so: then it is returned. */
  pause(job: string, paused: Paused & EndingAct, budget: Budget): Promise<RunEntry | undefined>;
  resume(job: string, act: SeenAct, at: number, budget: Budget): Promise<void>;
  /** Lets one run do what a guard stopped: the plan that tripped it, if that is of at most `max` items. */
  approve(
    job: string,
    approval: SeenAct & { readonly max: number; readonly until: number },
    at: number,
    budget: Budget,
  ): Promise<Approval>;
  /**
   * Sets the watermark back (or forward; `null` takes it away). Only while no run holds the lease, or together with cancelling
   * it: then it is returned. A run that still goes on under an old fence is fenced out.
   */
  rewind(
    job: string,
    watermark: Json | null,
    act: EndingAct,
    at: number,
    budget: Budget,
  ): Promise<RunEntry | undefined>;
  /**
   * Completes ticks without doing them: those of the range, which must begin after the last completed tick. Only while no run
   * holds the lease, or together with cancelling it: then it is returned.
   */
  skip(job: string, ticks: TickRange, act: EndingAct, at: number, budget: Budget): Promise<RunEntry | undefined>;
  /**
   * Gives the job another name, with all that is kept of it but its run records and acts, which stay where they are. No run is
   * granted under the old name any more. What broke off is gone on with when it is asked for again.
   */
  move(job: string, to: string, act: EndingAct, at: number, budget: Budget): Promise<RunEntry | undefined>;
  /** After a restore from a backup, before any schedule is enabled: raises every fence and takes leases away. */
  restored(act: Act, at: number, budget: Budget): Promise<readonly string[]>;
  /** Fences the holder out and records its run as `cancelled`; says which run, if one held the lease. */
  cancel(job: string, act: SeenAct, at: number, budget: Budget): Promise<RunEntry | undefined>;
}

/** Newest first. */
export interface RunPage {
  readonly runs: readonly RunRecord[];
  /** Pass it as `before` for the next page; absent at the end. */
  readonly next?: string;
}
