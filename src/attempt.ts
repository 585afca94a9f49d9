/**
 * One attempt at running a job: what it was handed, its ids and its time, and getting the lease as the job's overlap
 * policy says. An attempt that isn't granted the lease ends here, as a value.
 */
import { randomUUID } from "node:crypto";
import type { CatchUpPolicy } from "./catch-up.ts";
import { type Clock, systemClock } from "./clock.ts";
import { checkTtl } from "./control/connection.ts";
import type { AcquireResult, Budget, ControlState, ControlStore, Lease } from "./control/control-store.ts";
import { dynamoStore } from "./control/dynamo-store.ts";
import type { TableReader } from "./control/table-reader.ts";
import { PredecessorUnfinishedError } from "./errors.ts";
import { newNonce } from "./nonce.ts";
import { defaultLog, type Logger } from "./observe/log.ts";
import type { RunObserver } from "./observe/observers.ts";
import { type ObservationOptions, standardObservers } from "./observe/standard-observers.ts";
import type { OnUnknown } from "./on-unknown.ts";
import type { AttemptOutcome } from "./outcome.ts";
import { errorOf, holderOf, isoOf, type RunReport, withThrown } from "./report.ts";
import type { Schedule } from "./schedule/index.ts";
import type { Trigger } from "./trigger.ts";

/** What an overlapping delivery does: see `JobOptions.overlap`. */
export type OverlapPolicy = "queue" | "skip" | "takeover";

/** The part of a job's definition that its lease and its time need. Durations are in milliseconds. */
export interface LeaseSpec extends ObservationOptions {
  readonly name: string;
  readonly schedule?: Schedule;
  readonly timeoutMs?: number;
  readonly ttlMs: number;
  readonly skewMs: number;
  readonly overlap: OverlapPolicy;
  readonly catchUp: CatchUpPolicy;
  readonly onUnknown: OnUnknown;
  /** The job is configured not to write: it takes the lease and is recorded, and writes nothing else. */
  readonly dryRun: boolean;
}

/** What a run works with; everything impure comes from here. */
export interface RunDeps {
  /** @default the DynamoDB table of the environment (see `dynamoStore`) */
  readonly store?: ControlStore & { readonly tables?: TableReader };
  /** @default the machine's clock */
  readonly clock?: Clock;
  /** @default pino, JSON lines on standard output */
  readonly log?: Logger;
  /** From 0 up to 1, for the jitter between tries. @default Math.random */
  readonly random?: () => number;
  /** A new unique id. @default a random UUID */
  readonly newId?: () => string;
  /** Milliseconds until the platform ends the invocation. */
  readonly remainingMs?: () => number;
  /** Aborted when the platform asks the process to stop: the run ends as `interrupted`. */
  readonly interrupt?: AbortSignal;
  /** Told of every run that holds the lease, beside the metrics and pings that the job asks for. */
  readonly observers?: readonly RunObserver[];
  /** Which build runs, for records and logs. @default the environment's CRONFENCE_VERSION */
  readonly version?: string;
  /**
   * Starts the run that goes on with a backlog (`onBacklog: "continue"`), as number `chain` of them in a row.
   * @default it follows in this process
   */
  readonly continueBacklog?: (job: string, chain: number) => Promise<void>;
  /** Starts another run for a tick that was queued behind a run with no time left for it. */
  readonly startAnother?: (job: string, tick: number) => Promise<void>;
}

export interface Attempt {
  readonly spec: LeaseSpec;
  readonly trigger: Trigger;
  readonly store: ControlStore;
  readonly tables: TableReader | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly interrupt: AbortSignal | undefined;
  readonly startAnother: RunDeps["startAnother"];
  readonly observers: readonly RunObserver[];
  readonly remainingMs: RunDeps["remainingMs"];
  readonly version: string | undefined;
  readonly runId: string;
  readonly owner: string;
  readonly startedAt: number;
  /** When the run must have ended, in milliseconds since the epoch; `Infinity` where nothing limits it. */
  readonly deadline: number;
  /** No request goes out after this: the deadline and the reserve for settling what is open. */
  readonly end: number;
  /** Neither lease nor record: nothing at all is written. */
  readonly adHoc: boolean;
}

/**
 * @throws InvalidOptionsError when the lease is too short for the store's request timeout.
 */
