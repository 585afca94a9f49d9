/**
 * A Lambda function for a job. Endings that the platform's retry should see throw; all others return the report.
 */
import type { Context } from "aws-lambda";
import { type LeaseSpec, makeReady, type RunDeps } from "../attempt.ts";
import { systemClock } from "../clock.ts";
import type { Job } from "../job.ts";
import { defaultLog } from "../observe/log.ts";
import { traitsOf } from "../outcome.ts";
import { errorOf, type RunReport } from "../report.ts";
import { runJob } from "../run.ts";
import type { Trigger } from "../trigger.ts";
import { isProbe, type Probe, type ProbeAnswer, readEvent } from "./event.ts";
import { invokeForBacklog, invokeForTick } from "./invoke-again.ts";
import { showSources } from "./source-positions.ts";
import { terminationSignal } from "./termination.ts";

/** Dependencies that a function may set; the platform gives the rest. */
export type LambdaDeps = Omit<RunDeps, "remainingMs">;

/** What Lambda calls: an event in, a report out; and who answers there, for a probe. */
export interface JobHandler {
  (event: Probe, context?: LambdaContext): Promise<ProbeAnswer>;
  (event: unknown, context?: LambdaContext): Promise<RunReport>;
}

export type LambdaContext = Partial<Pick<Context, "awsRequestId" | "getRemainingTimeInMillis">>;

/**
 * The handler of a function that runs `job`: `export const handler = lambdaHandler(job)`.
 *
 * It throws what made a run fail (`failed`, `timed_out`, `lease_lost`, `interrupted`), so that the function's own retry
 * setting applies, and whatever `runJob` throws; held, queued, duplicate and paused attempts return their report. A probe
 * (`{ "probe": true }`) is answered with the job's name and the function's version, and runs nothing.
 *
 * @throws InvalidEventError for an event that isn't a schedule's, a manual one or a probe
 * @throws WrongVersionError for an event that names another version than this one
 */
export const lambdaHandler = (job: Job, deps: LambdaDeps = {}): JobHandler => {
  for (const warning of job.warnings) (deps.log ?? defaultLog()).warn({ job: job.name }, warning);
  if (inLambda() && deps.store === undefined) makeReady();
  const handle = async (event: unknown, context: LambdaContext = {}): Promise<RunReport | ProbeAnswer> => {
    const trigger = triggerOf(job, event, context, deps);
    if (trigger === "probe") return probeAnswer(job.name, deps);
    try {
      return throwIfFailed(await runJob(job, trigger, { ...platformDeps(context), ...deps }));
    } catch (error) {
      // Lambda logs the trace.
      if (inLambda()) showSources(error);
      throw error;
    }
  };
  return handle as JobHandler;
};

export const probeAnswer = (job: string, deps: LambdaDeps): ProbeAnswer => {
  const version = versionOf(deps);
  return { job, ...(version === undefined ? {} : { version }) };
};

/** As the records of its runs have it. */
const versionOf = ({ version = process.env.CRONFENCE_VERSION }: LambdaDeps): string | undefined => version;

/** A report that the platform may see as a success. */
export const throwIfFailed = (report: RunReport): RunReport => {
  if (traitsOf(report.outcome).fails)
    throw report.thrown ?? new Error(`job "${report.job}" ended as ${report.outcome}`);
  return report;
};

/**
 * What an event asks for; an event that isn't understood is logged, as every attempt is, before it is refused.
 * @param refuse throws for what this function can't do
 */
export const triggerOf = (
  spec: LeaseSpec,
  event: unknown,
  context: LambdaContext,
  deps: LambdaDeps,
  refuse: (trigger: Trigger) => void = () => {},
): Trigger | "probe" => {
  try {
    if (isProbe(spec.name, event)) return "probe";
    const latest = (deps.clock ?? systemClock).now() + spec.skewMs;
    const trigger = readEvent(spec.name, event, context.awsRequestId, latest, versionOf(deps));
    refuse(trigger);
    return trigger;
  } catch (error) {
    (deps.log ?? defaultLog()).error(
      { job: spec.name, requestId: context.awsRequestId, error: errorOf(error) },
      "attempt ended: refused",
    );
    throw error;
  }
};

export const platformDeps = (
  context: LambdaContext,
): Pick<RunDeps, "remainingMs" | "interrupt" | "startAnother" | "continueBacklog"> => ({
  ...(context.getRemainingTimeInMillis === undefined
    ? {}
    : { remainingMs: () => context.getRemainingTimeInMillis?.() ?? 0 }),
  ...(inLambda()
    ? { interrupt: terminationSignal(), startAnother: invokeForTick, continueBacklog: invokeForBacklog }
    : {}),
});

/** https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime */
const inLambda = () => process.env.AWS_LAMBDA_FUNCTION_NAME !== undefined;
