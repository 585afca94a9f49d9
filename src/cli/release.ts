/** `cronfence release`: says what became of an effect that a run died over. */
import { type Command, Option } from "commander";
import { systemClock } from "../clock.ts";
import { addTableOptions, openStore, patience, type TableOptions } from "./control-table.ts";
import { print } from "./exit.ts";
import { type ActOptions, actOf, byOption, whyOption } from "./operator.ts";

interface ReleaseOptions extends TableOptions, ActOptions {
  readonly done?: boolean;
  readonly notDone?: boolean;
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
    .addHelpText(
      "after",
      '\nExample:\n  npx cronfence release invoices invoice-2026-03 --done --why "seen at the bank"',
    )
    .action(release);
};

const release = async (job: string, key: string, options: ReleaseOptions, command: Command): Promise<void> => {
  const { done = false, notDone = false } = options;
  if (done === notDone) command.error("error: say what became of it: --done or --not-done");
  const act = actOf(options);
  const store = await openStore(options);
  await store.releaseOnce(job, key, done ? "done" : "not done", act, systemClock.now(), patience());
  print(`${key} of ${job} is on record as ${done ? "done, and isn't called again" : "not done, and is called again"}`);
};
