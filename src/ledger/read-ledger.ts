/**
 * Reading a job's ledger: its schedule's ticks beside its run records, both in the order of time, so that a year of them takes
 * no more memory than a day. Which states there are and what they mean is in entry.ts.
 */
import type { Budget, RunEntry } from "../control/control-store.ts";
import { InvalidOptionsError } from "../errors.ts";
import { isoOf } from "../report.ts";
import type { WatchedJob } from "../watchdog/watched-job.ts";
import { attempts, pausesOf } from "./attempts.ts";
import { type LedgerCounts, type LedgerEntry, tickStates } from "./entry.ts";
import { type PlannedTick, plannedTicks } from "./planned-ticks.ts";
import { type HistoryStore, readHistory } from "./read-history.ts";
import { type Settlement, settlements, settlerOf, settlerOfAct, settlerOfEntry } from "./settlements.ts";
import { settledEntry, unsettledIn } from "./tick-state.ts";

/** A job's ledger, in the order of time. Each reading of it reads the table anew. */
export interface Ledger extends AsyncIterable<LedgerEntry> {
  /** Of what has been read so far in the last reading. */
  readonly counts: LedgerCounts;
}

/** Instants in milliseconds since the epoch, both included. */
export interface LedgerSpan {
  readonly from: number;
  readonly to: number;
}

/** What a ledger is read with. */
export interface LedgerDeps {
  readonly store: HistoryStore;
  /** The present: ticks after it aren't due yet, and aren't in the ledger. */
  readonly now: () => number;
  /** For one request. */
  readonly budget: () => Budget;
}

/** @throws InvalidOptionsError for a job without a schedule, or a span that ends before it begins. */
export const ledgerOf = (job: WatchedJob, span: LedgerSpan, deps: LedgerDeps): Ledger => {
  const problems: string[] = [];
  if (job.schedule === undefined) problems.push("it has no schedule, so nothing is ever due");
  for (const name of ["from", "to"] as const) {
    // What a `Date` can be made of.
    if (!Number.isFinite(span[name]) || Math.abs(span[name]) > 8.64e15)
      problems.push(`${name} is ${String(span[name])}, and must be milliseconds since the epoch`);
  }
  if (problems.length === 0 && span.from > span.to) {
    problems.push(`from is ${isoOf(span.from)}, and must not be later than to, ${isoOf(span.to)}`);
  }
  if (problems.length > 0) throw new InvalidOptionsError(`ledger of job "${job.name}"`, problems);
  let counts = emptyCounts();
  return {
    get counts() {
      return counts;
    },
    async *[Symbol.asyncIterator]() {
      const mine = emptyCounts();
      counts = mine;
      for await (const entries of pagesOf(job, span, deps)) {
        for (const entry of entries) {
          mine.all += 1;
          mine[entry.state] += 1;
          yield entry;
        }
      }
    },
  };
};

const emptyCounts = (): { -readonly [Key in keyof LedgerCounts]: number } => {
  const counts = { all: 0 } as { -readonly [Key in keyof LedgerCounts]: number };
  for (const state of tickStates) counts[state] = 0;
  return counts;
};

/** How many runs may start between two whose fences are the other way round. */
const lookahead = 50;

async function* pagesOf(job: WatchedJob, span: LedgerSpan, deps: LedgerDeps): AsyncGenerator<Iterable<LedgerEntry>> {
  const history = await readHistory(job.name, deps.store, deps.budget);
  const now = deps.now();
  const { state } = history;
  const since = Math.max(state?.since ?? now, (job.catchUp.startAt ?? Number.NEGATIVE_INFINITY) - 1);
  const fold = settlements((state?.since ?? now) + 1, lookahead);
  const tried = attempts();
  const walk = walkOver(job, { from: span.from, to: Math.min(span.to, now) }, since);
  const skips = history.acts
    .flatMap((act) => settlerOfAct(act) ?? [])
    .filter(({ completed }) => completed >= span.from);
  // Runs that aren't on record, unless they come along: those that died, and the one that is going.
  const died = [...(state?.prev ?? [])].sort((one, other) => one.startedAt - other.startedAt);
  let going = state?.run;
  const bury = (entry: RunEntry): readonly Settlement[] => {
    if (entry.tick !== undefined) tried.addTry({ run: entry.id, through: entry.tick });
    const settler = settlerOfEntry(entry, entry.fence);
    return settler === undefined ? [] : fold.add(settler);
  };
  for await (const records of history.coverageFor(span.from)) {
    const certain: Settlement[] = [];
    for (const record of records) {
      while (skips.length > 0 && skips[0]!.startedAt <= record.startedAt) certain.push(...fold.add(skips.shift()!));
      while (died.length > 0 && died[0]!.startedAt < record.startedAt) certain.push(...bury(died.shift()!));
      if (died[0]?.id === record.id) died.shift();
      if (going?.id === record.id) going = undefined;
      tried.add(record);
      const settler = settlerOf(record);
      if (settler === undefined) continue;
      certain.push(...fold.add(settler));
      tried.settled(settler.completed);
    }
    yield walk.through(certain);
    if (walk.done) return;
  }
  for (const skip of skips) yield walk.through(fold.add(skip));
  for (const entry of died) yield walk.through(bury(entry));
  const settler = going === undefined ? undefined : settlerOfEntry(going, going.fence ?? state?.fence);
  if (settler !== undefined) yield walk.through(fold.add(settler));
  yield walk.through(fold.end());
  const settledThrough = state?.tick ?? Number.NEGATIVE_INFINITY;
  yield walk.unaccounted(settledThrough);
  tried.settled(walk.settledThrough);
  const unsettled = unsettledIn({
    job,
    state,
    now,
    tried,
    going,
    pauses: pausesOf(history.acts),
  });
  yield walk.rest(unsettled.stateOf, unsettled.delivered);
}

