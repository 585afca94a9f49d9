/** All commands, as `cronfence --help` shows them. Each is in a file of its own, and loads what it needs when it is used. */
import { createRequire } from "node:module";
import { Command } from "commander";
import { addApprove } from "./approve.ts";
import { addBackfill } from "./backfill.ts";
import { addCancel } from "./cancel.ts";
import { addCheck } from "./check.ts";
import { addDrift } from "./drift.ts";
import { addDrop } from "./drop.ts";
import { addInit } from "./init.ts";
import { addJobs } from "./jobs.ts";
import { addLedger } from "./ledger.ts";
import { addMove } from "./move.ts";
import { addNext } from "./next.ts";
import { addParked } from "./parked.ts";
import { addPause } from "./pause.ts";
import { addRehearse } from "./rehearse.ts";
import { addRelease } from "./release.ts";
import { addResume } from "./resume.ts";
import { addRetry } from "./retry.ts";
import { addRewind } from "./rewind.ts";
import { addRun } from "./run.ts";
import { addRuns } from "./runs.ts";
import { addShow } from "./show.ts";
import { addSkip } from "./skip.ts";
import { addStatus } from "./status.ts";
import { addTable } from "./table.ts";
import { addWhy } from "./why.ts";

export const newProgram = (): Command => {
  const program = new Command("cronfence")
    .description("Scheduled functions that run exactly as intended")
    .version(createRequire(import.meta.url)("cronfence/package.json").version)
    .option("--debug", "shows where an error came from")
    .showHelpAfterError("(add --help for what is allowed)")
    .configureOutput({ getOutHelpWidth: widthOf(process.stdout), getErrHelpWidth: widthOf(process.stderr) })
    .addHelpText(
      "after",
      "\nEach command has an example: cronfence status --help" +
        "\nExit status: 0 if all is well, 1 for a problem that was found or an error, 2 for wrong usage, 130 after Ctrl-C.",
    );
  for (const [group, commands] of Object.entries(groups)) {
    program.commandsGroup(group);
    for (const add of commands) add(program);
  }
  return program;
};

/** As somebody looks for them. */
const groups: Readonly<Record<string, readonly ((program: Command) => void)[]>> = {
  "What there is:": [addJobs, addNext, addCheck, addRehearse],
  "How it is doing:": [addStatus, addRuns, addShow, addLedger, addWhy],
  "Running jobs:": [addRun, addPause, addResume, addCancel],
  "Putting things right:": [
    addSkip,
    addBackfill,
    addRewind,
    addMove,
    addParked,
    addRetry,
    addDrop,
    addApprove,
    addRelease,
  ],
  "Setting up:": [addInit, addTable, addDrift],
};

/** As wide as the terminal, and as tables are at most. */
const widthOf =
  ({ columns = 100 }: { readonly columns?: number }) =>
  (): number =>
    Math.min(100, columns);
