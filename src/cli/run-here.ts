/** A run in this process, with its credentials and on the given control table. Ctrl-C interrupts it, which is recorded. */
import { systemClock } from "../clock.ts";
import type { DynamoStore } from "../control/dynamo-store.ts";
import { InvalidOptionsError } from "../errors.ts";
import type { Job } from "../job.ts";
import type { LocalSetup } from "../local/job-modules.ts";
import type { RunReport } from "../report.ts";
import { openStore, patience } from "./control-table.ts";
import { note, onInterrupt, print, printJson, report } from "./exit.ts";
import { iso } from "./instants.ts";
import { nameOf } from "./operator.ts";
import { progress } from "./progress.ts";
import type { RunOptions } from "./run-options.ts";
import { going, isWell, reported } from "./run-words.ts";

export const runHere = async (name: string, options: RunOptions): Promise<void> => {
  refuseFuture(options.tick, systemClock.now());
  // Before the jobs are loaded, so that clients of their own talk to the same place.
  const store = await openStore(options, true);
  const [{ loadJobs, pickJob }, { reportProblems }] = await Promise.all([
    import("./load-jobs.ts"),
    import("./problems.ts"),
  ]);
  const found = await loadJobs(options.jobs);
  reportProblems(found);
  const { job, local } = pickJob(found, name);
  if (options.local !== undefined) await setUp(store.table, local);
  noteOffSchedule(job, options.tick);
  const ran = await runWatched(job, options, store);
  if (job.work.shape === "tick" && options.tick === undefined && ran.run !== undefined) note(noTick);
  if (options.json) printJson(ran);
  if (isWell(ran.outcome)) {
    if (!options.json) print(reported(ran));
  } else report(reported(ran));
};

/** A tick that is completed before its time would take all that come until then away from the job. */
const refuseFuture = (tick: number | undefined, now: number): void => {
  if (tick === undefined || tick <= now) return;
  throw new InvalidOptionsError("start of a run", [`tick is ${iso(tick)}, and must be one that has come`]);
};

/** It is done all the same, since the schedule may have been another one then; mostly it is a slip. */
const noteOffSchedule = ({ schedule }: Job, tick: number | undefined): void => {
  if (schedule === undefined || tick === undefined) return;
  const before = schedule.previous(tick + 1);
  if (before === tick) return;
  note(
    `today's schedule has no tick at ${iso(tick)}${before === undefined ? "" : `; the one before is ${iso(before)}`}`,
  );
};

/** What a local engine's file lacks. */
const setUp = async (table: string, local: LocalSetup | undefined): Promise<void> => {
  const [{ DynamoDBClient }, { createControlTable }, { createMissing }] = await Promise.all([
    import("@aws-sdk/client-dynamodb"),
    import("../control/table.ts"),
    import("../local/local-tables.ts"),
  ]);
  const client = new DynamoDBClient({});
  const made = await createControlTable(client, table);
  if (made === "created") note(`made control table ${table}`);
  for (const name of await createMissing(client, local, systemClock.now())) note(`made table ${name}`);
  client.destroy();
};

const noTick =
  "a run without --tick does no tick of this job: what is owed is done by its next tick, or with --tick TICK";

const runWatched = async (job: Job, options: RunOptions, store: DynamoStore): Promise<RunReport> => {
  const [{ runJob }, { plainLog }] = await Promise.all([import("../run.ts"), import("../local/plain-log.ts")]);
  const interrupt = new AbortController();
  onInterrupt(() => interrupt.abort("SIGINT"));
  const watching = setInterval(() => {
    store
      .read(job.name, patience())
      .then((state) => state?.run && progress(going(state.run, systemClock.now())))
      .catch(() => {});
  }, 1_000);
  try {
    return await runJob(
      job,
      {
        kind: "manual",
        reason: `started by ${nameOf(options.by)}${options.why === undefined ? "" : `: ${options.why}`}`,
        ...(options.tick === undefined ? {} : { tick: options.tick }),
        ...(options.dryRun ? { dryRun: true } : {}),
      },
      {
        store,
        interrupt: interrupt.signal,
        // An attempt's last line says again what the command says.
        log: plainLog({ print: note, now: systemClock.now, level: "warn" }),
      },
    );
  } finally {
    clearInterval(watching);
  }
};
