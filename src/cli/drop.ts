/** `cronfence drop`: gives a parked item up. */
import type { Command } from "commander";
import { systemClock } from "../clock.ts";
import { jsonOption } from "./arguments.ts";
import { type ConfirmOptions, confirmed, yesOption } from "./confirm.ts";
import { addTableOptions, openStore, patience, type TableOptions } from "./control-table.ts";
import { print, printJson } from "./exit.ts";
import { type ActOptions, actOf, byOption, whyOption } from "./operator.ts";

interface DropOptions extends TableOptions, ActOptions, ConfirmOptions {
  readonly json?: boolean;
}

export const addDrop = (program: Command): void => {
  addTableOptions(
    program
      .command("drop")
      .argument("<job>", "the job's name")
      .argument("<key>", "the parked item's key, as `cronfence parked` shows it")
      .description("gives a parked item up for good; who did it and why is recorded"),
  )
    .addOption(whyOption())
    .addOption(byOption())
    .addOption(yesOption())
    .addOption(jsonOption())
    .addHelpText("after", '\nExample:\n  npx cronfence drop expire-carts cart-17 --why "a test order" --yes')
    .action(drop);
};

const drop = async (job: string, key: string, options: DropOptions): Promise<void> => {
  const act = actOf(options);
  const store = await openStore(options);
  await confirmed(`parked item ${key} of ${job} is given up for good`, options);
  await store.dropParked(job, key, act, systemClock.now(), patience());
  if (options.json) return printJson({ job, key, dropped: true, ...act });
  print(`${key} of ${job} was dropped`);
};
