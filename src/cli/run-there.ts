/** A run in the job's own function: asked for once, and followed by what it leaves in the control table. */
import type { Clock } from "../clock.ts";
import type { RunRecord } from "../control/control-store.ts";
import { waitForVersion } from "../operate/deployed-version.ts";
import { type Followed, type Following, followRun } from "../operate/follow-run.ts";
import { lambdaInvoker } from "../operate/lambda-invoker.ts";
import { askDryRun, isSettled, type StartDeps, type StartedRun, startRun } from "../operate/start-run.ts";
import type { RunReport } from "../report.ts";
import { openStore } from "./control-table.ts";
import { note, onInterrupt, print, printJson, report } from "./exit.ts";
import { functionNameOf } from "./function-name.ts";
import { iso } from "./instants.ts";
import { stateIfKnown } from "./known-job.ts";
import { nameOf } from "./operator.ts";
import { progress } from "./progress.ts";
import type { RunOptions } from "./run-options.ts";
import { ended, going, isWell, recordJson, reported } from "./run-words.ts";

export const runThere = async (job: string, options: RunOptions, clock: Clock): Promise<void> => {
  const { tick, waitFor, timeout = defaultTimeoutMs } = options;
  const store = await openStore(options);
  const state = await stateIfKnown(store, job, options.jobs);
  const functionName = await functionNameOf(job, options);
  if (tick !== undefined && !options.dryRun && isSettled(state, tick)) {
    if (options.json) return printJson({ job, function: functionName, outcome: "duplicate", tick: iso(tick) });
    return print(`tick ${iso(tick)} of ${job} is done already; nothing was started`);
  }
  const deps: StartDeps = { store, clock, invoker: lambdaInvoker(), functionName };
  const stop = new AbortController();
  if (waitFor !== undefined) await showVersion(job, waitFor, deps, timeout, stop.signal);
  const request = {
    ...(tick === undefined ? {} : { tick }),
    ...(waitFor === undefined ? {} : { version: waitFor }),
    reason: `started by ${nameOf(options.by)}${options.why === undefined ? "" : `: ${options.why}`}`,
  };
  if (options.dryRun) {
    progress(`${functionName} is doing a dry run`);
    return showDryRun(functionName, await askDryRun(request, { ...deps, withinMs: timeout }), options);
  }
  const started = await startRun(job, request, deps);
  if (!options.wait && waitFor === undefined) return showStarted(started, functionName, options);
  // The run goes on without us.
  onInterrupt(() => stop.abort());
  const followed = await followRun(
    started,
    { withinMs: timeout, onLook: (seen) => progress(lookingAt(seen, clock.now())), signal: stop.signal },
    deps,
  );
  await showEnd(started, followed, functionName, options);
};

const defaultTimeoutMs = 20 * 60_000;

const showVersion = async (job: string, version: string, deps: StartDeps, withinMs: number, signal: AbortSignal) => {
  await waitForVersion(job, version, {
    ...deps,
    withinMs,
    signal,
    onAnswer: (answers) => progress(`${deps.functionName} still answers as ${answers ?? "a build without a version"}`),
  });
  note(`${deps.functionName} answers as version ${version}`);
};

const showStarted = ({ job, requestId }: StartedRun, functionName: string, { json }: RunOptions): void => {
  if (json) printJson({ job, function: functionName, requestId, outcome: null });
  else print(`${functionName} was asked for a run of ${job}: request ${requestId}`);
  note(`what becomes of it: npx cronfence runs ${job}`);
};

const showDryRun = (functionName: string, ran: RunReport, { json }: RunOptions): void => {
  if (!isWell(ran.outcome)) process.exitCode = 1;
  if (json) printJson({ function: functionName, ...ran });
  else print(`${reported(ran)}${ran.version === undefined ? "" : ` (version ${ran.version})`}`);
};

const lookingAt = (seen: Following, now: number): string => {
  if (seen.kind === "going") return going(seen.run, now);
  if (seen.holder === undefined) return "nothing is seen of the run yet";
  return `${seen.queued ? "queued behind" : "waiting for"} ${going(seen.holder, now)}`;
};

const showEnd = async (
  { job, requestId, tick }: StartedRun,
  followed: Followed,
  functionName: string,
  { json }: RunOptions,
): Promise<void> => {
  const record = recordIn(followed);
  const outcome = record?.outcome ?? null;
  if (json) {
    printJson({
      job,
      function: functionName,
      requestId,
      outcome,
      version: record?.version ?? null,
      run: record === undefined ? null : recordJson(record),
      ...(followed.kind === "ended" ? {} : { ended: followed.kind }),
    });
  }
  if (outcome !== null && isWell(outcome)) {
    if (json) return;
    const how = followed.kind === "covered" ? `tick ${iso(tick as number)} was done by another run: ` : "";
    return print(`${how}${ended(record as RunRecord)}`);
  }
  report(problemOf(job, requestId, followed));
};

const recordIn = (followed: Followed): RunRecord | undefined =>
  followed.kind === "ended" ? followed.record : followed.kind === "covered" ? followed.by : undefined;

const problemOf = (job: string, requestId: string, followed: Followed): string => {
  if (followed.kind === "ended") return ended(followed.record);
  if (followed.kind === "paused") return `no run: the job was paused by ${followed.by} (${followed.why})`;
  if (followed.kind === "covered")
    return `the tick is settled, and no record says by which run: npx cronfence ledger ${job}`;
  const { last } = followed;
  if (last.kind === "going") {
    return `run ${last.run.id} still goes on; see it with: npx cronfence show ${last.run.id}`;
  }
  const holder = last.holder === undefined ? "" : `; run ${last.holder.id} holds the lease`;
  return (
    `nothing is seen of the run yet${holder} (request ${requestId}): its function hasn't got to it, or refused it, ` +
    "which its log would say"
  );
};
