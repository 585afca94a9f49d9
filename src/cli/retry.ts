/** `cronfence retry`: does parked items after all, in this process. */
import type { Command } from "commander";
import { systemClock } from "../clock.ts";
import type { RunReport } from "../report.ts";
import { jobsOption, jsonOption } from "./arguments.ts";
import { type ConfirmOptions, confirmed, yesOption } from "./confirm.ts";
import { addTableOptions, openStore, type TableOptions } from "./control-table.ts";
import { print, printJson, report } from "./exit.ts";
import { knownState } from "./known-job.ts";
import { byOption, nameOf } from "./operator.ts";

interface RetryOptions extends TableOptions, ConfirmOptions {
  readonly all?: boolean;
  readonly by?: string;
  readonly why?: string;
  readonly dryRun?: boolean;
  readonly jobs: readonly string[];
  readonly json?: boolean;
}

export const addRetry = (program: Command): void => {
  addTableOptions(
    program
      .command("retry")
      .argument("<job>", "the job's name")
      .argument("[keys...]", "keys of parked items, as `cronfence parked` shows them")
      .description("does parked items after all, in this process and with its credentials, in a run of its own")
      .option("--all", "all of the job's parked items")
      .option("--dry-run", "does everything but write"),
  )
    .addOption(jobsOption())
    .option("--why <reason>", "why; the run's record has it")
    .addOption(byOption())
    .addOption(yesOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      '\nExample:\n  npx cronfence retry expire-carts cart-17 cart-23 --why "the shop is back" --yes',
    )
    .action(retry);
};

const retry = async (name: string, keys: readonly string[], options: RetryOptions, command: Command): Promise<void> => {
  const { all = false } = options;
  if (all === keys.length > 0) {
    command.error(
      all
        ? "error: either keys or --all says which items, and both are given"
        : "error: say which items: their keys, or --all",
    );
  }
  const store = await openStore(options);
  const { loadJobs, pickJob } = await import("./load-jobs.ts");
  const { reportProblems } = await import("./problems.ts");
  const found = await loadJobs(options.jobs);
  reportProblems(found);
  const { job } = pickJob(found, name);
  await knownState(store, name, options.jobs);
  const which = all ? "all parked items" : `parked items ${keys.join(", ")}`;
  if (!options.dryRun) await confirmed(`${which} of ${name} are done in this process, with its credentials`, options);
  const { runJob } = await import("../run.ts");
  const { plainLog } = await import("../local/plain-log.ts");
  const log = plainLog({
    print: (line) => process.stderr.write(`${line}\n`),
    now: systemClock.now,
    // An attempt's last line says again what the command says.
    level: "warn",
  });
  const trigger = {
    kind: "manual",
    parked: all ? "all" : keys,
    reason: `retry of parked items by ${nameOf(options.by)}${options.why === undefined ? "" : `: ${options.why}`}`,
    ...(options.dryRun ? { dryRun: true } : {}),
  } as const;
  const ended = await runJob(job, trigger, { store, log });
  if (options.json) printJson(ended);
  const { done, problem } = inWords(ended);
  if (!options.json && done !== undefined) print(done);
  if (problem !== undefined) report(problem);
};

const inWords = (ended: RunReport): { readonly done?: string; readonly problem?: string } => {
  const { job, outcome, items, itemsSkipped = 0, error, holder, backlog } = ended;
  const skipped = itemsSkipped > 0 ? `, and ${count(itemsSkipped)} needed no doing any more` : "";
  const done = `${count(items)} of ${job} ${items === 1 ? "was" : "were"} done${skipped}`;
  if (outcome === "succeeded") return { done };
  if (outcome === "dry_run")
    return { done: `dry run: ${ended.wouldWrite ?? 0} writes would have been made, and none was` };
  if (outcome === "capped") return { done, problem: `job "${job}": ${backlog ?? "some are left"}` };
  if (outcome === "held") {
    const by = holder?.run === undefined ? "another run" : `run ${holder.run}`;
    return { problem: `job "${job}": ${by} holds the lease until ${holder?.leaseUntil ?? "it ends"}; try again then` };
  }
  if (outcome === "paused") return { problem: `job "${job}" is paused` };
  return { done, problem: error?.message ?? `job "${job}": the retry ended as ${outcome}` };
};

const count = (items: number): string => `${items} parked ${items === 1 ? "item" : "items"}`;
