/**
 * Why a tick is in its state, in sentences, from the same evidence as the ledger. It says what is on record, and what follows
 * from the job's definition as it is now; it shows no items, watermarks or events. The message of a run's error is shown as the
 * record has it.
 */
import type { ActRecord, ControlState, RunEntry, RunRecord } from "../control/control-store.ts";
import { InvalidOptionsError } from "../errors.ts";
import { isoOf } from "../report.ts";
import type { LedgerEntry } from "./entry.ts";
import { evidenceOf, type TickEvidence } from "./evidence.ts";
import type { ExplainedJob } from "./explained-job.ts";
import { forecast, type Upcoming } from "./forecast.ts";
import { readHistory } from "./read-history.ts";
import { type LedgerDeps, ledgerOf } from "./read-ledger.ts";

export interface Explanation {
  readonly job: string;
  /** The tick, its state, and by whom. */
  readonly entry: LedgerEntry;
  /** What happened, the last of it first; then what will happen, in the order of time. */
  readonly sentences: readonly string[];
  readonly evidence: {
    readonly runs: readonly RunRecord[];
    readonly moreRuns: number;
    readonly acts: readonly ActRecord[];
    /** Who holds the lease now. */
    readonly holder?: RunEntry & { readonly fence: number; readonly leaseUntil: number };
  };
  /** What comes next for a tick that isn't settled, in the order of time. */
  readonly upcoming: readonly Upcoming[];
}

/** @throws InvalidOptionsError for a job without a schedule, or an instant that is no tick of the job's or hasn't come yet. */
export const explain = async (job: ExplainedJob, tick: number, deps: LedgerDeps): Promise<Explanation> => {
  const entry = await entryOf(job, tick, deps);
  const history = await readHistory(job.name, deps.store, deps.budget);
  const evidence = await evidenceOf(history, entry);
  const { state } = history;
  const now = deps.now();
  const upcoming = forecast(job, entry, state, now);
  const holder =
    state?.run === undefined ? {} : { holder: { ...state.run, fence: state.fence, leaseUntil: state.leaseUntil ?? 0 } };
  return {
    job: job.name,
    entry,
    sentences: [...whatHappened(job, entry, evidence, state, now), ...upcoming.map(({ sentence }) => sentence)],
    evidence: { ...evidence, ...holder },
    upcoming,
  };
};

const entryOf = async (job: ExplainedJob, tick: number, deps: LedgerDeps): Promise<LedgerEntry> => {
  for await (const entry of ledgerOf(job, { from: tick, to: tick }, deps)) return entry;
  const now = deps.now();
  const before = job.schedule?.previous(Math.min(tick, now) + 1);
  const after = job.schedule?.next(tick);
  const near = [before, after].filter((each) => each !== undefined).map(isoOf);
  throw new InvalidOptionsError(`explanation of a tick of job "${job.name}"`, [
    tick > now
      ? `tick is ${isoOf(tick)}, which hasn't come yet`
      : `tick is ${isoOf(tick)}, and must be one that the job's schedule has${near.length === 0 ? "" : `, such as ${near.join(" or ")}`}`,
  ]);
};

const whatHappened = (
  job: ExplainedJob,
  entry: LedgerEntry,
  evidence: TickEvidence,
  state: ControlState | undefined,
  now: number,
): string[] => {
  const { run, others = [] } = entry;
  const settled = evidence.runs.find(({ id }) => id === run);
  const tries = evidence.runs.filter(({ id }) => id !== run && !others.includes(id));
  const last = settled === undefined ? undefined : inWords(settled);
  return [
    firstSentence(job, entry, evidence.acts[0], state, now),
    ...(last === undefined ? [] : [last]),
    ...(entry.offSchedule
      ? ["Today's schedule doesn't have it: it was started by hand, or by an earlier schedule."]
      : []),
    // From here on backwards in time.
    ...tries.toReversed().map((record) => inWords(record, "Before that, run")),
    ...(evidence.moreRuns > 0 ? [`Before that, ${count(evidence.moreRuns, "more run")} tried, and didn't do it.`] : []),
  ];
};

