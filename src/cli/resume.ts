/** `cronfence resume`: ends a pause. */
import type { Command } from "commander";
import { addActOptions, type JobActOptions, prepareAct } from "./act-options.ts";
import { print, printJson } from "./exit.ts";

export const addResume = (program: Command): void => {
  addActOptions(
    program
      .command("resume")
      .argument("<job>", "the job's name")
      .description("lets runs start again; the next one covers what is owed. It starts none itself"),
  )
    .addHelpText("after", '\nExample:\n  npx cronfence resume expire-carts --why "moved" --yes')
    .action(resume);
};

const resume = async (job: string, options: JobActOptions): Promise<void> => {
  const { act, told, deps, state } = await prepareAct(job, options, ({ paused }) =>
    paused === undefined
      ? `${job} isn't paused, and stays so`
      : `runs of ${job} may start again (paused by ${paused.by}: ${paused.why})`,
  );
  const { by, why, fence } = act;
  const { resumeJob } = await import("../operate/acts.ts");
  await resumeJob(job, { by, why, ...(fence === undefined ? {} : { fence }) }, deps);
  if (options.json) return printJson({ job, wasPaused: state.paused !== undefined, ...told });
  print(
    `runs of ${job} may start again, and the next tick's covers what is owed` +
      `; to do that now: npx cronfence run ${job} --tick TICK, the newest that npx cronfence ledger ${job} shows`,
  );
};
