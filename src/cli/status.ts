/** `cronfence status`: how all jobs of a project are doing. */
import type { Command } from "commander";
import { systemClock } from "../clock.ts";
import { type JobStatus, jobStatuses } from "../operate/statuses.ts";
import { printable } from "../printable.ts";
import { jobsOption, jsonOption } from "./arguments.ts";
import { addTableOptions } from "./control-table.ts";
import { print, printJson } from "./exit.ts";
import { iso, localTime } from "./instants.ts";
import { paint } from "./paint.ts";
import { openProject, type ProjectOptions, projectJobs } from "./project.ts";
import { elapsed, goingJson, plural } from "./run-words.ts";

interface StatusOptions extends ProjectOptions {
  readonly json?: boolean;
}

export const addStatus = (program: Command): void => {
  addTableOptions(
    program
      .command("status")
      .argument("[job...]", "only these jobs")
      .description("shows how all jobs are doing: last success, what is overdue, failures, and what is going on"),
  )
    .addOption(jobsOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      "\nExit status: 1 where a job is overdue, has failed since its last success, or a run of it seems to hang or to have died." +
        "\n\nExamples:\n  npx cronfence status --table jobs\n  npx cronfence status expire-carts --json",
    )
    .action(showStatus);
};

const showStatus = async (names: readonly string[], options: StatusOptions): Promise<void> => {
  const { deps } = await openProject(options);
  const { pickJob } = await import("./load-jobs.ts");
  const found = await projectJobs(options);
  const jobs = names.length === 0 ? found.jobs.map(({ job }) => job) : names.map((name) => pickJob(found, name).job);
  const statuses = await jobStatuses(jobs, deps);
  const now = systemClock.now();
  if (statuses.some((status) => problemsOf(status, now).length > 0)) process.exitCode = 1;
  if (options.json) return printJson({ at: iso(now), jobs: statuses.map((status) => asJson(status, now)) });
  if (statuses.length === 0) {
    // One that can't be loaded has been reported.
    if (found.problems.length === 0) print(`no job is defined in ${found.globs.join(", ")}`);
    return;
  }
  const { columns } = await import("./columns.ts");
  const headings = ["job", "last success (UTC)", "next tick (UTC)", "now"].map((heading) => ({ heading }));
  print(
    columns(
      headings,
      statuses.map((status) => asRow(status, now)),
    ),
  );
};

/** What somebody should look at, the worst first. */
const problemsOf = (status: JobStatus, now: number): string[] => {
  const { problem, overdueMs, overdueTick, failures, judgement } = status;
  if (problem !== undefined) return [problem];
  const suspects = judgement?.suspects ?? [];
  return [
    ...(overdueMs > 0
      ? [`overdue for ${elapsed(overdueMs)}${overdueTick === undefined ? "" : ` (tick ${minute(overdueTick)})`}`]
      : []),
    ...(failures > 0 ? [`${plural(failures, "failure")} in a row`] : []),
    ...suspects.map(({ run, kind, startedAt }) =>
      kind === "hung"
        ? `run ${short(run)} seems to hang, for ${elapsed(now - startedAt)}`
        : `run ${short(run)} seems to have died (started ${minute(startedAt)})`,
    ),
  ];
};

/** What is going on, and isn't a problem. */
const remarksOf = (status: JobStatus, now: number): string[] => {
  const { running, paused, movedTo, state, judgement } = status;
  const expected = judgement?.suspects.some(({ run }) => run === running?.id) ? undefined : running;
  return [
    ...(movedTo === undefined ? [] : [`moved to ${movedTo}`]),
    ...(expected === undefined ? [] : [`running for ${elapsed(now - expected.startedAt)} (run ${short(expected.id)})`]),
    ...(paused === undefined
      ? []
      : [
          `paused${paused.until === undefined ? "" : ` until ${minute(paused.until)}`} by ${printable(`${paused.by}: ${paused.why}`)}`,
        ]),
    ...(state === undefined && status.problem === undefined ? ["has never run"] : []),
  ];
};

const asRow = (status: JobStatus, now: number): string[] => {
  const problems = problemsOf(status, now);
  const remarks = remarksOf(status, now);
  const all = [...problems.map((text) => paint("red", text)), ...remarks.map((text) => paint("yellow", text))];
  return [
    status.job,
    status.lastSuccessAt === undefined ? "never" : minute(status.lastSuccessAt),
    status.nextTick === undefined ? "none" : minute(status.nextTick),
    all.length === 0 ? paint("green", "ok") : all.join("\n"),
  ];
};

const short = (id: string): string => id.slice(0, 8);
const minute = (instant: number): string => localTime(Math.floor(instant / 60_000) * 60_000, "UTC");

const asJson = (status: JobStatus, now: number) => ({
  job: status.job,
  ok: problemsOf(status, now).length === 0,
  problems: problemsOf(status, now),
  remarks: remarksOf(status, now),
  lastSuccess: isoOrNull(status.lastSuccessAt),
  lastTick: isoOrNull(status.lastTick),
  nextTick: isoOrNull(status.nextTick),
  overdueMs: status.overdueMs,
  overdueTick: isoOrNull(status.overdueTick),
  failures: status.failures,
  fence: status.state?.fence ?? null,
  running:
    status.running === undefined
      ? null
      : {
          ...goingJson(status.running),
          leaseUntil: iso(status.running.leaseUntil),
          expired: status.running.expired,
        },
  paused:
    status.paused === undefined
      ? null
      : {
          by: status.paused.by,
          why: status.paused.why,
          at: iso(status.paused.at),
          until: isoOrNull(status.paused.until),
        },
  movedTo: status.movedTo ?? null,
  suspects: (status.judgement?.suspects ?? []).map(({ run, kind, startedAt }) => ({
    run,
    kind,
    startedAt: iso(startedAt),
  })),
});

const isoOrNull = (instant: number | undefined): string | null => (instant === undefined ? null : iso(instant));