const firstSentence = (
  job: ExplainedJob,
  entry: LedgerEntry,
  act: ActRecord | undefined,
  state: ControlState | undefined,
  now: number,
): string => {
  const { run = "(unknown)", by, why, reason, outcome } = entry;
  const tick = `Tick ${isoOf(entry.tick)}`;
  switch (entry.state) {
    case "done":
      return `${tick} was done by run ${run}.`;
    case "covered":
      return `${tick} was done by run ${run}, which was started for a later tick and did what was still owed.`;
    case "skipped":
      if (reason === "operator")
        return `${tick} was skipped by ${by} (${why})${act === undefined ? "" : ` at ${isoOf(act.at)}`}: nothing was done for it.`;
      return reason === "startWithin"
        ? `${tick} was left out by run ${run}: it would have started later than startWithin allows (${(job.catchUp.startWithinMs ?? 0) / 1000} s, jitter included).`
        : `${tick} was left out by run ${run}: the job's policy for missed ticks (catchUp: "${job.catchUp.catchUp}") passes it over.`;
    case "calendar":
      return `${tick} was taken away by the job's calendar${reason === undefined ? "" : ` (${reason})`}: it isn't owed.`;
    case "gap":
      return `The clocks skipped ${reason} of that day in ${job.schedule?.zone}, and the job says gap: "skip": nothing is owed for it. It stands at ${isoOf(entry.tick)}, the first instant after the gap.`;
    case "before":
      return `${tick} is from before the job began (${isoOf(Math.max(state?.since ?? now, (job.catchUp.startAt ?? 0) - 1))}): it isn't owed.`;
    case "unscheduled":
      return `${tick} wasn't due: by its records the job had another schedule then.`;
    case "unrecorded":
      return `${tick} is settled, since the job has gone past it, but no record says by which run: records are kept for 400 days, and this one isn't there any more.`;
    case "doubled":
      return `${tick} was settled by ${entry.others === undefined ? 0 : entry.others.length + 1} runs, which must not be: ${[run, ...(entry.others ?? [])].join(", ")}. Please report it.`;
    case "running":
      return `${tick} is being done: run ${run} holds the lease${leaseWords(state)}.`;
    case "failed":
      return outcome === undefined
        ? `${tick} isn't done: run ${run} was to do it, and hasn't renewed its lease${leaseWords(state)}; it seems to have died.`
        : `${tick} isn't done: the last run that was to do it, ${run}, ended as ${outcome}.`;
    case "paused":
      return `${tick} isn't done: ${by} had the job paused (${why})${act === undefined ? "" : ` since ${isoOf(act.at)}`}.`;
    case "held":
      return run === "(unknown)"
        ? `${tick} isn't done: it came while another run held the lease, and is queued.`
        : `${tick} isn't done: it came while run ${run} held the lease${entry.tick <= (state?.pending ?? 0) ? ", and is queued" : ""}.`;
    case "missed":
      return `${tick} isn't done, and should be: no run has tried it, so nobody seems to have started the job for it.`;
    case "owed":
      if (outcome === "capped") return `${tick} isn't done: run ${run} stopped at a bound before it.`;
      if (outcome === "dry_run") return `${tick} isn't done: run ${run} was a dry run, which completes no tick.`;
      return `${tick} isn't done yet, and isn't late.`;
  }
};

const leaseWords = (state: ControlState | undefined): string =>
  state?.owner === undefined ? "" : ` under fence ${state.fence} until ${isoOf(state.leaseUntil ?? 0)}`;

const inWords = (record: RunRecord, start = "Run"): string => {
  const { id, trigger, startedAt, endedAt, fence, outcome, items, commits, error, reason, version, backlog } = record;
  const how = trigger === "schedule" ? "by the schedule" : "by hand";
  return [
    `${start} ${id} was started ${how} at ${isoOf(startedAt)}${version === undefined ? "" : ` (version ${version})`}`,
    fence === undefined ? "" : `, held the lease under fence ${fence}`,
    `, and ${outcome === "crashed" ? "was recorded as crashed" : `ended as ${outcome}`} at ${isoOf(endedAt)}`,
    ` after ${count(items, "item")} in ${count(commits, "commit")}`,
    error === undefined ? "" : `: ${error.name}: ${error.message}`,
    backlog === undefined ? "" : ` (left: ${backlog})`,
    reason === undefined ? "" : ` (${reason})`,
    ".",
  ].join("");
};

const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? "" : "s"}`;
