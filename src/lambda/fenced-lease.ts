/**
 * The lease for an existing middy handler.
 *
 * middy runs no `after` and no `onError` of any middleware when another one answers early, from any of its phases, and no
 * further `onError` when one throws. Then a lease taken in `before` would stay taken, and a run that failed would look
 * like one that is still going. So the run also ends where middy sets the request's error, and where it reads the
 * request's response at last: an early answer by another middleware while the run is open makes that read wait for the
 * run's end.
 */
import type { MiddlewareObj, Request } from "@middy/core";
import type { Context } from "aws-lambda";
import { acquireLease, type LeaseSpec, type OverlapPolicy, openAttempt } from "../attempt.ts";
import { everyTick } from "../catch-up.ts";
import { dynamoStore } from "../control/dynamo-store.ts";
import { type Duration, milliseconds } from "../duration.ts";
import { CronfenceError, InvalidOptionsError, SilentFailureError } from "../errors.ts";
import { isJobName } from "../job-name.ts";
import { type LiveRun, liveRun } from "../live-run.ts";
import type { MetricsKind } from "../observe/metrics.ts";
import { newWatch, type Watch, watchFromHere } from "../observe/observed.ts";
import type { PingUrls } from "../observe/ping.ts";
import { defaultMetrics, observationProblems } from "../observe/standard-observers.ts";
import type { OnUnknown } from "../on-unknown.ts";
import type { RunReport } from "../report.ts";
import { endRun, isGranted } from "../run.ts";
import { type Run, runContext } from "../run-context.ts";
import type { Ending } from "../run-record.ts";
import type { Schedule } from "../schedule/index.ts";
import type { Trigger } from "../trigger.ts";
import { unknownOption } from "../unknown-option.ts";
import { InvalidEventError } from "./event.ts";
import { type LambdaDeps, platformDeps, probeAnswer, throwIfFailed, triggerOf } from "./handler.ts";

export interface FencedLeaseOptions extends LambdaDeps {
  /** The job's name: letters, digits, `-` and `_`, at most 64. */
  readonly job: string;
  /** The control table. @default the environment's CRONFENCE_TABLE, or else "cronfence" */
  readonly table?: string;
  /** How long a lease lasts that nobody renews. @default "30s" */
  readonly ttl?: Duration;
  /** How far two machines' clocks may differ. @default "10s" */
  readonly skew?: Duration;
  /** See `JobOptions.overlap`. A queued tick is run by the platform's next delivery here. @default "queue" */
  readonly overlap?: OverlapPolicy;
  /** How long a run may take. @default what the invocation has left, less a reserve */
  readonly timeout?: Duration;
  /** See `JobOptions.onUnknown`. @default "block" */
  readonly onUnknown?: OnUnknown;
  /** See `JobOptions.metrics`. @default the environment's CRONFENCE_METRICS, or else "off" */
  readonly metrics?: MetricsKind;
  /** See `JobOptions.ping`. */
  readonly ping?: PingUrls;
  /** Lets a run cover the ticks that were missed before it, and names the next one in logs and records. */
  readonly schedule?: Schedule;
}

/** A Lambda context with the run: what handlers get after `.use(fencedLease(…))`. */
export type FencedContext = Context & { readonly run: Run };

/**
 * A middleware that runs the handler under a fenced lease: `context.run` commits under it. An attempt that isn't granted
 * the lease answers with its report, and the handler isn't called.
 *
 * Put it last, so that nothing between it and the handler can answer in the handler's place: an early answer there makes
 * the run `failed` and the invocation throw, since the work wasn't done.
 *
 * @throws InvalidOptionsError naming every option that can't be accepted
 * @example
 * ```ts
 * export const handler = middy()
 *   .use(fencedLease({ job: "expire-carts", table: "jobs" }))
 *   .handler(async (event, context) => {
 *     await context.run.commit([{ Delete: { TableName: "carts", Key: { id: "c1" } } }]);
 *   });
 * ```
 */
