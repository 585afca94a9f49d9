/** `cronfence parked`: the items of a job that were set aside. */
import type { Command } from "commander";
import type { ParkedItem } from "../control/control-store.ts";
import type { DynamoStore } from "../control/dynamo-store.ts";
import { printable } from "../printable.ts";
import { jsonOption, wholeNumber } from "./arguments.ts";
import { addTableOptions, openStore, patience, type TableOptions } from "./control-table.ts";
import { print, printJson } from "./exit.ts";
import { iso, localTime } from "./instants.ts";
import { knownState } from "./known-job.ts";

interface ParkedOptions extends TableOptions {
  readonly json?: boolean;
  readonly limit: number;
}

export const addParked = (program: Command): void => {
  addTableOptions(
    program
      .command("parked")
      .argument("<job>", "the job's name")
      .description("lists the items of a job that were set aside after repeated failure, with their errors")
      .option("--limit <n>", "at most so many", wholeNumber(1, 100_000), 100),
  )
    .addOption(jsonOption())
    .addHelpText("after", "\nExample:\n  npx cronfence parked expire-carts --table jobs")
    .action(showParked);
};

const showParked = async (job: string, options: ParkedOptions): Promise<void> => {
  const store = await openStore(options);
  const { items, more } = await readUpTo(store, job, options.limit);
  if (items.length === 0) await knownState(store, job);
  if (options.json) return printJson({ job, items: items.map(asJson), more });
  if (items.length === 0) return print(`no item of ${job} is parked`);
  const { columns } = await import("./columns.ts");
  const headings = ["key", "parked (UTC)", "tries", "error"].map((heading) => ({ heading }));
  print(columns(headings, items.map(asRow)));
  if (more) print(`and more: see them with --limit ${options.limit * 10}`);
};

const readUpTo = async (store: DynamoStore, job: string, limit: number) => {
  const items: ParkedItem[] = [];
  let after: string | undefined;
  do {
    const page = await store.parked(
      job,
      { limit: Math.min(100, limit - items.length), ...(after === undefined ? {} : { after }) },
      patience(),
    );
    items.push(...page.items);
    after = page.next;
  } while (after !== undefined && items.length < limit);
  // A page that ends where the items do may still name a next one.
  const more = after !== undefined && (await store.parked(job, { limit: 1, after }, patience())).items.length > 0;
  return { items, more };
};

const asJson = ({ at, ...item }: ParkedItem) => ({ ...item, at: iso(at) });

const asRow = ({ key, at, attempts, error }: ParkedItem): string[] => [
  printable(key),
  localTime(Math.floor(at / 60_000) * 60_000, "UTC"),
  String(attempts),
  printable(error.message || error.name),
];
