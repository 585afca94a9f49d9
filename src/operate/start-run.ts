/**
 * Starting a run of a job by hand, in the job's own function. It is started once, whatever happens to the acknowledgement; what
 * can be known beforehand to come to nothing is refused, since an attempt that becomes no run leaves no record.
 */
import type { ControlState } from "../control/control-store.ts";
import { pauseInForce } from "../control/pause.ts";
import { ActRefusedError, CronfenceError, InvalidOptionsError } from "../errors.ts";
import { isoOf, type RunReport } from "../report.ts";
import { nameProblems, timeProblems } from "./act-check.ts";
import type { FunctionInvoker } from "./lambda-invoker.ts";
import { budgetOf, clockOf, type OperateDeps } from "./operator.ts";

export interface StartRequest {
  /**
   * Does what is due through this tick, in milliseconds since the epoch.
   * @default a run that covers no tick
   */
  readonly tick?: number;
  /** Does these settled ticks after all instead, at most 1,000: see `planBackfill`. */
  readonly backfill?: readonly number[];
  /** Why; the run's record has it. */
  readonly reason?: string;
  /** Refused by a function of another version, before it takes the lease. */
  readonly version?: string;
}

export interface StartDeps extends OperateDeps {
  readonly invoker: FunctionInvoker;
  /** The name or ARN of the job's function. */
  readonly functionName: string;
}

/** A run that was asked for: `followRun` says what becomes of it. */
export interface StartedRun {
  readonly job: string;
  readonly tick?: number;
  /** The platform's id of the invocation; the run's record has it. */
  readonly requestId: string;
  /** When it was asked for, in milliseconds since the epoch. */
  readonly at: number;
}

/**
 * Asks the job's function for a run, once, and doesn't wait for it.
 *
 * @throws ActRefusedError where it would come to nothing: the job is paused or was moved, the tick is settled, or another run
 * holds the lease that a run for no tick would find held
 * @throws InvocationUnknownError when it isn't known whether the event was taken: it isn't sent again
 */
export const startRun = async (job: string, request: StartRequest, deps: StartDeps): Promise<StartedRun> => {
  const at = clockOf(deps).now();
  const problems = [...nameProblems("job", job), ...problemsIn(request, at)];
  if (problems.length > 0) throw new InvalidOptionsError("start of a run", problems);
  const futile = futility(await deps.store.read(job, budgetOf(deps)), request.tick, at);
  if (futile !== undefined) throw new ActRefusedError(job, "run", futile);
  const { requestId } = await deps.invoker.start(deps.functionName, eventOf(request));
  if (requestId === undefined) {
    throw new CronfenceError(
      "NO_REQUEST_ID",
      `job "${job}": the run was started, and can't be followed: the platform gave no id`,
    );
  }
  return { job, requestId, at, ...(request.tick === undefined ? {} : { tick: request.tick }) };
};

/**
 * A dry run in the job's function: its report. It is waited for, since it leaves no record, and writes nothing, so that no
 * second one can do harm.
 * @throws FunctionFailedError when the job's code threw, or the function is of another version
 */
export const askDryRun = async (
  request: StartRequest,
  deps: Omit<StartDeps, "store"> & { readonly withinMs: number },
): Promise<RunReport> =>
  (await deps.invoker.ask(deps.functionName, { ...eventOf(request), dryRun: true }, deps.withinMs)) as RunReport;

const eventOf = ({ tick, backfill, reason, version }: StartRequest) => ({
  ...(backfill === undefined ? {} : { backfill: backfill.map(isoOf) }),
  ...(tick === undefined ? {} : { scheduledTime: isoOf(tick) }),
  ...(reason === undefined ? {} : { reason }),
  ...(version === undefined ? {} : { version }),
});

/** What the function would refuse, so that nobody waits for a run that never comes. */
const problemsIn = ({ tick, backfill, reason, version }: StartRequest, now: number): string[] => {
  const problems = tick === undefined ? [] : timeProblems("tick", tick);
  if (problems.length === 0 && tick !== undefined && tick > now)
    problems.push(`tick is ${isoOf(tick)}, and must be one that has come`);
  if (backfill !== undefined) {
    const isSome = Array.isArray(backfill) && backfill.length > 0 && backfill.length <= 1_000;
    if (!isSome) problems.push("backfill must be a list of 1 to 1,000 ticks");
    else problems.push(...backfill.flatMap((each) => timeProblems("a tick of backfill", each)).slice(0, 1));
    if (tick !== undefined) problems.push("backfill and tick exclude each other");
  }
  for (const [name, text] of Object.entries({ reason, version } as Record<string, unknown>)) {
    if (text !== undefined && (typeof text !== "string" || text.length > 2_048))
      problems.push(`${name} must be a text of at most 2048 characters`);
  }
  return problems;
};

/** Why a run that is started now wouldn't become one, as far as the control item tells. */
const futility = (state: ControlState | undefined, tick: number | undefined, now: number): string | undefined => {
  if (state === undefined) return undefined;
  const { moving, owner, run, leaseUntil = 0 } = state;
  if (moving !== undefined && "to" in moving) return `the job was moved to "${moving.to}"`;
  const paused = pauseInForce(state, now);
  if (paused !== undefined) {
    const until = paused.until === undefined ? "" : ` until ${isoOf(paused.until)}`;
    return `the job is paused${until} by ${paused.by} (${paused.why}); resume it first`;
  }
  if (tick !== undefined) return isSettled(state, tick) ? `tick ${isoOf(tick)} is settled already` : undefined;
  if (owner === undefined || leaseUntil <= now) return undefined;
  return `run ${run?.id ?? "(unknown)"} holds the lease until ${isoOf(leaseUntil)}; wait for its end, or cancel it`;
};

/** Whether a tick is settled, so that a run for it would do nothing. */
export const isSettled = (state: ControlState | undefined, tick: number): boolean =>
  state?.tick !== undefined && tick <= state.tick;
