/** `cronfence drop`: gives a parked item up. */
import type { Command } from "commander";
import { systemClock } from "../clock.ts";
import { addTableOptions, openStore, patience, type TableOptions } from "./control-table.ts";
import { print } from "./exit.ts";
import { type ActOptions, actOf, byOption, whyOption } from "./operator.ts";

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
    .addHelpText("after", '\nExample:\n  npx cronfence drop expire-carts cart-17 --why "a test order"')
    .action(drop);
};

const drop = async (job: string, key: string, options: TableOptions & ActOptions): Promise<void> => {
  const act = actOf(options);
  const store = await openStore(options);
  await store.dropParked(job, key, act, systemClock.now(), patience());
  print(`${key} of ${job} was dropped`);
};
