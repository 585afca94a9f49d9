/**
 * What must hold, whatever the schedule. The rules look at the control item and at the job's log (a user's item to which
 * every commit adds an entry) before and after each single step that changed either, at what the runs were told, and at
 * the records in the end. They know nothing of how the protocol is made.
 */
import type { Json, RunRecord, RunReport } from "cronfence";
import type { Plan, WorkPlan } from "./random-plan.ts";

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

/** One commit's line in the job's log. */
export interface Entry {
  readonly run: string;
  readonly fence: number;
  /** Tells the commits of a run apart. */
  readonly key: string;
  readonly items: number;
  /** Items done, by number, for `run` and `source` jobs. */
  readonly from?: number;
  readonly through?: number;
  /** For `tick` jobs: the tick's number, and which part of its writes. For `run` jobs: the end of a run, for this tick. */
  readonly tick?: number;
  readonly part?: number;
}

export interface Seen {
  readonly control: Control;
  readonly log: readonly Entry[];
}

/** What a job's code was told of a commit. */
export type Told = "applied" | "not applied" | "unknown";

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
  /** The finish completed a tick, and left items to a later run: it must say so. */
  leftWork: boolean;
  /** It couldn't put its loss on record, nor hear what was, and has logged so. */
  unrecorded: boolean;
  report?: RunReport;
  /** What its code was told of each commit. */
  readonly told: Map<string, Told>;
  /** It has put its own record as this. */
  cancelled: boolean;
}

export class Violation extends Error {}

const rule = (sentence: string, holds: boolean, seen?: unknown): void => {
  if (!holds) throw new Violation(seen === undefined ? sentence : `${sentence}: ${JSON.stringify(seen)}`);
};

/** What the rules are about. */
export interface Rules {
  readonly plan: Plan;
  readonly skewMs: number;
  /** The job has work for this many ticks; later ones find none left. */
  readonly ticks: number;
  tickAt(number: number): number;
  numberOf(tick: number): number;
}

const never = Number.NEGATIVE_INFINITY;

/** How many items there are in all. */
export const itemsOf = (work: WorkPlan, ticks: number): number =>
  work.shape === "tick" ? ticks : work.perTick * ticks;

/** How many transactions a tick's writes make. */
const partsOf = (writes: number): number => Math.ceil(writes / 99);

/** Everything that `number` ticks have to do is in the log. */
const isDone = (work: WorkPlan, log: readonly Entry[], number: number): boolean =>
  work.shape === "tick" ? lastTick(work.writes, log) >= number : lastItem(log) >= itemsOf(work, number);

const lastItem = (log: readonly Entry[]): number => log.findLast(({ through }) => through !== undefined)?.through ?? 0;

/** The last tick of which all parts are in the log. */
const lastTick = (writes: readonly number[], log: readonly Entry[]): number => {
  const last = log.at(-1);
  if (last?.tick === undefined) return 0;
  return (last.part ?? 0) + 1 === partsOf(writes[last.tick - 1] ?? 1) ? last.tick : last.tick - 1;
};

/** Each item and each part of a tick comes once, in order, and none is left out. */
const checkOrder = (work: WorkPlan, log: readonly Entry[], entry: Entry): void => {
  if (work.shape === "tick") {
    const complete = lastTick(work.writes, log);
    const last = log.at(-1);
    const next = last === undefined || last.tick === complete ? [complete + 1, 0] : [last.tick, (last.part ?? 0) + 1];
    rule("each tick is done once, in order", entry.tick === next[0] && entry.part === next[1], { entry, next });
  } else if (entry.from !== undefined) {
    rule("no committed item is repeated or left out", entry.from === lastItem(log) + 1, { entry, done: lastItem(log) });
  } else {
    const ended = log.some(({ from, tick }) => from === undefined && tick === entry.tick);
    rule("no tick is ended twice", !ended, entry);
  }
};

/**
 * Called after each step that may have changed something, with whose request it was.
 * @param isRepeated the request had been answered before
 */
export const checkStep = (
  rules: Rules,
  actor: Account | "operator",
  before: Seen,
  after: Seen,
  attempts: readonly Account[],
  isRepeated: boolean,
): void => {
  const { work, overlap } = rules.plan;
  const [b, a] = [before.control, after.control];
  const added = after.log.slice(before.log.length);
  rule("the fence never goes back", a.fence >= b.fence, [b.fence, a.fence]);
  rule("the completed tick never goes back", (a.tick ?? never) >= (b.tick ?? never), [b.tick, a.tick]);
  rule("the watermark never goes back", Number(a.watermark ?? 0) >= Number(b.watermark ?? 0), [
    b.watermark,
    a.watermark,
  ]);
  const queued = (control: Control) => Math.max(control.pending ?? never, control.tick ?? never);
  rule("a queued tick is never forgotten", queued(a) >= (b.pending ?? never), [b.pending, a.pending, a.tick]);

  const moved = a.watermark !== b.watermark || a.tick !== b.tick || added.length > 0;
  if (a.fence > b.fence) {
    rule("a grant moves nothing but the lease", !moved && a.fence === b.fence + 1);
    if (actor === "operator") {
      rule("a cancelled run holds nothing", a.owner === undefined && a.run === undefined);
      const cancelled = attempts.find(({ owner }) => owner === b.owner);
      if (cancelled) cancelled.cancelled = true;
      return;
    }
    rule("a lease is granted to who asked for it", a.owner === actor.owner);
    rule("one acquisition is granted once", actor.fence === undefined, actor.name);
    rule("no run is granted for a completed tick", actor.tick > (b.tick ?? never), [actor.name, b.tick]);
    const free = b.owner === undefined || (b.leaseUntil ?? 0) + rules.skewMs < actor.startedAt;
    rule("a live lease is only taken over by policy", free || overlap === "takeover", actor.name);
    actor.fence = a.fence;
    actor.orphaned = isRepeated;
    return;
  }
  const leaseChanged = a.owner !== b.owner || a.leaseUntil !== b.leaseUntil || a.run?.seq !== b.run?.seq;
  if (!moved && !leaseChanged) return;
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
  rule("one step makes one commit", added.length <= 1, added);
  const [entry] = added;
  if (!finished && a.run?.seq !== b.run?.seq) {
    rule("commits are counted one by one", a.run?.seq === (b.run?.seq ?? 0) + 1);
    actor.commits += 1;
    if (entry === undefined && !moved && a.run?.tick === b.run?.tick) actor.seals += 1;
  } else rule("nothing is committed without being counted", finished || !moved);
  if (finished) actor.lastBatch = entry !== undefined;
  if (entry !== undefined) {
    rule(
      "an entry is written by its own run, under the greatest fence",
      entry.run === actor.runId && entry.fence === b.fence,
      entry,
    );
    checkOrder(work, before.log, entry);
  }
  checkProgress(rules, actor, before, after);
};

