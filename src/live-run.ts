/**
 * A run that holds the lease.
 *
 * Guarantees: its commits go out one after the other, in the order they were asked for; once it has stopped (finished,
 * lost, timed out, interrupted) nothing more of it goes out, whoever still holds on to it; and a commit whose outcome
 * is unknown blocks all others until the finish has settled it.
 *
 * What it doesn't guarantee: that the lease is still held after a commit. Safety is the store's conditions; the timers
 * here only decide how soon work stops or resumes.
 */
import { type Attempt, budgetUntil, type Granted } from "./attempt.ts";
import type { TickPlan } from "./catch-up.ts";
import { commitmentLedger } from "./commitment.ts";
import type {
  Approval,
  CommitResult,
  ControlState,
  ControlStore,
  Finish,
  RunRecord,
  SkippedTicks,
  TickPart,
} from "./control/control-store.ts";
import { dryRunStore } from "./control/dry-run.ts";
import { commitsOf, rememberOwners, tally } from "./control/tally.ts";
import { mostActionsWithFinish, noWrites } from "./control/writes.ts";
import { CommitRefusedError, hasCode, type LeaseLostError, type WriteRejectedError } from "./errors.ts";
import { heartbeat } from "./heartbeat.ts";
import type { Json } from "./json.ts";
import { type Observation, observeRun } from "./observe/observers.ts";
import { type RunOutcome, traitsOf } from "./outcome.ts";
import { owedAfter, passes } from "./passes.ts";
import { recordPredecessors } from "./predecessors.ts";
import { advance, type Batch, latest, type Progress } from "./progress.ts";
import { errorOf, isoOf } from "./report.ts";
import { type Ending, recordOf } from "./run-record.ts";
import { watchStopping } from "./stopping.ts";
import { turns } from "./turns.ts";

type Finished =
  | { readonly kind: "ended"; readonly ending: Ending; readonly record: RunRecord }
  /** A later tick was queued behind this run, which now covers it too: do the work again. */
  | { readonly kind: "again" };

export interface LiveRun {
  readonly attempt: Attempt;
  readonly fence: number;
  readonly dryRun: boolean;
  readonly signal: AbortSignal;
  /** Resolves when the run must end now, whatever the work does: its deadline, an interrupt, or the lease lost. */
  readonly stopped: Promise<Ending>;
  /** The latest tick that the run covers, and what this pass does; `undefined` for a manual run that covers none. */
  readonly through: number | undefined;
  readonly plan: TickPlan | undefined;
  /** As of the last commit. */
  readonly watermark: Json | undefined;
  /** Ticks through this instant are settled, or aren't owed. */
  readonly settledThrough: number;
  /** A tick that an earlier run left half done. */
  readonly tickPart: TickPart | undefined;
  /** How much the last runs did, and the approval of a larger plan, as of the start. */
  readonly recent: ControlState["recent"];
  readonly approval: Approval | undefined;
  /** The approval goes with the run's first commit, or with its finish. */
  useApproval(): void;
  /** Refuses all writes for this reason, until it is called with `undefined`. */
  holdWrites(why: string | undefined): void;
  /** Refuses commits that would bring the run's items over this. */
  limitItems(most: number): void;
  /** How long the slowest commit took so far, in milliseconds. */
  readonly slowestCommitMs: number;
  /** Writes that a dry run would have sent. */
  readonly wouldWrite: number;
  /** Who is told of the run. */
  readonly observation: Observation;
  commit(batch: Batch): Promise<void>;
  /** A commit that can't be sent: it fails the run as any other does, if nobody looks. */
  refuse(error: unknown): Promise<void>;
  /** Keeps a last batch for the finish, which makes it visible together with the run's success. */
  stage(batch: Batch): void;
  finish(ending: Ending): Promise<Finished>;
}

/**
 * Takes charge of a lease that was granted: from here on it is renewed, watched and, by `finish`, given back.
 * @param rounds whether the work can be done once more for a tick that is queued behind it
 */
