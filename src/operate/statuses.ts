/** How jobs are doing: what their control items say, judged as the watchdog judges them. */
import type { ControlState, Paused, RunEntry } from "../control/control-store.ts";
import { pauseInForce } from "../control/pause.ts";
import { errorOf } from "../report.ts";
import { type Judgement, judge } from "../watchdog/judge.ts";
import type { WatchedJob } from "../watchdog/watched-job.ts";
import { budgetOf, clockOf, type OperateDeps } from "./operator.ts";

/** One job at one instant. Instants are in milliseconds since the epoch. */
export interface JobStatus {
  readonly job: string;
  /** Why it can't be judged: its control item can't be read as one, or is in disorder. */
  readonly problem?: string;
  /** Its control item; absent where the job has never run and nobody made it known. */
  readonly state?: ControlState;
  /** What the watchdog would find; absent where there is no state, or a problem. */
  readonly judgement?: Judgement;
  /** The pause that is in force. */
  readonly paused?: Paused;
  /** The run that holds the lease, and whether the lease is over, so that the run seems dead. */
  readonly running?: RunEntry & { readonly fence: number; readonly leaseUntil: number; readonly expired: boolean };
  /** The name that the job has now, where it was moved. */
  readonly movedTo?: string;
  /** The last tick that is settled. */
  readonly lastTick?: number;
  readonly lastSuccessAt?: number;
  /** How long the oldest tick that should be done by now has been late. */
  readonly overdueMs: number;
  readonly overdueTick?: number;
  /** Failures in a row. */
  readonly failures: number;
  /** When the job is due next, by its schedule. */
  readonly nextTick?: number;
}

/**
 * The jobs' states, in the order in which they are given.
 * @throws StoreUnavailableError
 */
export const jobStatuses = async (jobs: readonly WatchedJob[], deps: OperateDeps): Promise<readonly JobStatus[]> => {
  const states = await deps.store.readMany(
    jobs.map(({ name }) => name),
    budgetOf(deps),
  );
  const now = clockOf(deps).now();
  return jobs.map((job) => statusOf(job, states.get(job.name), now));
};

const statusOf = (job: WatchedJob, state: ControlState | Error | undefined, now: number): JobStatus => {
  const nextTick = job.schedule?.next(now);
  const known = { job: job.name, ...(nextTick === undefined ? {} : { nextTick }) };
  if (state === undefined) return { ...known, overdueMs: 0, failures: 0 };
  if (state instanceof Error) return { ...known, overdueMs: 0, failures: 0, problem: state.message };
  const facts = isShowable(state) ? factsOf(job, state, now) : {};
  try {
    return { ...known, ...facts, ...judged(job, state, now) };
  } catch (error) {
    return { ...known, ...facts, overdueMs: 0, failures: 0, problem: errorOf(error).message };
  }
};

const judged = (job: WatchedJob, state: ControlState, now: number) => {
  const judgement = judge(job, state, now, { heals: false, tooLongMs: weekMs, everyMs: 0 });
  const { overdueMs, overdueTick, failures } = judgement;
  return { judgement, overdueMs, ...(overdueTick === undefined ? {} : { overdueTick }), failures };
};

/** Whether its instants are some: an item that was changed by hand may hold anything. */
const isShowable = ({ tick, lastSuccessAt, leaseUntil, run, paused }: ControlState): boolean =>
  [tick, lastSuccessAt, leaseUntil, run?.startedAt, run?.tick, paused?.at, paused?.until].every(
    (instant) => instant === undefined || !Number.isNaN(new Date(instant).getTime()),
  );

/** What the control item says itself, whatever follows from it. */
const factsOf = (job: WatchedJob, state: ControlState, now: number) => {
  const { owner, run, leaseUntil = 0, moving } = state;
  const paused = pauseInForce(state, now);
  return {
    state,
    ...(paused === undefined ? {} : { paused }),
    ...(owner === undefined || run === undefined
      ? {}
      : { running: { ...run, fence: state.fence, leaseUntil, expired: leaseUntil + job.skewMs < now } }),
    ...(moving !== undefined && "to" in moving ? { movedTo: moving.to } : {}),
    ...(state.tick === undefined ? {} : { lastTick: state.tick }),
    ...(state.lastSuccessAt === undefined ? {} : { lastSuccessAt: state.lastSuccessAt }),
  };
};

/** A pause or a dry run of this length is remarked on. */
const weekMs = 7 * 86_400_000;