export const openAttempt = (spec: LeaseSpec, trigger: Trigger, deps: RunDeps): Attempt => {
  const store = deps.store ?? sharedStore();
  checkTtl(spec.ttlMs, store.requestTimeoutMs, `job "${spec.name}"`);
  const clock = deps.clock ?? systemClock;
  const startedAt = clock.now();
  const version = deps.version ?? process.env.CRONFENCE_VERSION;
  const { deadline, end } = limitsOf(spec, startedAt, deps.remainingMs?.(), store.requestTimeoutMs);
  const runId = deps.newId?.() ?? randomUUID();
  const log = (deps.log ?? defaultLog()).child({
    job: spec.name,
    run: runId,
    ...(trigger.tick === undefined ? {} : { tick: isoOf(trigger.tick) }),
    ...(version === undefined ? {} : { version }),
  });
  const adHoc = trigger.dryRun === true;
  return {
    spec,
    trigger,
    store,
    tables: (deps.store ?? sharedStore()).tables,
    clock,
    log,
    random: deps.random ?? Math.random,
    interrupt: deps.interrupt,
    startAnother: deps.startAnother,
    observers: adHoc ? [] : [...standardObservers(spec, { clock, log }), ...(deps.observers ?? [])],
    remainingMs: deps.remainingMs,
    version,
    runId,
    owner: deps.newId?.() ?? newNonce(),
    startedAt,
    deadline,
    end,
    adHoc,
  };
};

/** Makes what attempts use by default before there is one: a function's start has more of the CPU than its invocations. */
export const makeReady = (): void => {
  sharedStore();
  defaultLog();
};

let shared: ReturnType<typeof dynamoStore> | undefined;
const sharedStore = () => {
  shared ??= dynamoStore();
  return shared;
};

/**
 * A run must end before the platform ends it, with two request timeouts and a little to spare: one for a commit that is
 * under way at the deadline, one for the finish. Where less than twice that is left, half of it is kept.
 */
const limitsOf = (spec: LeaseSpec, now: number, remainingMs: number | undefined, requestTimeoutMs: number) => {
  const reserveMs = 2 * requestTimeoutMs + settleMs;
  const own = now + (spec.timeoutMs ?? Number.POSITIVE_INFINITY);
  if (remainingMs === undefined) return { deadline: own, end: own + reserveMs };
  const keptMs = Math.min(reserveMs, remainingMs / 2);
  const deadline = Math.min(own, now + remainingMs - keptMs);
  return { deadline, end: deadline + keptMs - Math.min(settleMs, keptMs / 10) };
};

const settleMs = 250;

export const budgetUntil = (attempt: Attempt, until: number): Budget => ({
  clock: attempt.clock,
  random: attempt.random,
  until,
});

export type Granted = { readonly lease: Lease; readonly state: ControlState };

/** The lease, or the report of an attempt that ends without it. */
export const acquireLease = (attempt: Attempt): Promise<Granted | RunReport> => {
  const { trigger, log } = attempt;
  log.info({ trigger: trigger.kind, attempt: trigger.attempt, requestId: trigger.requestId }, "attempt started");
  return (attempt.adHoc ? borrowState(attempt) : acquireAsTold(attempt)).catch((error) => unrecorded(attempt, error));
};

/** An attempt whose end isn't known or couldn't be recorded has no report; its last line says why. */
export const unrecorded = ({ log, clock, startedAt }: Attempt, error: unknown): never => {
  log.error({ error: errorOf(error), durationMs: clock.now() - startedAt }, "attempt ended: unrecorded");
  throw error;
};

/** Acquires as the job's overlap policy says. */
const acquireAsTold = async (attempt: Attempt): Promise<Granted | RunReport> => {
  const { trigger, spec } = attempt;
  let result = await tryAcquire(attempt);
  for (let moves = 0; result.kind === "held"; moves += 1) {
    const { state } = result;
    const { run } = state;
    if (run?.requestId !== undefined && run.requestId === trigger.requestId) {
      throw new PredecessorUnfinishedError(spec.name, run.id, state.leaseUntil);
    }
    if (spec.overlap === "takeover" && state.owner !== undefined && moves < mostMoves) {
      result = await tryAcquire(attempt, { fence: state.fence });
      continue;
    }
    const { tick } = trigger;
    const covers = Math.max(run?.tick ?? Number.NEGATIVE_INFINITY, state.tick ?? Number.NEGATIVE_INFINITY);
    if (spec.overlap !== "queue" || tick === undefined || covers >= tick || moves >= mostMoves) {
      return refusal(attempt, "held", state);
    }
    const queued = await attempt.store.queue(spec.name, tick, state, acquireBudget(attempt));
    if (queued === "queued") return refusal(attempt, "queued", state);
    result = await tryAcquire(attempt);
  }
  return result.kind === "acquired" ? result : refusal(attempt, result.kind, result.state);
};

