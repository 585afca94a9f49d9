/** `cronfence table`. */
import type { Command } from "commander";

export const addTable = (program: Command): void => {
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
    .action(async (options) => (await import("./create-table.ts")).createTable(options));
};