export const fencedLease = (options: FencedLeaseOptions): MiddlewareObj<unknown, unknown, Error, FencedContext> => {
  const spec = specOf(options);
  const deps: LambdaDeps = { ...options, store: options.store ?? dynamoStore(tableOf(options)) };
  const lives = new WeakMap<object, Lifecycle>();

  return {
    before: async (request) => {
      // Before anything is waited for: what follows in this invocation, the handler included, is in its context.
      const watch = newWatch();
      watchFromHere(watch);
      const trigger = triggerOf(spec, request.event, request.context, deps, refuseOtherWork(spec.name));
      if (trigger === "probe") return probeAnswer(spec.name, deps);
      const attempt = openAttempt(spec, trigger, { ...platformDeps(request.context), ...deps });
      const granted = await acquireLease(attempt);
      if (!isGranted(granted)) return granted;
      const live = liveRun(attempt, granted, false);
      const { run, ending } = runContext(live);
      Object.assign(request.context, { run });
      const lifecycle = lifecycleOf(live, ending, watch);
      lives.set(request, lifecycle);
      watchRequest(request, lifecycle, () => lives.has(request));
      return undefined;
    },
    after: async (request) => {
      const lifecycle = lives.get(request);
      if (lifecycle === undefined) return;
      // From here on, other middlewares' answers change nothing.
      lives.delete(request);
      throwIfFailed(await lifecycle.succeed());
    },
    onError: async (request) => {
      // The error goes on to whoever handles it; a run that has ended already keeps its outcome.
      await lives.get(request)?.fail(request.error);
    },
  };
};

/** The handler knows nothing of parked items or of old ticks: it would do what it always does instead. */
const refuseOtherWork =
  (job: string) =>
  ({ parked, backfill }: Trigger): void => {
    const asked = parked !== undefined ? "parked items" : backfill !== undefined ? "a backfill" : undefined;
    if (asked === undefined) return;
    throw new InvalidEventError(
      job,
      `the event asks for ${asked}, which only a job of defineJob can do, and not a handler of one's own`,
    );
  };

/** Ends a run once, however many ways lead there. */
interface Lifecycle {
  readonly succeed: () => Promise<RunReport>;
  readonly fail: (error: unknown) => Promise<RunReport>;
}

const lifecycleOf = (live: LiveRun, ending: () => Ending, watch: Watch): Lifecycle => {
  let report: Promise<RunReport> | undefined;
  const end = (asked: Ending): Promise<RunReport> => {
    report ??= endRun(live, asked) as Promise<RunReport>;
    return report;
  };
  // At the deadline the run ends, whether or not the handler ever returns.
  live.stopped.then(end).catch(() => {});
  const done = (): Ending =>
    watch.failures.length > 0
      ? { outcome: "failed", error: new SilentFailureError(live.attempt.spec.name, watch.failures) }
      : { ...ending(), ...(live.plan === undefined ? {} : { completes: live.plan.range.through }) };
  return {
    succeed: () => end(done()),
    fail: (error) => end({ outcome: "failed", error }),
  };
};

/**
 * | when another middleware answers early | the run | the invocation |
 * | --- | --- | --- |
 * | before the handler | `failed`: its work wasn't done | throws |
 * | after the handler | as the handler left it | as without it |
 * | for an error | `failed` with that error | answers as that middleware said |
 */
