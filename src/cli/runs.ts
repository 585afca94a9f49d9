/** `cronfence runs`: a job's runs, newest first, as many as are asked for. */
import { type Command, Option } from "commander";
import type { RunRecord } from "../control/control-store.ts";
import { listRuns } from "../operate/run-history.ts";
import type { RunOutcome } from "../outcome.ts";
import { printable } from "../printable.ts";
import { instant, jobsOption, jsonOption, wholeNumber } from "./arguments.ts";
import { addTableOptions } from "./control-table.ts";
import { print } from "./exit.ts";
import { localTime } from "./instants.ts";
import { knownState } from "./known-job.ts";
import { painted } from "./paint.ts";
import { openProject, type ProjectOptions } from "./project.ts";
import { elapsed, recordJson } from "./run-words.ts";
import { pagesOf, write, writeJson } from "./stream.ts";

interface RunsOptions extends ProjectOptions {
  readonly limit: number;
  readonly all?: boolean;
  readonly before?: number;
  readonly outcome?: RunOutcome[];
  readonly json?: boolean;
}

const outcomes: readonly RunOutcome[] = [
  "succeeded",
  "capped",
  "failed",
  "timed_out",
  "lease_lost",
  "interrupted",
  "cancelled",
  "crashed",
  "guard_tripped",
  "dry_run",
];

export const addRuns = (program: Command): void => {
  addTableOptions(
    program
      .command("runs")
      .argument("<job>", "the job's name")
      .description("lists a job's runs, newest first: when, how they ended, what they did")
      .option("--limit <n>", "at most so many", wholeNumber(1, 10_000_000), 20)
      .addOption(new Option("--all", "all that are on record (about a year's)").conflicts("limit"))
      .option("--before <instant>", "only runs that started before it", instant)
      .addOption(new Option("--outcome <outcome...>", "only runs that ended so").choices(outcomes)),
  )
    .addOption(jobsOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      "\nExamples:\n  npx cronfence runs expire-carts --outcome failed crashed\n  npx cronfence runs expire-carts --all --json",
    )
    .action(showRuns);
};

const showRuns = async (job: string, options: RunsOptions): Promise<void> => {
  const { store, deps } = await openProject(options);
  await knownState(store, job, options.jobs);
  const { limit, before, outcome } = options;
  const filter = {
    ...(options.all ? {} : { limit }),
    ...(before === undefined ? {} : { before }),
    ...(outcome === undefined ? {} : { outcome }),
  };
  if (options.json) return writeJson({ job }, "runs", jsonOf(listRuns(job, filter, deps)), () => ({}));
  const { columns } = await import("./columns.ts");
  let count = 0;
  for await (const page of pagesOf(listRuns(job, filter, deps), pageRows)) {
    await write(`${columns(headings, page.map(asRow))}\n`);
    count += page.length;
  }
  if (count === 0) print(`no run of ${job} is on record${outcome === undefined ? "" : ` as ${outcome.join(" or ")}`}`);
};

/** The headings come again after so many, as fits a screen or two. */
const pageRows = 100;

const headings = ["started (UTC)", "run", "outcome", "took", "ticks", "items", "version", "error"].map((heading) => ({
  heading,
}));

async function* jsonOf(runs: AsyncIterable<RunRecord>): AsyncGenerator<unknown> {
  for await (const run of runs) yield recordJson(run);
}

const asRow = (record: RunRecord): string[] => [
  localTime(Math.floor(record.startedAt / 1_000) * 1_000, "UTC"),
  record.id.slice(0, 8),
  painted(record.outcome),
  elapsed(record.endedAt - record.startedAt),
  record.ticks === undefined ? "none" : String(record.ticks.count),
  String(record.items),
  printable(record.version ?? ""),
  record.error === undefined ? "" : cut(record.error.message || record.error.name),
];

/** The whole of it is in `show`. */
const cut = (message: string): string => {
  const [line = ""] = message.split("\n");
  return printable(line.length > 80 ? `${line.slice(0, 79)}…` : line);
};
