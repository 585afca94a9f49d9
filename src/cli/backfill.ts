/** `cronfence backfill`: does ticks of the past after all, in the job's function or in this process. */
import { type Command, Option } from "commander";
import { addActOptions } from "./act-options.ts";
import { instant, wholeNumber } from "./arguments.ts";
import type { BackfillOptions } from "./backfill-options.ts";
import { addFunctionOptions, refuseLocalThere } from "./function-name.ts";

export const addBackfill = (program: Command): void => {
  const command = program
    .command("backfill")
    .argument("<job>", "the job's name")
    .description("does ticks of the past that are settled without having been done, each once")
    .requiredOption("--from <instant>", "where to begin, a date or an instant", instant)
    .requiredOption("--to <instant>", "where to end, included", instant)
    .option("--max <n>", "at most so many ticks", wholeNumber(1, 100_000), 1_000)
    .addOption(new Option("--here", "runs in this process and with its credentials").conflicts(["function", "stage"]));
  addActOptions(addFunctionOptions(command))
    .addHelpText(
      "after",
      "\nThese are ticks that the job's policy or an operator left out, and those from before the job began. What is still owed is" +
        "\nleft to a run (it says which), what was done stays done, and neither the watermark nor the last completed tick moves." +
        "\nIt is for jobs with a tick function. What broke off is gone on with by giving the command again." +
        '\n\nExample:\n  npx cronfence backfill daily-report --from 2026-01-01 --to 2026-02-01 --why "new report" --yes',
    )
    .action(async (name: string, options: BackfillOptions) => {
      refuseLocalThere(options, command);
      await (await import("./backfill-ticks.ts")).backfillTicks(name, options);
    });
};
