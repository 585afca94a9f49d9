/** `cronfence check`: everything that is wrong, or seldom meant, in all jobs of a project. */
import type { Command } from "commander";
import { alarmCost } from "../alarms/cost.ts";
import { staleZone } from "../schedule/stale-zones.ts";
import { jobsOption, jsonOption } from "./arguments.ts";
import { print, printJson, trace } from "./exit.ts";
import type { FoundJob, FoundJobs } from "./load-jobs.ts";

interface CheckOptions {
  readonly json?: boolean;
  readonly jobs: readonly string[];
}

interface Finding {
  readonly severity: "error" | "warning";
  readonly file: string;
  /** The job's name; null where the file's jobs can't be loaded. */
  readonly job: string | null;
  readonly message: string;
}

export const addCheck = (program: Command): void => {
  program
    .command("check")
    .description("finds what is wrong with jobs: errors (exit status 1) and warnings (exit status 0)")
    .addOption(jobsOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      "\nErrors: a file that can't be loaded, a definition that is refused, a name that is used twice." +
        "\nThe numbers of metrics and alarms are what CloudWatch bills for where the watchdog and its alarms are deployed." +
        "\nWarnings: what is allowed and seldom meant, and zones whose rules this runtime has wrong." +
        "\n\nExample:\n  npx cronfence check --json",
    )
    .action(check);
};

const check = async (options: CheckOptions): Promise<void> => {
  const { loadJobs } = await import("./load-jobs.ts");
  const found = await loadJobs(options.jobs);
  for (const { error } of found.problems) trace(error);
  const findings = findingsIn(found);
  const errors = findings.filter(({ severity }) => severity === "error").length;
  const costs = found.jobs.map(({ job }) => ({ job: job.name, ...alarmCost(job) }));
  const counts = { jobs: found.jobs.length, errors, warnings: findings.length - errors };
  if (errors > 0) process.exitCode = 1;
  if (options.json) return printJson({ ...counts, findings, costs });
  if (findings.length > 0) {
    const { columns } = await import("./columns.ts");
    const headings = [{ heading: "", most: 7 }, { heading: "where", most: 36 }, { heading: "what" }];
    print(
      `${columns(
        headings,
        findings.map(({ severity, file, job, message }) => [severity, where(file, job), message]),
      )}\n`,
    );
  }
  for (const { job, metrics, occasional, alarms } of costs) {
    print(
      `${job}: ${plural(metrics.length, "custom metric")} (and ${occasional.length} only when they happen), ${plural(alarms.length, "alarm")}`,
    );
  }
  print(`${plural(counts.jobs, "job")}, ${plural(errors, "error")}, ${plural(counts.warnings, "warning")}`);
};

const findingsIn = (found: FoundJobs): Finding[] => {
  const errors = found.problems.flatMap(({ file, messages }) =>
    messages.map((message): Finding => ({ severity: "error", file, job: null, message })),
  );
  if (found.jobs.length === 0 && errors.length === 0) {
    const message = "no job is defined there";
    return [{ severity: "error", file: found.globs.join(", "), job: null, message }];
  }
  return [...errors, ...found.jobs.flatMap(warningsOf)];
};

const warningsOf = ({ file, job }: FoundJob): Finding[] => {
  const stale = job.schedule && staleZone(job.schedule.zone);
  return [...job.warnings, ...(stale === undefined ? [] : [stale])].map((message) => ({
    severity: "warning",
    file,
    job: job.name,
    message,
  }));
};

const where = (file: string, job: string | null): string => (job === null ? file : `${job}\n${file}`);

const plural = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;
