/** What `cronfence backfill` does: a plan by the ledger, and runs that do it. */
import { systemClock } from "../clock.ts";
import { CronfenceError } from "../errors.ts";
import type { Job } from "../job.ts";
import { type BackfillPlan, type BackfillRun, planBackfill, runBackfill } from "../operate/backfill.ts";
import { followRun } from "../operate/follow-run.ts";
import { lambdaInvoker } from "../operate/lambda-invoker.ts";
import type { OperateDeps } from "../operate/operator.ts";
import { startRun } from "../operate/start-run.ts";
import type { BackfillOptions } from "./backfill-options.ts";
import { confirmed } from "./confirm.ts";
import { note, onInterrupt, print, printJson, report } from "./exit.ts";
import { functionNameOf } from "./function-name.ts";
import { iso } from "./instants.ts";
import { actOf } from "./operator.ts";
import { progress } from "./progress.ts";
import { openProject, projectJob } from "./project.ts";
import { isWell, plural } from "./run-words.ts";

export const backfillTicks = async (name: string, options: BackfillOptions): Promise<void> => {
  const act = actOf(options);
  const { deps } = await openProject(options);
  const job = await projectJob(name, options);
  const { from, to, max } = options;
  const plan = await planBackfill(job, { from, to, max }, deps);
  const { ticks } = plan;
  if (!options.json) for (const line of leftOut(name, plan)) note(line);
  if (ticks.length === 0) {
    if (options.json) return printJson(asJson(name, plan, [], 0));
    return print(`no tick of ${name} is to be done after all`);
  }
  const where = options.here ? "in this process" : `by ${await functionNameOf(name, options)}`;
  const range = `${plural(ticks.length, "tick")} of ${name}, from ${iso(ticks[0] as number)} through ${iso(ticks.at(-1) as number)},`;
  await confirmed(`${range} ${ticks.length === 1 ? "is" : "are"} done after all, ${where}`, options);
  const stop = new AbortController();
  onInterrupt(() => stop.abort("SIGINT"));
  const reason = `backfill by ${act.by}: ${act.why}`;
  const start = options.here
    ? runsHere(job, reason, stop.signal, deps)
    : await runsThere(name, reason, options, deps, stop.signal);
  let done = 0;
  progress(`0 of ${plural(ticks.length, "tick")}`);
  const runs = await runBackfill(name, ticks, start, {
    ...deps,
    signal: stop.signal,
    onProgress: (count) => {
      done = count;
      progress(`${count} of ${plural(ticks.length, "tick")}`);
    },
  });
  if (options.json) printJson(asJson(name, plan, runs, done));
  const last = runs.at(-1);
  if (done === ticks.length) {
    if (!options.json)
      print(
        `${plural(done, "tick")} of ${name} ${done === 1 ? "was" : "were"} done after all, in ${plural(runs.length, "run")}`,
      );
    return;
  }
  const why =
    last === undefined || isWell(last.outcome)
      ? "it was stopped"
      : last.run === undefined
        ? `no run could start (${last.outcome})`
        : `run ${last.run} ended as ${last.outcome}`;
  const error = last?.error === undefined ? "" : ` (${last.error.name}: ${last.error.message})`;
  report(`${done} of ${plural(ticks.length, "tick")} are known to be done: ${why}${error}; the same command goes on`);
};

/** What isn't done, and why not. */
const leftOut = (name: string, { owed, already, done, other, beyond }: BackfillPlan): string[] => {
  const last = owed.at(-1);
  return [
    ...(done === 0 ? [] : [`${plural(done, "tick")} of that time ${done === 1 ? "was" : "were"} done by runs`]),
    ...(already === 0
      ? []
      : [`${plural(already, "tick")} ${already === 1 ? "was" : "were"} done by an earlier backfill`]),
    ...(other === 0
      ? []
      : [
          `${plural(other, "tick")} ${other === 1 ? "wasn't" : "weren't"} due, or no record tells: npx cronfence ledger ${name}`,
        ]),
    ...(last === undefined
      ? []
      : [
          `${plural(owed.length, "tick")} ${owed.length === 1 ? "is" : "are"} still owed; to do ${owed.length === 1 ? "it" : "them"}: npx cronfence run ${name} --tick ${iso(last)}`,
        ]),
    ...(beyond === 0 ? [] : [`${plural(beyond, "tick")} more are beyond --max`]),
  ];
};

type Start = (ticks: readonly number[]) => Promise<BackfillRun>;

const runsThere = async (
  name: string,
  reason: string,
  options: BackfillOptions,
  deps: OperateDeps,
  signal: AbortSignal,
): Promise<Start> => {
  const invoker = lambdaInvoker();
  const functionName = await functionNameOf(name, options);
  return async (backfill) => {
    const started = await startRun(name, { backfill, reason }, { ...deps, invoker, functionName });
    const followed = await followRun(started, { signal }, deps);
    if (followed.kind === "ended") {
      const { id, outcome, items, error } = followed.record;
      return { run: id, outcome, items, ...(error === undefined ? {} : { error }) };
    }
    throw new CronfenceError(
      "NOT_FOLLOWED",
      `what became of the run isn't known (request ${started.requestId}); look at npx cronfence runs ${name}, and then give the command again`,
    );
  };
};

const runsHere =
  (job: Job, reason: string, interrupt: AbortSignal, deps: OperateDeps): Start =>
  async (backfill) => {
    const [{ runJob }, { plainLog }] = await Promise.all([import("../run.ts"), import("../local/plain-log.ts")]);
    const log = plainLog({ print: note, now: systemClock.now, level: "error" });
    const { run, outcome, items, error } = await runJob(
      job,
      { kind: "manual", backfill, reason },
      { store: deps.store, interrupt, log },
    );
    return { ...(run === undefined ? {} : { run }), outcome, items, ...(error === undefined ? {} : { error }) };
  };

const asJson = (job: string, plan: BackfillPlan, runs: readonly BackfillRun[], done: number) => ({
  job,
  ticks: plan.ticks.map(iso),
  done,
  runs,
  leftOut: { done: plan.done, already: plan.already, owed: plan.owed.map(iso), other: plan.other, beyond: plan.beyond },
});