/** Watermark and tick cover exactly what is in the log. */
const checkProgress = (
  { plan: { work }, ticks, tickAt, numberOf }: Rules,
  actor: Account,
  before: Seen,
  after: Seen,
): void => {
  const { control: a, log } = after;
  const complete = work.shape === "tick" ? lastTick(work.writes, log) : lastItem(log);
  rule("the watermark covers exactly what was done", (a.watermark ?? 0) === complete, [a.watermark, complete]);
  if (work.shape === "tick") {
    rule("exactly the ticks done are completed", a.tick === (complete === 0 ? undefined : tickAt(complete)), [
      a.tick,
      complete,
    ]);
  } else if (a.tick !== before.control.tick) {
    const number = work.shape === "run" ? Math.min(numberOf(a.tick ?? 0), ticks) : ticks;
    if (isDone(work, log, number)) return;
    const seen = [number, lastItem(log)];
    rule(
      "a tick is completed when its work is done, not before",
      work.shape === "source" && a.owner === undefined,
      seen,
    );
    actor.leftWork = true;
  }
};

/** Called when an attempt's report is in, with the control item as it is then. */
export const checkReport = (actor: Account, report: RunReport, { control }: Seen): void => {
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

/** Called when a commit's promise settles. */
export const checkTold = (actor: Account, key: string, told: Told, { log }: Seen): void => {
  actor.told.set(key, told);
  if (told === "applied") rule("a commit that succeeded was applied", isIn(log, actor, key), [actor.name, key]);
};

const isIn = (log: readonly Entry[], { runId }: Account, key: string) =>
  log.some((entry) => entry.run === runId && entry.key === key);

/** Called at the very end, when everything that was under way has arrived and the job has been run until it was done. */
export const checkEnd = (
  { plan: { work }, ticks, tickAt }: Rules,
  { control, log }: Seen,
  attempts: readonly Account[],
  records: readonly RunRecord[],
): void => {
  rule("all that was due is done", isDone(work, log, ticks) && (control.tick ?? never) >= tickAt(ticks), [
    control.tick,
    control.watermark,
  ]);
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
    if (record !== undefined) checkRecord(attempt, record, log);
    for (const [key, told] of attempt.told) {
      if (told === "not applied")
        rule("a commit that failed for certain wasn't applied", !isIn(log, attempt, key), [attempt.name, key]);
    }
  }
  if (work.shape === "tick") return;
  let through = never;
  for (const { outcome, ticks: covered } of records.toSorted((x, y) => (x.ticks?.from ?? 0) - (y.ticks?.from ?? 0))) {
    if (covered === undefined || (outcome !== "succeeded" && outcome !== "capped")) continue;
    rule("each tick is completed by one run", covered.from > through, covered);
    through = covered.through;
  }
};

const checkRecord = (attempt: Account, record: RunRecord, log: readonly Entry[]): void => {
  const { report } = attempt;
  const own = log.filter(({ run }) => run === attempt.runId);
  const items = own.reduce((sum, entry) => sum + entry.items, 0);
  const seen = { name: attempt.name, record: record.outcome, report: report?.outcome };
  rule("a cancelled run is on record as cancelled", attempt.cancelled === (record.outcome === "cancelled"), seen);
  rule("a record names its fence", record.fence === undefined || record.fence === attempt.fence, seen);
  const commits = attempt.commits - attempt.seals + (attempt.lastBatch ? 1 : 0);
  rule("a record counts the commits that are in the tables", record.commits === commits, {
    ...seen,
    commits,
    says: record.commits,
  });
  rule("a record counts the items that are in the tables", record.items === items, {
    ...seen,
    items,
    says: record.items,
  });
  rule(
    "a run that left work to later ones isn't shown as succeeded",
    !attempt.leftWork || record.outcome === "capped",
    seen,
  );
  if (report?.run === undefined) return;
  if (attempt.unrecorded && report.outcome === "lease_lost") return;
  rule("a report says what is on record", report.outcome === record.outcome, seen);
  rule("a report counts what is on record", report.commits === record.commits && report.items === record.items, {
    ...seen,
    says: [report.commits, report.items],
    record: [record.commits, record.items],
  });
};