/** Goes over the ticks of the span once, in their order. */
const walkOver = (job: WatchedJob, span: LedgerSpan, since: number) => {
  const { schedule } = job as { schedule: NonNullable<WatchedJob["schedule"]> };
  const planned = plannedTicks(schedule, span.from - 1, span.to);
  let next = take(planned);
  let settledThrough = Number.NEGATIVE_INFINITY;
  let before: Settlement | undefined;

  const dueAfter = (tick: number) => (next?.kind === "due" && next.tick > tick ? next.tick : schedule.next(tick));

  /** The ticks through `through`, with those of `extra` that the schedule doesn't have. */
  function* ticksThrough(through: number, extra: readonly number[]): Generator<PlannedTick & { offSchedule?: true }> {
    for (const off of extra) {
      yield* plannedThrough(off - 1);
      if (off < span.from || off > Math.min(span.to, through)) continue;
      if (next?.tick !== off) yield { tick: off, kind: "due", offSchedule: true };
    }
    yield* plannedThrough(through);
  }

  function* plannedThrough(through: number): Generator<PlannedTick> {
    while (next !== undefined && next.tick <= through) {
      const tick = next;
      next = take(planned);
      yield tick;
    }
  }

  function* hole(through: number, after: Settlement | undefined): Generator<LedgerEntry> {
    let state: "unscheduled" | "unrecorded" | undefined;
    for (const planned of plannedThrough(through)) {
      if (planned.tick > since) state ??= stateOfHole(schedule, before, after);
      yield leftOutEntry(planned) ?? {
        tick: planned.tick,
        state: planned.tick <= since ? "before" : (state ?? "before"),
      };
    }
  }

  return {
    get settledThrough() {
      return settledThrough;
    },
    get done() {
      return next === undefined && settledThrough >= span.to;
    },
    *through(settled: readonly Settlement[]): Generator<LedgerEntry> {
      for (const settlement of settled) {
        yield* hole(settlement.from - 1, settlement);
        const { from, completed } = settlement.by[0];
        const named = [...new Set([from ?? completed, completed])].filter(
          (tick) => tick >= settlement.from && tick <= settlement.through,
        );
        for (const tick of ticksThrough(settlement.through, named)) {
          yield leftOutEntry(tick) ?? settledEntry(tick.tick, settlement, dueAfter, tick.offSchedule);
        }
        settledThrough = Math.max(settledThrough, settlement.through);
        before = settlement;
      }
    },
    /** What the control item says is settled, and no record does. */
    *unaccounted(through: number): Generator<LedgerEntry> {
      yield* hole(through, undefined);
      settledThrough = Math.max(settledThrough, through);
    },
    *rest(stateOf: (tick: number) => LedgerEntry, delivered: readonly number[]): Generator<LedgerEntry> {
      const open = delivered.filter((tick) => tick > settledThrough);
      for (const tick of ticksThrough(Number.POSITIVE_INFINITY, open)) {
        yield leftOutEntry(tick) ?? { ...stateOf(tick.tick), ...(tick.offSchedule ? { offSchedule: true } : {}) };
      }
    },
  };
};

const take = (planned: Iterator<PlannedTick>): PlannedTick | undefined => {
  const { done, value } = planned.next();
  return done ? undefined : value;
};

/** What the schedule leaves out is left out whether a run ever met it or not. */
const leftOutEntry = ({ tick, kind, reason }: PlannedTick): LedgerEntry | undefined =>
  kind === "due" ? undefined : { tick, state: kind, ...(reason === undefined ? {} : { reason }) };

/**
 * Ticks that the job went past, and that no record names. The run before them said when the job was due next: where that
 * isn't what the schedule says by now, it had another schedule, by which these weren't due.
 */
const stateOfHole = (
  schedule: NonNullable<WatchedJob["schedule"]>,
  before: Settlement | undefined,
  after: Settlement | undefined,
): "unscheduled" | "unrecorded" => {
  const { nextTick, endedAt, last } = before?.by.at(-1) ?? {};
  if (nextTick !== undefined && endedAt !== undefined) {
    if (schedule.next(Math.max(endedAt, last ?? endedAt)) !== nextTick) return "unscheduled";
  }
  const from = after?.by[0].from;
  if (from === undefined || before === undefined) return "unrecorded";
  return schedule.next(from - 1) === from ? "unrecorded" : "unscheduled";
};
