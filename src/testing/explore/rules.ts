/**
 * What must hold of any job, whatever happened: the rules look at the control item before and after each single step that
 * reached the engine, at what the attempts were told, and at the records in the end. They know nothing of how the
 * protocol is made.
 */
import type { OverlapPolicy } from "../../attempt.ts";
import type { RunRecord } from "../../control/control-store.ts";
import type { Json } from "../../json.ts";
import type { RunReport } from "../../report.ts";

/** The control item, as far as the rules look at it. */
export interface Control {
  readonly fence: number;
  readonly owner?: string;
  readonly leaseUntil?: number;
  readonly run?: { readonly id: string; readonly seq: number; readonly tick?: number };
  readonly prev: readonly { readonly owner: string }[];
  readonly watermark?: Json;
  readonly tick?: number;
  readonly pending?: number;
  readonly unfinished: number;
}

/** What the rules remember of an attempt. */
export interface Account {
  readonly name: string;
  readonly owner: string;
  readonly runId: string;
  /** On its own clock. */
  readonly startedAt: number;
  readonly tick: number;
  fence?: number;
  /** It was granted by a request that had been refused before: nobody waits for it, and it costs one lease. */
  orphaned: boolean;
  /** Commits that were applied before the finish. */
  commits: number;
  /** Of these, the ones that only took the place of a commit in doubt. */
  seals: number;
  /** The finish was applied, and brought a last batch. */
  lastBatch: boolean;
  /** It couldn't put its loss on record, nor hear what was, and has logged so. */
  unrecorded: boolean;
  report?: RunReport;
  /** It has put its own record as this. */
  cancelled: boolean;
}

export const newAccount = (runId: string, owner: string, name: string, startedAt: number, tick: number): Account => ({
  name,
  owner,
  runId,
  startedAt,
  tick,
  commits: 0,
  seals: 0,
  orphaned: false,
  unrecorded: false,
  lastBatch: false,
  cancelled: false,
});

/** A rule was broken. */
export class Violation extends Error {}

export const rule = (sentence: string, holds: boolean, seen?: unknown): void => {
  if (!holds) throw new Violation(seen === undefined ? sentence : `${sentence}: ${JSON.stringify(seen)}`);
};

/** What the rules are about. */
export interface Rules {
  readonly skewMs: number;
  readonly overlap: OverlapPolicy;
  /** Whether one watermark is behind another one, as far as that can be told. */
  isBehind(one: Json | undefined, other: Json | undefined): boolean;
}

/** One step, and what it changed. */
export interface Step {
  readonly actor: Account | "operator";
  readonly before: Control;
  readonly after: Control;
  /** Something else was written by it, beside the control item and records of runs. */
  readonly wrote: boolean;
  /** The request had been answered before. */
  readonly isRepeated: boolean;
}

const never = Number.NEGATIVE_INFINITY;

/**
 * Called after each step that may have changed something.
 * @returns whether it was a step of the holder's, under its fence: for other rules to go on with
 */
export const checkStep = (rules: Rules, attempts: readonly Account[], step: Step): boolean => {
  const { actor, before: b, after: a, wrote, isRepeated } = step;
  rule("the fence never goes back", a.fence >= b.fence, [b.fence, a.fence]);
  rule("the completed tick never goes back", (a.tick ?? never) >= (b.tick ?? never), [b.tick, a.tick]);
  rule("the watermark never goes back", !rules.isBehind(a.watermark, b.watermark), [b.watermark, a.watermark]);
  const queued = (control: Control) => Math.max(control.pending ?? never, control.tick ?? never);
  rule("a queued tick is never forgotten", queued(a) >= (b.pending ?? never), [b.pending, a.pending, a.tick]);

  const moved = JSON.stringify(a.watermark) !== JSON.stringify(b.watermark) || a.tick !== b.tick || wrote;
  if (a.fence > b.fence) {
    rule("a grant moves nothing but the lease", !moved && a.fence === b.fence + 1);
    if (actor === "operator") {
      rule("a cancelled run holds nothing", a.owner === undefined && a.run === undefined);
      const cancelled = attempts.find(({ owner }) => owner === b.owner);
      if (cancelled) cancelled.cancelled = true;
      return false;
    }
    rule("a lease is granted to who asked for it", a.owner === actor.owner);
    rule("one acquisition is granted once", actor.fence === undefined, actor.name);
    rule("no run is granted for a completed tick", actor.tick > (b.tick ?? never), [actor.name, b.tick]);
    const free = b.owner === undefined || (b.leaseUntil ?? 0) + rules.skewMs < actor.startedAt;
    rule("a live lease is only taken over by policy", free || rules.overlap === "takeover", actor.name);
    actor.fence = a.fence;
    actor.orphaned = isRepeated;
    return false;
  }
  const leaseChanged = a.owner !== b.owner || a.leaseUntil !== b.leaseUntil || a.run?.seq !== b.run?.seq;
  if (!moved && !leaseChanged) return false;
  if (actor === "operator") throw new Violation("an operator's act changed a job without a new fence");

  // All else is for the holder alone.
  rule("nothing is written under a fence once a greater one was granted", actor.fence === b.fence, {
    by: actor.name,
    under: actor.fence,
    granted: b.fence,
  });
  rule("only the holder writes", b.owner === actor.owner, actor.name);
  const finished = a.owner === undefined;
  rule("a holder never shortens its lease", finished || (a.leaseUntil ?? 0) >= (b.leaseUntil ?? 0));
  rule("nobody else becomes holder without a grant", finished || a.owner === b.owner);
  if (!finished && a.run?.seq !== b.run?.seq) {
    rule("commits are counted one by one", a.run?.seq === (b.run?.seq ?? 0) + 1);
    actor.commits += 1;
    if (!moved && a.run?.tick === b.run?.tick) actor.seals += 1;
  } else rule("nothing is committed without being counted", finished || !moved);
  if (finished) actor.lastBatch = wrote;
  return true;
};

