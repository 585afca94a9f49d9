/** `cronfence approve`: lets one run of a guarded job do the plan that its guard stopped. */
import type { Command } from "commander";
import { systemClock } from "../clock.ts";
import { duration, jsonOption, wholeNumber } from "./arguments.ts";
import { type ConfirmOptions, confirmed, yesOption } from "./confirm.ts";
import { addTableOptions, openStore, patience, type TableOptions } from "./control-table.ts";
import { print, printJson } from "./exit.ts";
import { iso } from "./instants.ts";
import { type ActOptions, actOf, byOption, whyOption } from "./operator.ts";

interface ApproveOptions extends TableOptions, ActOptions, ConfirmOptions {
  readonly max: number;
  /** In milliseconds. */
  readonly for: number;
  readonly json?: boolean;
}

export const addApprove = (program: Command): void => {
  addTableOptions(
    program
      .command("approve")
      .argument("<job>", "the job's name")
      .description("lets one run of a guarded job do the very plan that its guard stopped last")
      .requiredOption("--max <n>", "the most items that you approve of", wholeNumber(1, 1_000_000_000))
      .requiredOption("--for <duration>", "how long the approval holds, such as 24h", duration),
  )
    .addOption(whyOption())
    .addOption(byOption())
    .addOption(yesOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      '\nExample:\n  npx cronfence approve purge-sessions --max 12000 --for 24h --why "the sale is over" --yes',
    )
    .action(approve);
};

const approve = async (job: string, options: ApproveOptions): Promise<void> => {
  const act = actOf(options);
  const store = await openStore(options);
  await confirmed(
    `one run of ${job} may do the plan that its guard stopped last, of at most ${options.max} items`,
    options,
  );
  const now = systemClock.now();
  const { hash, max, until } = await store.approve(
    job,
    { ...act, max: options.max, until: now + options.for },
    now,
    patience(),
  );
  if (options.json) return printJson({ job, hash, max, until: iso(until), ...act });
  print(
    `${job} may do the plan that its guard stopped (${hash.slice(0, 12)}…, at most ${max} items) once, until ${iso(until)}`,
  );
};
