#!/usr/bin/env node
/** The `cronfence` command. */
import { Command } from "commander";
import { createTable } from "./table.ts";

const program = new Command("cronfence")
  .description("Scheduled functions that run exactly as intended")
  .showHelpAfterError("(add --help for what is allowed)");

program
  .command("table")
  .description("the control table, which holds every job's lease, watermark and runs")
  .command("create")
  .description("creates the control table, if there is none")
  .option("--table <name>", "its name (default: the environment's CRONFENCE_TABLE, or else cronfence)")
  .option(
    "--endpoint <url>",
    "a DynamoDB endpoint, such as http://127.0.0.1:8000 (default: AWS_ENDPOINT_URL_DYNAMODB, or else AWS)",
  )
  .option("--job <name...>", "makes these jobs known: ticks before now aren't owed")
  .addHelpText("after", "\nExample:\n  npx cronfence table create --table jobs --job expire-carts")
  .action(createTable);

try {
  await program.parseAsync();
} catch (error) {
  console.error(`cronfence: ${(error as Error).message}`);
  process.exitCode = 1;
}
