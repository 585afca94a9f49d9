/** `cronfence jobs`: all jobs of a project. */
import type { Command } from "commander";
import { systemClock } from "../clock.ts";
import { durationText } from "../duration.ts";
import { explain } from "../schedule/words.ts";
import { jobsOption, jsonOption } from "./arguments.ts";
import { print, printJson } from "./exit.ts";
import { iso, localTime } from "./instants.ts";
import type { FoundJob } from "./load-jobs.ts";

interface JobsOptions {
  readonly json?: boolean;
  readonly jobs: readonly string[];
}

export const addJobs = (program: Command): void => {
  program
    .command("jobs")
    .description("lists all jobs: when they are due, what they do it with, and when next")
    .addOption(jobsOption())
    .addOption(jsonOption())
    .addHelpText("after", '\nExample:\n  npx cronfence jobs --jobs "src/jobs/**/*.ts"')
    .action(showJobs);
};

const showJobs = async (options: JobsOptions): Promise<void> => {
  const { loadJobs } = await import("./load-jobs.ts");
  const { problemsOf, reportProblems } = await import("./problems.ts");
  const found = await loadJobs(options.jobs);
  reportProblems(found);
  const now = systemClock.now();
  if (options.json) {
    printJson({ jobs: found.jobs.map((each) => asJson(each, now)), problems: problemsOf(found) });
    return;
  }
  if (found.jobs.length === 0) {
    // One that can't be loaded has been reported.
    if (found.problems.length === 0) print(`no job is defined in ${found.globs.join(", ")}`);
    return;
  }
  const { columns } = await import("./columns.ts");
  const headings = ["job", "schedule", "is due", "shape", "timeout", "next tick (UTC)"].map((heading) => ({ heading }));
  print(
    columns(
      headings,
      found.jobs.map((each) => asRow(each, now)),
    ),
  );
};

const asJson = ({ file, job }: FoundJob, now: number) => {
  const { schedule } = job;
  const next = schedule?.next(now);
  return {
    name: job.name,
    file,
    schedule: schedule?.source ?? null,
    zone: schedule?.zone ?? null,
    words: schedule === undefined ? null : explain(schedule),
    shape: job.work.shape,
    timeoutMs: job.timeoutMs,
    jitterMs: job.jitterMs,
    dryRun: job.dryRun,
    nextTick: next === undefined ? null : iso(next),
  };
};

const asRow = ({ job }: FoundJob, now: number): string[] => {
  const { schedule } = job;
  const next = schedule?.next(now);
  return [
    job.name,
    schedule?.source ?? "",
    schedule === undefined ? "when somebody starts it" : explain(schedule),
    job.work.shape,
    durationText(job.timeoutMs),
    next === undefined ? "" : localTime(next, "UTC"),
  ];
};
