/** `cronfence table`. */
import type { Command } from "commander";
import { jsonOption } from "./arguments.ts";
import { yesOption } from "./confirm.ts";
import { addTableOptions } from "./control-table.ts";
import { byOption, whyOption } from "./operator.ts";

export const addTable = (program: Command): void => {
  const table = program
    .command("table")
    .description("the control table, which holds every job's lease, watermark and runs");
  addTableOptions(
    table
      .command("create")
      .description("creates the control table, if there is none")
      .option("--job <name...>", "makes these jobs known: ticks before now aren't owed"),
  )
    .addOption(jsonOption())
    .addHelpText("after", "\nExample:\n  npx cronfence table create --table jobs --job expire-carts")
    .action(async (options) => (await import("./create-table.ts")).createTable(options));
  addTableOptions(
    table
      .command("restored")
      .description(
        "puts a table right that was restored from a backup: fences out every run, before any schedule is enabled again",
      ),
  )
    .addOption(whyOption())
    .addOption(byOption())
    .addOption(yesOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      '\nExample:\n  npx cronfence table restored --table jobs --why "back to Monday, after the bad import"',
    )
    .action(async (options) => (await import("./restored-table.ts")).markTableRestored(options));
};