/** The lease may change hands while we look at it; after this often it is simply held. */
const mostMoves = 5;

const tryAcquire = (attempt: Attempt, takeover?: { fence: number }): Promise<AcquireResult> => {
  const { spec, trigger, store, startedAt } = attempt;
  return store.acquire(
    {
      job: spec.name,
      owner: attempt.owner,
      run: {
        id: attempt.runId,
        startedAt,
        trigger: trigger.kind,
        ...(trigger.tick === undefined ? {} : { tick: trigger.tick }),
        ...(trigger.requestId === undefined ? {} : { requestId: trigger.requestId }),
        ...(attempt.version === undefined ? {} : { version: attempt.version }),
      },
      now: startedAt,
      ttlMs: spec.ttlMs,
      skewMs: spec.skewMs,
      ...(trigger.tick === undefined ? {} : { tick: trigger.tick }),
      ...(takeover === undefined ? {} : { takeover }),
      since: firstOwedAfter(spec, trigger, startedAt),
    },
    acquireBudget(attempt),
  );
};

/**
 * Should this be the first use of the job: ticks through this instant aren't owed. The first tick of a job that is to
 * begin at an instant is that instant, if it is one. A tick that was delivered is owed, and what comes after it, however
 * late that was, and whatever our clock says: should its run fail, the next one does it.
 */
const firstOwedAfter = ({ catchUp }: LeaseSpec, { kind, tick }: Trigger, now: number): number => {
  if (catchUp.startAt !== undefined) return catchUp.startAt - 1;
  return kind === "schedule" && tick !== undefined ? Math.min(tick - 1, now) : now;
};

/** A commit in the way of an acquisition is over within this, or the job is simply held. */
const acquireBudget = (attempt: Attempt): Budget =>
  budgetUntil(attempt, Math.min(attempt.deadline, attempt.startedAt + acquireMs));
const acquireMs = 3_000;

/** For an ad hoc dry run: the state as it is, with a lease that nobody granted and nothing is sent under. */
const borrowState = async (attempt: Attempt): Promise<Granted> => {
  const { spec, trigger, startedAt } = attempt;
  const state = (await attempt.store.read(spec.name, acquireBudget(attempt))) ?? {
    job: spec.name,
    fence: 0,
    prev: [],
    recentOwners: [],
    since: startedAt,
    unfinished: 0,
    failedTicks: 0,
    recent: [],
  };
  const run = { id: attempt.runId, owner: attempt.owner, startedAt, trigger: trigger.kind, seq: 0 };
  return { state, lease: { job: spec.name, owner: attempt.owner, fence: state.fence, run, ttlMs: spec.ttlMs } };
};

const refusal = (attempt: Attempt, outcome: AttemptOutcome, state: ControlState): RunReport =>
  closeAttempt(attempt, {
    outcome,
    items: 0,
    commits: 0,
    ...(outcome === "held" || outcome === "queued" ? { holder: holderOf(state) } : {}),
  });

type Ended = Omit<RunReport, "job" | "durationMs" | "tick" | "nextTick" | "version">;

/** The attempt's report and its last log line. */
export const closeAttempt = (attempt: Attempt, ended: Ended, thrown?: unknown): RunReport => {
  const { spec, trigger, clock, log, version } = attempt;
  const now = clock.now();
  const nextTick = spec.schedule?.next(Math.max(now, trigger.tick ?? now));
  const report: RunReport = {
    job: spec.name,
    ...ended,
    durationMs: Math.max(0, now - attempt.startedAt),
    ...(trigger.tick === undefined ? {} : { tick: isoOf(trigger.tick) }),
    ...(nextTick === undefined ? {} : { nextTick: isoOf(nextTick) }),
    ...(version === undefined ? {} : { version }),
  };
  const { job, run, tick, version: _, ...line } = report;
  log[report.error === undefined ? "info" : "error"](line, `attempt ended: ${report.outcome}`);
  return withThrown(report, thrown);
};
