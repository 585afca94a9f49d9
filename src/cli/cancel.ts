/** `cronfence cancel`: fences out the run that holds a job's lease. */
import type { Command } from "commander";
import { systemClock } from "../clock.ts";
import { addActOptions, type JobActOptions, prepareAct, runSince } from "./act-options.ts";
import { print, printJson } from "./exit.ts";

export const addCancel = (program: Command): void => {
  addActOptions(
    program
      .command("cancel")
      .argument("<job>", "the job's name")
      .description("fences out the run that holds the lease: nothing more of it is accepted; what it committed stays"),
  )
    .addHelpText("after", '\nExample:\n  npx cronfence cancel expire-carts --why "reads the wrong shop" --yes')
    .action(cancel);
};

const cancel = async (job: string, options: JobActOptions): Promise<void> => {
  const { act, told, deps } = await prepareAct(job, options, ({ owner, run }) =>
    owner === undefined || run === undefined
      ? `no run of ${job} holds the lease, so nothing is cancelled`
      : `${runSince(run, systemClock.now())}, is fenced out; what it committed stays, and its ticks stay owed`,
  );
  const { by, why, fence } = act;
  const { cancelRun } = await import("../operate/acts.ts");
  const { cancelled } = await cancelRun(job, { by, why, ...(fence === undefined ? {} : { fence }) }, deps);
  if (options.json) return printJson({ job, cancelled: cancelled?.id ?? null, ...told });
  print(
    cancelled === undefined
      ? `no run of ${job} holds the lease; nothing was changed`
      : `run ${cancelled.id} of ${job} was cancelled`,
  );
};
