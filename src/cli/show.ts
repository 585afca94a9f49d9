/** `cronfence show`: one run, with all that is on record of it. */
import type { Command } from "commander";
import { systemClock } from "../clock.ts";
import type { RunEntry, RunRecord } from "../control/control-store.ts";
import { CronfenceError } from "../errors.ts";
import { type FoundRun, findRun } from "../operate/run-history.ts";
import { printable } from "../printable.ts";
import { jobsOption, jsonOption } from "./arguments.ts";
import { addTableOptions } from "./control-table.ts";
import { print, printJson } from "./exit.ts";
import { iso } from "./instants.ts";
import { painted } from "./paint.ts";
import { openProject, type ProjectOptions, projectJobs } from "./project.ts";
import { elapsed, goingJson, plural, recordJson } from "./run-words.ts";

interface ShowOptions extends ProjectOptions {
  readonly job?: string;
  readonly json?: boolean;
}

export const addShow = (program: Command): void => {
  addTableOptions(
    program
      .command("show")
      .argument("<run>", "the run's id, or the beginning of it")
      .description("shows one run: its whole record, with watermarks and error, or where it stands while it goes")
      .option("--job <name>", "the job whose run it is (default: it is looked for in all jobs of the project)"),
  )
    .addOption(jobsOption())
    .addOption(jsonOption())
    .addHelpText("after", "\nExample:\n  npx cronfence show 3f2a1b0c --job expire-carts")
    .action(showRun);
};

const showRun = async (id: string, options: ShowOptions): Promise<void> => {
  const { deps } = await openProject(options);
  const names =
    options.job === undefined ? (await projectJobs(options)).jobs.map(({ job }) => job.name) : [options.job];
  const [found, ...others] = await findRun(names, id, deps);
  if (found === undefined) {
    throw new CronfenceError("NO_RUN", `no run of ${names.join(", ") || "any job"} has an id that begins with ${id}`);
  }
  if (others.length > 0) {
    const which = [found, ...others].map((each) => `${idOf(each)} (${each.job})`);
    throw new CronfenceError("NO_RUN", `more than one run has an id that begins with ${id}: ${which.join(", ")}`);
  }
  if (options.json) return printJson(asJson(found));
  print("record" in found ? recordText(found.record) : goingText(found.job, found.going, found.holdsLease));
};

const idOf = (found: FoundRun): string => ("record" in found ? found.record.id : found.going.id);

const asJson = (found: FoundRun) =>
  "record" in found
    ? { state: "ended", job: found.job, run: recordJson(found.record) }
    : { state: found.holdsLease ? "going" : "unfinished", job: found.job, run: goingJson(found.going) };

const recordText = (record: RunRecord): string => {
  const { ticks, skipped = [], error } = record;
  return lines([
    ["run", record.id],
    ["job", record.job],
    ["outcome", record.outcome, painted],
    ["error", error && `${error.name}${error.code === undefined ? "" : ` (${error.code})`}: ${error.message}`],
    ["trigger", `${record.trigger}${record.reason === undefined ? "" : ` (${record.reason})`}`],
    ["started", iso(record.startedAt)],
    ["ended", `${iso(record.endedAt)}, after ${elapsed(record.endedAt - record.startedAt)}`],
    ["ticks", ticks === undefined ? "none" : rangeText(ticks)],
    ...skipped.map(({ reason, ...range }): Line => ["left out", `${rangeText(range)}: ${reason}`]),
    ["completed", record.completed === undefined ? undefined : `through ${iso(record.completed)}`],
    ["done after all", record.backfilled && rangeText(record.backfilled)],
    ["work", `${plural(record.items, "item")} in ${plural(record.commits, "commit")}`],
    ["passed over", record.itemsSkipped === undefined ? undefined : plural(record.itemsSkipped, "item")],
    ["parked", record.itemsParked === undefined ? undefined : plural(record.itemsParked, "item")],
    ["left to do", record.backlog],
    ["watermark", watermarkText(record)],
    ["fence", record.fence === undefined ? undefined : String(record.fence)],
    ["version", record.version],
    ["request", record.requestId],
    ["next tick", record.nextTick === undefined ? undefined : iso(record.nextTick)],
  ]);
};

const goingText = (job: string, run: RunEntry, holdsLease: boolean): string =>
  lines([
    ["run", run.id],
    ["job", job],
    ["outcome", holdsLease ? "none yet: it holds the lease" : "none: it never finished, and the next run records it"],
    ["trigger", run.trigger],
    ["started", `${iso(run.startedAt)}, ${elapsed(systemClock.now() - run.startedAt)} ago`],
    ["tick", run.tick === undefined ? "none" : iso(run.tick)],
    ["work so far", `${plural(run.items ?? 0, "item")} in ${plural(run.seq - (run.seals ?? 0), "commit")}`],
    ["version", run.version],
    ["request", run.requestId],
  ]);

type Line = readonly [name: string, value: string | undefined, paint?: (text: string) => string];

const lines = (all: readonly Line[]): string =>
  all
    .flatMap(([name, value, paint = (text) => text]) =>
      value === undefined ? [] : [`${name.padEnd(14)} ${paint(printable(value))}`],
    )
    .join("\n");

const rangeText = ({ from, through, count }: { from: number; through: number; count: number }): string =>
  count === 1 ? iso(through) : `${count}, from ${iso(from)} through ${iso(through)}`;

const watermarkText = ({ watermarkBefore: before, watermarkAfter: after }: RunRecord): string | undefined => {
  if (before === undefined && after === undefined) return undefined;
  const [was, is] = [before, after].map((mark) => (mark === undefined ? "none" : JSON.stringify(mark)));
  return was === is ? `${is}, not moved` : `from ${was} to ${is}`;
};
