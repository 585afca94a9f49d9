/** `cronfence ledger`: every tick of a job, and what became of it. */
import { type Command, Option } from "commander";
import { systemClock } from "../clock.ts";
import { type LedgerCounts, type LedgerEntry, type TickState, tickStates } from "../ledger/entry.ts";
import { readLedger } from "../operate/ledger.ts";
import { printable } from "../printable.ts";
import { instant, jobsOption, jsonOption } from "./arguments.ts";
import { addTableOptions } from "./control-table.ts";
import { print } from "./exit.ts";
import { iso, localTime } from "./instants.ts";
import { painted } from "./paint.ts";
import { openProject, type ProjectOptions, projectJob } from "./project.ts";
import { pagesOf, write, writeJson } from "./stream.ts";

interface LedgerOptions extends ProjectOptions {
  readonly from?: number;
  readonly to?: number;
  readonly state?: TickState[];
  readonly json?: boolean;
}

export const addLedger = (program: Command): void => {
  addTableOptions(
    program
      .command("ledger")
      .argument("<job>", "the job's name")
      .description("lists every tick of a job with its one state, and counts them")
      .option("--from <instant>", "where to begin, a date or an instant (default: a day before --to)", instant)
      .option("--to <instant>", "where to end, included (default: now)", instant)
      .addOption(
        new Option("--state <state...>", "shows only ticks in these states; all are counted").choices(tickStates),
      ),
  )
    .addOption(jobsOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      "\nNeighbours of one state and cause are shown in one line. Exit status: 1 where a tick failed, was missed or was done twice." +
        "\n\nExamples:\n  npx cronfence ledger expire-carts --from 2026-03-01 --to 2026-03-08" +
        "\n  npx cronfence ledger expire-carts --from 2026-01-01 --state missed failed --json",
    )
    .action(showLedger);
};

const dayMs = 86_400_000;

const showLedger = async (name: string, options: LedgerOptions): Promise<void> => {
  const { deps } = await openProject(options);
  const job = await projectJob(name, options);
  const to = options.to ?? systemClock.now();
  const from = options.from ?? to - dayMs;
  const ledger = readLedger(job, { from, to }, deps);
  const shown = only(ledger, options.state);
  if (options.json) {
    await writeJson({ job: name, from: iso(from), to: iso(to) }, "ticks", jsonOf(shown), () => ({
      counts: ledger.counts,
    }));
  } else await writeText(name, shown, job.schedule?.zone ?? "UTC", () => ledger.counts);
  const { failed, missed, doubled } = ledger.counts;
  if (failed + missed + doubled > 0) process.exitCode = 1;
};

async function* only(ledger: AsyncIterable<LedgerEntry>, states: readonly TickState[] | undefined) {
  for await (const entry of ledger) if (states === undefined || states.includes(entry.state)) yield entry;
}

async function* jsonOf(entries: AsyncIterable<LedgerEntry>): AsyncGenerator<unknown> {
  for await (const { tick, lateFrom, ...entry } of entries) {
    yield { tick: iso(tick), ...entry, ...(lateFrom === undefined ? {} : { lateFrom: iso(lateFrom) }) };
  }
}

/** Neighbours that have all but their instants in common. */
interface Row {
  readonly first: LedgerEntry;
  readonly last: LedgerEntry;
  readonly count: number;
}

async function* rowsOf(entries: AsyncIterable<LedgerEntry>): AsyncGenerator<Row> {
  let row: Row | undefined;
  for await (const entry of entries) {
    if (row !== undefined && causeOf(row.last) === causeOf(entry)) {
      row = { first: row.first, last: entry, count: row.count + 1 };
      continue;
    }
    if (row !== undefined) yield row;
    row = { first: entry, last: entry, count: 1 };
  }
  if (row !== undefined) yield row;
}

const causeOf = ({ tick, lateFrom, ...cause }: LedgerEntry): string => JSON.stringify(cause);

const writeText = async (
  name: string,
  entries: AsyncIterable<LedgerEntry>,
  zone: string,
  counts: () => LedgerCounts,
): Promise<void> => {
  const { columns } = await import("./columns.ts");
  const headings = [`tick (${zone})`, "last", "ticks", "state", "run", "because"].map((heading) => ({ heading }));
  for await (const page of pagesOf(rowsOf(entries), pageRows)) {
    await write(
      `${columns(
        headings,
        page.map((row) => asRow(row, zone)),
      )}\n`,
    );
  }
  const { all, ...states } = counts();
  const tally = Object.entries(states).filter(([, count]) => count > 0);
  print(
    `${all === 0 ? "" : "\n"}${all} ticks of ${name}${tally.length === 0 ? "" : ": "}${tally.map(([state, count]) => `${count} ${state}`).join(", ")}`,
  );
};

const pageRows = 100;

const asRow = ({ first, last, count }: Row, zone: string): string[] => [
  localTime(first.tick, zone),
  count === 1 ? "" : localTime(last.tick, zone),
  count === 1 ? "" : String(count),
  painted(first.state),
  first.run?.slice(0, 8) ?? "",
  because(first),
];

const because = ({ state, outcome, reason, by, why, offSchedule }: LedgerEntry): string =>
  [
    ...(outcome === undefined ? [] : [outcome]),
    ...(reason === undefined ? [] : [state === "skipped" && reason === "operator" ? "an operator" : reason]),
    ...(by === undefined ? [] : [`${by}${why === undefined ? "" : `: ${why}`}`]),
    ...(offSchedule ? ["not of today's schedule"] : []),
  ]
    .map(printable)
    .join(", ");
