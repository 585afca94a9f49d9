/** `cronfence release`: says what became of an effect that a run died over. */
import { type Command, Option } from "commander";
import { systemClock } from "../clock.ts";
import { jsonOption } from "./arguments.ts";
import { type ConfirmOptions, confirmed, yesOption } from "./confirm.ts";
import { addTableOptions, openStore, patience, type TableOptions } from "./control-table.ts";
import { print, printJson } from "./exit.ts";
import { type ActOptions, actOf, byOption, whyOption } from "./operator.ts";

interface ReleaseOptions extends TableOptions, ActOptions, ConfirmOptions {
  readonly done?: boolean;
  readonly notDone?: boolean;
  readonly json?: boolean;
}

export const addRelease = (program: Command): void => {
  addTableOptions(
    program
      .command("release")
      .argument("<job>", "the job's name")
      .argument("<key>", "the effect's key, as given to run.once")
      .description("says whether an effect outside DynamoDB was done that a run died over")
      .addOption(new Option("--done", "it was done, and isn't called again").conflicts("notDone"))
      .addOption(new Option("--not-done", "it wasn't done, and the next run calls it again").conflicts("done")),
  )
    .addOption(whyOption())
    .addOption(byOption())
    .addOption(yesOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      '\nExample:\n  npx cronfence release invoices invoice-2026-03 --done --why "seen at the bank" --yes',
    )
    .action(release);
};

const release = async (job: string, key: string, options: ReleaseOptions, command: Command): Promise<void> => {
  const { done = false, notDone = false } = options;
  if (done === notDone) command.error("error: say what became of it: --done or --not-done");
  const act = actOf(options);
  const store = await openStore(options);
  const verdict = done ? "done" : "not done";
  const then = done ? "isn't called again" : "is called again";
  await confirmed(`${key} of ${job} goes on record as ${verdict}, and ${then}`, options);
  await store.releaseOnce(job, key, verdict, act, systemClock.now(), patience());
  if (options.json) return printJson({ job, key, verdict, ...act });
  print(`${key} of ${job} is on record as ${verdict}, and ${then}`);
};
