/** What `cronfence table restored` does. */
import { createInterface } from "node:readline/promises";
import { systemClock } from "../clock.ts";
import { CronfenceError } from "../errors.ts";
import { openStore, patience, type TableOptions } from "./control-table.ts";
import { print } from "./exit.ts";

/** Takes every lease away and raises every fence, once somebody has said that this is meant. */
export const markTableRestored = async (options: TableOptions & { readonly yes?: boolean }): Promise<void> => {
  const store = await openStore(options);
  if (!options.yes) await confirm(store.table);
  const jobs = await store.restored(systemClock.now(), patience());
  for (const job of jobs) print(`job ${job}: its fence is raised, and its lease taken away`);
  print(jobs.length === 0 ? `table ${store.table} has no jobs` : "schedules may be enabled again");
};

const confirm = async (table: string): Promise<void> => {
  if (!process.stdin.isTTY) {
    throw new CronfenceError(
      "NOT_CONFIRMED",
      `every run of table ${table} that is still going would be fenced out; say that this is meant with --yes`,
    );
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question(
    `Every run that is still going is fenced out. Type the table's name (${table}) to go on: `,
  );
  terminal.close();
  if (answer.trim() !== table) throw new CronfenceError("NOT_CONFIRMED", "nothing was changed");
};
