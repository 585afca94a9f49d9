/** `cronfence run`: starts a run of a job, in its own function or in this process, and follows it. */
import { type Command, Option } from "commander";
import { systemClock } from "../clock.ts";
import { duration, instant, jobsOption, jsonOption } from "./arguments.ts";
import { addTableOptions } from "./control-table.ts";
import { addFunctionOptions, refuseLocalThere } from "./function-name.ts";
import { byOption } from "./operator.ts";
import type { RunOptions } from "./run-options.ts";

export const addRun = (program: Command): void => {
  const command = program
    .command("run")
    .argument("<job>", "the job's name")
    .description("starts a run now, in the job's function or in this process, and follows it to its end")
    .option("--tick <instant>", "does what is due through this tick (default: a run that covers no tick)", instant)
    .option("--dry-run", "does everything but write: no lease, no record")
    .option("--wait", "follows the run until it has ended")
    .option("--wait-for <version>", "waits until the function answers as this version, and lets no other run it")
    .addOption(
      new Option("--here", "runs in this process and with its credentials").conflicts([
        "waitFor",
        "function",
        "stage",
        "timeout",
      ]),
    )
    .option("--timeout <duration>", "how long to wait for the version, and for the run (default: 20m each)", duration);
  addTableOptions(addFunctionOptions(command))
    .option("--why <reason>", "why; the run's record has it")
    .addOption(byOption())
    .addOption(jobsOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      "\nA run in the job's function is started once, however slow it is, and whatever becomes of the acknowledgement. Without" +
        "\n--wait its request id is printed, which the run's record has too. Nothing is started where that would come to nothing:" +
        "\nthe job is paused, the tick is done, or another run holds the lease. With --local and --here, tables that are missing" +
        "\nin the file are made, the job's own (its module's export `local`), too." +
        "\n\nExit status: 0 where the run succeeded, was capped or is a dry run, or was started without --wait; 1 for all else." +
        '\n\nExamples:\n  npx cronfence run expire-carts --wait --why "after the outage"' +
        "\n  npx cronfence run expire-carts --wait-for v42 --dry-run" +
        "\n  npx cronfence run expire-carts --here --local .cronfence/dynamodb.db",
    )
    .action(async (job: string, options: RunOptions) => {
      refuseLocalThere(options, command);
      if (options.timeout !== undefined && !options.wait && options.waitFor === undefined && !options.dryRun) {
        command.error("error: --timeout is for what is waited for: say --wait, --wait-for or --dry-run, too");
      }
      if (options.here) await (await import("./run-here.ts")).runHere(job, options);
      else await (await import("./run-there.ts")).runThere(job, options, systemClock);
    });
};