const watchRequest = (request: Request, lifecycle: Lifecycle, isOpen: () => boolean): void => {
  let { response, error } = request;
  let handled = false;
  let failed = false;
  let late: Promise<unknown> | undefined;
  const endLate = async () => {
    if (failed) await lifecycle.fail(error);
    else throwIfFailed(await (handled ? lifecycle.succeed() : lifecycle.fail(new EarlyAnswerError())));
    if (failed && response === undefined) throw error;
    return response;
  };
  Object.defineProperties(request, {
    response: {
      configurable: true,
      enumerable: true,
      get: () => late ?? response,
      set: (value) => {
        response = value;
        // middy sets `earlyResponse` before it copies it here, and runs no further middleware: nobody but middy reads on.
        if (!Object.hasOwn(request, "earlyResponse")) handled = true;
        else if (isOpen()) {
          late ??= endLate();
          late.catch(() => {});
        }
      },
    },
    error: {
      configurable: true,
      enumerable: true,
      get: () => error,
      set: (value) => {
        error = value;
        failed = true;
        // Before any `onError`: one that throws ends the invocation at once.
        lifecycle.fail(value).catch(() => {});
      },
    },
  });
};

/** Another middleware answered before the handler was called, while the run was open. */
export class EarlyAnswerError extends CronfenceError {
  override readonly name = "EarlyAnswerError";

  constructor() {
    super(
      "EARLY_ANSWER",
      "a middleware after fencedLease answered before the handler ran, so the run's work wasn't done; use fencedLease last",
    );
  }
}

const specOf = (options: FencedLeaseOptions): LeaseSpec => {
  const {
    job,
    ttl = "30s",
    skew = "10s",
    overlap = "queue",
    timeout,
    schedule,
    table,
    onUnknown = "block",
  } = options ?? {};
  const problems = Object.keys(options ?? {})
    .filter((key) => !known.includes(key))
    .map((key) => unknownOption(key, known));
  if (!isJobName(job)) {
    problems.push(
      `job is ${JSON.stringify(job)}, and must be a name of letters, digits, - and _, at most 64 characters`,
    );
  }
  for (const [key, value] of Object.entries({ ttl, skew, ...(timeout === undefined ? {} : { timeout }) })) {
    if (milliseconds(value) === undefined) {
      problems.push(
        `${key} is ${JSON.stringify(value)}, and must be a duration such as "30s" or a number of milliseconds, more than 0`,
      );
    }
  }
  if (!["queue", "skip", "takeover"].includes(overlap)) {
    problems.push(`overlap is ${JSON.stringify(overlap)}, and must be "queue", "skip" or "takeover"`);
  }
  if (schedule !== undefined && !(typeof schedule?.next === "function" && typeof schedule.between === "function"))
    problems.push(`schedule is ${JSON.stringify(schedule)}, and must be a schedule made by cron(…) or rate(…)`);
  if (onUnknown !== "retry" && onUnknown !== "block" && typeof onUnknown !== "function")
    problems.push(
      `onUnknown is ${JSON.stringify(onUnknown)}, and must be "retry", "block" or a function that finds out`,
    );
  problems.push(...observationProblems(options ?? {}));
  if (table !== undefined && options.store !== undefined)
    problems.push("table and store exclude each other: a store has its table");
  if (problems.length > 0) throw new InvalidOptionsError("fencedLease", problems);
  return {
    name: job,
    ttlMs: milliseconds(ttl) as number,
    skewMs: milliseconds(skew) as number,
    overlap,
    catchUp: everyTick,
    onUnknown,
    dryRun: process.env.CRONFENCE_DRY_RUN === "1",
    metrics: options.metrics ?? defaultMetrics(),
    ...(options.ping === undefined ? {} : { ping: options.ping }),
    ...(timeout === undefined ? {} : { timeoutMs: milliseconds(timeout) as number }),
    ...(schedule === undefined ? {} : { schedule }),
  };
};

const tableOf = ({ table }: FencedLeaseOptions) => (table === undefined ? {} : { table });

const known = [
  "job",
  "table",
  "ttl",
  "skew",
  "overlap",
  "timeout",
  "schedule",
  "onUnknown",
  "metrics",
  "ping",
  "observers",
  "store",
  "clock",
  "log",
  "random",
  "newId",
  "interrupt",
  "version",
  "startAnother",
];
