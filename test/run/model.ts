/**
 * What must hold of the planned jobs, whatever the schedule, beside what must hold of any job (the explorer's rules): each
 * commit adds an entry to the job's log, a user's item, and the log must show each piece of work once, in order, and
 * exactly what watermark and tick cover.
 */
import type { RunRecord } from "cronfence";
import {
  type Account as AnyAccount,
  type Control,
  checkStep as checkProtocol,
  checkSettled,
  newAccount as newAnyAccount,
  rule,
  type Step,
} from "../../src/testing/explore/rules.ts";
import type { Plan, WorkPlan } from "./random-plan.ts";

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

/** What the rules remember of an attempt, beside what they do of any. */
export interface Account extends AnyAccount {
  /** The finish completed a tick, and left items to a later run: it must say so. */
  leftWork: boolean;
  /** What its code was told of each commit. */
  readonly told: Map<string, Told>;
}

export const newAccount = (id: string, name: string, startedAt: number, tick: number): Account => ({
  ...newAnyAccount(`${id}-run`, `${id}-owner`, name, startedAt, tick),
  leftWork: false,
  told: new Map(),
});

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
  const added = after.log.slice(before.log.length);
  const step: Step = {
    actor,
    before: before.control,
    after: after.control,
    wrote: added.length > 0,
    isRepeated,
  };
  const { skewMs, plan } = rules;
  const protocol = {
    skewMs,
    overlap: plan.overlap,
    isBehind: (one: unknown, other: unknown) => Number(one ?? 0) < Number(other ?? 0),
  };
  if (!checkProtocol(protocol, attempts, step) || actor === "operator") return;
  rule("one step makes one commit", added.length <= 1, added);
  const [entry] = added;
  if (entry !== undefined) {
    rule(
      "an entry is written by its own run, under the greatest fence",
      entry.run === actor.runId && entry.fence === before.control.fence,
      entry,
    );
    checkOrder(plan.work, before.log, entry);
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
  checkSettled(control, attempts, records, { ticksByCommit: work.shape === "tick", emptyBatches: false });
  for (const attempt of attempts) {
    const record = records.find(({ id }) => id === attempt.runId);
    if (record !== undefined) checkItems(attempt, record, log);
    for (const [key, told] of attempt.told) {
      if (told === "not applied")
        rule("a commit that failed for certain wasn't applied", !isIn(log, attempt, key), [attempt.name, key]);
    }
  }
};

const checkItems = (attempt: Account, record: RunRecord, log: readonly Entry[]): void => {
  const items = log.filter(({ run }) => run === attempt.runId).reduce((sum, entry) => sum + entry.items, 0);
  const seen = { name: attempt.name, record: record.outcome, report: attempt.report?.outcome };
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
};