export const liveRun = (attempt: Attempt, { lease, state }: Granted, rounds: boolean): LiveRun => {
  const { spec, trigger, clock, log, deadline } = attempt;
  const dryRun = spec.dryRun || attempt.adHoc;
  let wouldWrite = 0;
  const store: ControlStore = dryRun
    ? dryRunStore(attempt.store, attempt.adHoc, ({ actions }) => {
        wouldWrite += actions.length;
      })
    : attempt.store;

  let seq = lease.run.seq;
  let progress: Progress = {
    commits: 0,
    items: 0,
    itemsSkipped: 0,
    itemsParked: 0,
    ...(state.watermark === undefined ? {} : { watermark: state.watermark }),
    ...(state.tick === undefined ? {} : { completed: state.tick }),
    ...(state.tickPart === undefined ? {} : { tickPart: state.tickPart }),
  };
  /** Of the commits that are known to have been applied, those that aren't the work's only sealed the sequence. */
  const counted = () => ({ seq, seals: seq - progress.commits });
  let slowestCommitMs = 0;
  /** An approval was needed, and hasn't been used up yet. */
  let approving = false;
  let mostItems = Number.POSITIVE_INFINITY;
  /** Why nothing may be written yet. */
  let heldBack: string | undefined;
  let staged: Batch | undefined;
  /** The end has been asked for, and has what it takes with it. */
  let settling = false;

  const ticks = passes(attempt, state);
  const stopping = watchStopping(attempt);
  const predecessors = recordPredecessors(attempt, store, state.prev);
  const recordedOwners = () => predecessors.recorded.map(({ owner }) => owner);
  /** How many of them stand on the control item. */
  let standing = state.prev.length;
  // One queue for all that touches the control item: a plain update beside a running transaction is refused.
  const queue = turns();
  const beat = heartbeat(attempt, lease, state.leaseUntil ?? 0, store, stopping, queue);
  const close = (outcome: RunOutcome) => {
    stopping.close(outcome);
    beat.cancel();
  };

  // --- Commits.
  const commitments = commitmentLedger();
  /** A commit whose outcome is unknown, until the finish settles it. */
  let doubted: { readonly batch: Batch; readonly error: unknown } | undefined;
  /** The commit that found the lease lost, where even its record couldn't tell whether it had been applied. */
  let unsettled: Batch | undefined;
  const refuseTooMany = (batch: Batch) => {
    if (progress.items + batch.items <= mostItems) return;
    throw new CommitRefusedError(
      `the run planned to affect ${mostItems} items, and this commit would bring it to ${progress.items + batch.items}`,
    );
  };
  const send = async (batch: Batch, covers?: number): Promise<void> => {
    refuseTooMany(batch);
    if (doubted !== undefined) throw doubted.error;
    const prev = predecessors.unrecorded;
    const sentAt = clock.now();
    let result: CommitResult;
    try {
      result = await store.commit(
        lease,
        {
          ...batch,
          ...counted(),
          leaseUntil: beat.prolonged(),
          items: progress.items + batch.items,
          ...(batch.tick === undefined ? {} : passedOver(batch.tick)),
          ...(covers === undefined ? {} : { covers }),
          ...(prev.length === standing ? {} : { prev, recentOwners: rememberOwners(state, recordedOwners()) }),
          ...(approving ? { usesApproval: true } : {}),
        },
        budgetUntil(attempt, deadline),
      );
    } catch (error) {
      if (hasCode(error, "LEASE_LOST")) {
        if (wasApplied(error)) progress = advance(progress, batch);
        else unsettled = batch;
        stopping.stop("lease_lost", error as Error);
      }
      if (hasCode(error, "OUTCOME_UNKNOWN")) doubted = { batch, error };
      throw error;
    }
    seq = result.seq;
    const without = result.rejected && batch.withoutRejected?.(result.rejected);
    if (without !== undefined) return send(without, covers);
    if (result.rejected !== undefined) throw result.rejected;
    slowestCommitMs = Math.max(slowestCommitMs, clock.now() - sentAt);
    standing = prev.length;
    approving = false;
    progress = advance(progress, batch);
    // A dry run's commits aren't sent, so they renew nothing.
    if (!dryRun) beat.arm();
  };

  /** A commit that failed without anybody looking: the work isn't done. */
  const unseenFailure = (): Ending | undefined => {
    const unseen = commitments.unseen();
    return unseen && { outcome: "failed", error: unseen.error };
  };

  const passedOver = (completed: number): { readonly skipped?: readonly SkippedTicks[] } => {
    const skipped = ticks.skippedThrough(completed);
    return skipped.length === 0 ? {} : { skipped };
  };

  // --- The end.
  const record = (ending: Ending, at: number, end: Progress): RunRecord => {
    return recordOf(attempt, lease, state, {
      ...ending,
      at,
      // No commit of a dry run was sent: its watermark stands as it was.
      progress: dryRun ? unmoved(end, state) : end,
      ticks: ticks.range,
      skipped: ticks.skippedThrough(end.completed),
    });
  };

  const finishOf = (ending: Ending, last: Batch | undefined): Finish => {
    const at = clock.now();
    const completes = latest(last?.tick, ending.completes);
    const end = last === undefined ? progress : advance(progress, last);
    const completed = dryRun ? state.tick : latest(end.completed, completes);
    return {
      ...counted(),
      record: record(ending, at, { ...withoutTick(end), ...(completed === undefined ? {} : { completed }) }),
      writes: last?.writes ?? noWrites,
      prev: predecessors.unrecorded,
      ...(approving ? { usesApproval: true } : {}),
      ...(ending.tripped === undefined ? {} : { tripped: { ...ending.tripped, at } }),
      ...(last?.watermark === undefined ? {} : { watermark: last.watermark }),
      ...(last?.tickPart === undefined ? {} : { tickPart: last.tickPart }),
      // A tick never moves back.
      ...(completes === undefined || completes !== completed ? {} : { tick: completes }),
      ...(ending.outcome === "succeeded" ? { success: { covered: ticks.through } } : {}),
      ...tally(
        state,
        {
          outcome: ending.outcome,
          owner: lease.owner,
          tick: ticks.through,
          at,
          // A clock may have been set back meanwhile.
          durationMs: Math.max(0, at - attempt.startedAt),
          items: end.items,
        },
        predecessors.recorded,
      ),
    };
  };

  /** Sends the finish until the run is known to have ended, or has to go round again. */
  const settle = async (asked: Ending): Promise<Finished> => {
    let ending = asked;
    let behind: number | undefined;
    await predecessors.recording;
    for (;;) {
      if (isComplete(ending) && doubted !== undefined) ending = { outcome: "failed", error: doubted.error };
      const complete = isComplete(ending);
      try {
        if (complete && staged !== undefined && staged.writes.actions.length > mostActionsWithFinish) {
          await send(staged);
          staged = undefined;
        }
        if (complete && staged !== undefined) refuseTooMany(staged);
        const request = finishOf(ending, complete ? staged : undefined);
        const result = await store.finish(lease, request, budgetUntil(attempt, attempt.end));
        if (result.kind === "finished") {
          const { outcome, record: found = request.record } = result;
          if (behind !== undefined) await startAnother(behind);
          return { kind: "ended", ending: { ...ending, outcome }, record: { ...found, outcome } };
        }
        if (result.kind === "late_commit") {
          const { run = { seq: seq + 1 } } = result.state;
          // Or else it is the seal that was in doubt.
          if (doubted !== undefined && commitsOf(run) > progress.commits) progress = advance(progress, doubted.batch);
          seq = run.seq;
          doubted = undefined;
          continue;
        }
        const passMs = clock.now() - ticks.startedAt;
        if (rounds && stopping.halted === undefined && clock.now() + passMs < deadline) {
          await goRound(ending, result.tick);
          return { kind: "again" };
        }
        ending = { ...ending, outcome: "capped", backlog: `tick ${isoOf(result.tick)}, queued behind this run` };
        behind = result.tick;
      } catch (error) {
        if (hasCode(error, "LEASE_LOST")) {
          if (doubted !== undefined && wasApplied(error)) progress = advance(progress, doubted.batch);
          return lost(error as Error);
        }
        if (hasCode(error, "OUTCOME_UNKNOWN") && doubted === undefined) throw error;
        if (!complete) throw error;
        // Nothing of the last batch was written, so the work isn't done, unless it can do without what was rejected.
        staged = hasCode(error, "WRITE_REJECTED") ? staged?.withoutRejected?.(error as WriteRejectedError) : undefined;
        if (staged === undefined) ending = { outcome: "failed", error };
      }
    }
  };

  /** What was done is committed, and the run covers the queued tick from now on. */
  const goRound = async (ending: Ending, tick: number): Promise<void> => {
    const completes = latest(staged?.tick, ending.completes);
    await send({ ...(staged ?? nothing), ...(completes === undefined ? {} : { tick: completes }) }, tick);
    staged = undefined;
    ticks.goRound(tick, owedAfter(state, progress.completed));
  };

  const startAnother = async (tick: number): Promise<void> => {
    try {
      await attempt.startAnother?.(spec.name, tick);
    } catch (error) {
      log.warn({ error: errorOf(error) }, "another run couldn't be started; the tick stays owed to the next one");
    }
  };

  const lost = async (error: Error): Promise<Finished> => {
    stopping.stop("lease_lost", error);
    const ending: Ending = { outcome: "lease_lost", error };
    const keep = () => store.recordLost(record(ending, clock.now(), progress), budgetUntil(attempt, attempt.end));
    try {
      let found = await keep();
      // Its successor has recorded it with a commit more: the one in doubt had been applied.
      const batch = unsettled ?? doubted?.batch;
      if (batch !== undefined && isCrashOf(found, lease) && found.commits > progress.commits) {
        progress = advance(progress, batch);
        found = await keep();
      }
      return { kind: "ended", ending: { ...ending, outcome: found.outcome }, record: found };
    } catch (failure) {
      log.warn({ error: errorOf(failure) }, "the lost lease couldn't be recorded");
      return { kind: "ended", ending, record: record(ending, clock.now(), progress) };
    }
  };

  const observation = observeRun(
    attempt.observers,
    {
      job: spec.name,
      run: attempt.runId,
      fence: lease.fence,
      trigger: trigger.kind,
      ...(trigger.tick === undefined ? {} : { tick: trigger.tick }),
      startedAt: attempt.startedAt,
      dryRun,
      ...(attempt.version === undefined ? {} : { version: attempt.version }),
    },
    { clock, log, remainingMs: attempt.remainingMs },
  );
  beat.arm();
  return {
    attempt,
    observation,
    fence: lease.fence,
    dryRun,
    signal: stopping.signal,
    stopped: stopping.stopped,
    get through() {
      return ticks.through;
    },
    get plan() {
      return ticks.plan;
    },
    get watermark() {
      return progress.watermark;
    },
    get settledThrough() {
      return owedAfter(state, progress.completed);
    },
    get tickPart() {
      return progress.tickPart;
    },
    recent: state.recent,
    approval: state.approval,
    useApproval: () => {
      approving = true;
    },
    holdWrites: (why) => {
      heldBack = why;
    },
    limitItems: (most) => {
      mostItems = most;
    },
    get slowestCommitMs() {
      return slowestCommitMs;
    },
    get wouldWrite() {
      return wouldWrite;
    },
    commit: (batch) => {
      if (heldBack !== undefined && stopping.halted === undefined)
        return commitments.track(Promise.reject(new CommitRefusedError(heldBack)));
      const failedMeanwhile = commitments.lookout();
      return commitments.track(
        queue.take(async () => {
          if (stopping.halted !== undefined) throw stopping.halted;
          // The watermark would pass over work that wasn't done.
          const failure = batch.watermark === undefined ? undefined : failedMeanwhile();
          if (failure !== undefined) throw failure.error;
          await send(batch);
        }),
      );
    },
    refuse: (error) => commitments.track(queue.take(() => Promise.reject(error))),
    stage: (batch) => {
      if (stopping.halted !== undefined) throw stopping.halted;
      if (heldBack !== undefined) throw new CommitRefusedError(heldBack);
      if (settling) throw new CommitRefusedError("the run's end is on its way, and takes no last batch any more");
      if (staged !== undefined) {
        throw new CommitRefusedError("a last batch is already kept for the end of this run, which takes one");
      }
      staged = batch;
    },
    finish: async (asked) => {
      // Work that failed doesn't get commits through that it never waited for; work that is done does.
      if (!isComplete(asked)) close(asked.outcome);
      await queue.idle();
      settling = true;
      const ending = isComplete(asked) ? (stopping.ending ?? unseenFailure() ?? asked) : asked;
      try {
        // A commit in doubt is settled first, as for every other end: a renewal that was refused says nothing of it.
        const isLost = ending.outcome === "lease_lost" && doubted === undefined;
        const finished = await queue.take(() => (isLost ? lost(ending.error as Error) : settle(ending)));
        if (finished.kind === "ended") close(finished.ending.outcome);
        else {
          settling = false;
          beat.arm();
        }
        return finished;
      } catch (error) {
        close(ending.outcome);
        throw error;
      }
    },
  };
};

/** The work was done as far as it was meant to be. */
const isComplete = ({ outcome }: Ending): boolean => outcome === "dry_run" || traitsOf(outcome).streak === "reset";

/** The lease was lost, and the commit that was in doubt then had been applied: the record must count it. */
const wasApplied = (error: unknown): boolean => (error as LeaseLostError).lastCommit === "applied";

const isCrashOf = ({ outcome, owner }: RunRecord, lease: { readonly owner: string }): boolean =>
  outcome === "crashed" && owner === lease.owner;

const unmoved = ({ watermark: _, ...progress }: Progress, { watermark }: ControlState): Progress => ({
  ...progress,
  ...(watermark === undefined ? {} : { watermark }),
});

const withoutTick = ({ completed: _, ...progress }: Progress): Progress => progress;

const nothing: Batch = { writes: noWrites, items: 0 };