/** Called when an attempt's report is in, with the control item as it is then. */
export const checkReport = (actor: Account, report: RunReport, control: Control): void => {
  actor.report = report;
  const became = report.run !== undefined;
  rule(
    "a run that was granted the lease isn't told otherwise",
    became || actor.orphaned || control.owner !== actor.owner,
    report.outcome,
  );
  rule("a report names the fence of its run", !became || report.fence === actor.fence, [report.fence, actor.fence]);
  if (report.outcome === "duplicate") rule("a duplicate's tick is completed", (control.tick ?? never) >= actor.tick);
  if (report.outcome === "queued") {
    rule("a queued tick is pending or done", Math.max(control.pending ?? never, control.tick ?? never) >= actor.tick);
  }
};

export interface SettledOptions {
  /** A tick's writes may be more than one commit, which completes it. */
  readonly ticksByCommit: boolean;
  /** Commits may have no writes, and then look like those that only take another's place; a last one can't be seen at all. */
  readonly emptyBatches: boolean;
}

/** Called at the very end, when everything that was under way has arrived and the job has been run until it was done. */
export const checkSettled = (
  control: Control,
  attempts: readonly Account[],
  records: readonly RunRecord[],
  options: SettledOptions,
): void => {
  rule(
    "nobody holds the lease",
    control.owner === undefined && control.run === undefined && control.leaseUntil === undefined,
  );
  rule("no run is left unfinished", control.prev.length === 0 && control.unfinished === 0, control);
  rule("no tick is left queued", control.pending === undefined, control.pending);
  rule("each run has one record", new Set(records.map(({ id }) => id)).size === records.length);
  for (const attempt of attempts) {
    const record = records.find(({ id }) => id === attempt.runId);
    rule(
      "a run is on record if it was granted the lease",
      (record !== undefined) === (attempt.fence !== undefined),
      attempt.name,
    );
    if (record !== undefined) checkRecord(attempt, record, options);
  }
  if (options.ticksByCommit) return;
  let through = never;
  for (const { outcome, ticks: covered } of records.toSorted((x, y) => (x.ticks?.from ?? 0) - (y.ticks?.from ?? 0))) {
    if (covered === undefined || (outcome !== "succeeded" && outcome !== "capped")) continue;
    rule("each tick is completed by one run", covered.from > through, covered);
    through = covered.through;
  }
};

const checkRecord = (attempt: Account, record: RunRecord, { emptyBatches }: SettledOptions): void => {
  const { report } = attempt;
  const seen = { name: attempt.name, record: record.outcome, report: report?.outcome };
  rule("a cancelled run is on record as cancelled", attempt.cancelled === (record.outcome === "cancelled"), seen);
  rule("a record names its fence", record.fence === undefined || record.fence === attempt.fence, seen);
  const commits = attempt.commits - attempt.seals + (attempt.lastBatch ? 1 : 0);
  const most = emptyBatches ? attempt.commits + 1 : commits;
  const agrees = record.commits >= commits && record.commits <= most;
  rule("a record counts the commits that are in the tables", agrees, {
    ...seen,
    commits,
    says: record.commits,
  });
  if (report?.run === undefined) return;
  if (attempt.unrecorded && report.outcome === "lease_lost") return;
  rule("a report says what is on record", report.outcome === record.outcome, seen);
  rule("a report counts what is on record", report.commits === record.commits && report.items === record.items, {
    ...seen,
    says: [report.commits, report.items],
    record: [record.commits, record.items],
  });
};
