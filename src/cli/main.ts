#!/usr/bin/env node
/** The `cronfence` command: a list of commands, each in a file of its own that loads what it needs when it is used. */
import { createRequire } from "node:module";
import { Command } from "commander";
import { addApprove } from "./approve.ts";
import { addCheck } from "./check.ts";
import { addDrop } from "./drop.ts";
import { runProgram } from "./exit.ts";
import { addJobs } from "./jobs.ts";
import { addNext } from "./next.ts";
import { addParked } from "./parked.ts";
import { addRehearse } from "./rehearse.ts";
import { addRelease } from "./release.ts";
import { addRetry } from "./retry.ts";
import { addRun } from "./run.ts";
import { addTable } from "./table.ts";

// Node 20 works; the SDK's own advice to leave it would stand before every answer.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= "true";

const program = new Command("cronfence")
  .description("Scheduled functions that run exactly as intended")
  .version(createRequire(import.meta.url)("cronfence/package.json").version)
  .option("--debug", "shows where an error came from")
  .showHelpAfterError("(add --help for what is allowed)")
  .addHelpText(
    "after",
    "\nExit status: 0 if all is well, 1 for a problem that was found or an error, 2 for wrong usage.",
  );

for (const add of [
  addJobs,
  addNext,
  addCheck,
  addRehearse,
  addRun,
  addParked,
  addRetry,
  addDrop,
  addApprove,
  addRelease,
  addTable,
])
  add(program);

await runProgram(program);
