/** `cronfence approve`: lets one run of a guarded job do the plan that its guard stopped. */
import type { Command } from "commander";
import { systemClock } from "../clock.ts";
import { addActOptions, type JobActOptions, prepareAct } from "./act-options.ts";
import { duration, wholeNumber } from "./arguments.ts";
import { print, printJson } from "./exit.ts";
import { iso } from "./instants.ts";

interface ApproveOptions extends JobActOptions {
  readonly max: number;
  /** In milliseconds. */
  readonly for: number;
}

export const addApprove = (program: Command): void => {
  addActOptions(
    program
      .command("approve")
      .argument("<job>", "the job's name")
      .description("lets one run of a guarded job do the very plan that its guard stopped last")
      .requiredOption("--max <n>", "the most items that you approve of", wholeNumber(1, 1_000_000_000))
      .requiredOption("--for <duration>", "how long the approval holds, such as 24h", duration),
  )
    .addHelpText(
      "after",
      '\nExample:\n  npx cronfence approve purge-sessions --max 12000 --for 24h --why "the sale is over" --yes',
    )
    .action(approve);
};

const approve = async (job: string, options: ApproveOptions): Promise<void> => {
  const { act, told, deps } = await prepareAct(job, options, ({ tripped }) =>
    tripped === undefined
      ? `the guard of ${job} hasn't tripped, so that nothing is approved`
      : `one run of ${job} may do the plan of ${tripped.count} items that its guard stopped at ${iso(tripped.at)}`,
  );
  const { by, why, fence } = act;
  const { approvePlan } = await import("../operate/acts.ts");
  const { hash, max, until } = await approvePlan(
    job,
    { by, why, ...(fence === undefined ? {} : { fence }), max: options.max, until: systemClock.now() + options.for },
    deps,
  );
  if (options.json) return printJson({ job, hash, max, until: iso(until), ...told });
  print(
    `${job} may do the plan that its guard stopped (${hash.slice(0, 12)}…, at most ${max} items) once, until ${iso(until)}`,
  );
};
