/**
 * What the platform would refuse of a service, or do otherwise than its definitions say: everything at once, before anything
 * is packaged. A name that is too long is told, not cut: it is what people look for.
 */
import { alarmProblemsOf } from "./alarm-problems.ts";
import { deadLetterQueueName } from "./dead-letters.ts";
import { type DeployedJob, type DeployedService, fullName, jobIds, type ServiceSettings } from "./deployed-service.ts";
import { environmentProblems } from "./environment-problems.ts";
import { functionNamePattern, functionSeconds, reserveSeconds } from "./function-settings.ts";
import { retentionDays } from "./log-group.ts";
import { problemIf } from "./problem-if.ts";
import { flexibleMinutes } from "./schedule.ts";
import { scheduleExpression } from "./schedule-expression.ts";
import { sizeProblems } from "./size-problems.ts";
import { tablesOf } from "./table-access.ts";

/** One sentence for each problem, naming the job or setting, its value and what is allowed; none means that it can be deployed. */
export const deploymentProblems = (service: DeployedService): string[] => {
  const problems = [
    ...settingsProblems(service.settings),
    ...duplicates(service),
    ...service.jobs.flatMap((deployed) =>
      jobProblems(deployed, service).map((problem) => `job "${deployed.job.name}": ${problem}`),
    ),
    ...alarmProblemsOf(service),
  ];
  // Only what is sound can be counted.
  return problems.length > 0 ? problems : sizeProblems(service);
};

/** https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html */
const mostSeconds = 900;
/** https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-flexible-time-windows.html */
const mostFlexibleMinutes = 1_440;

const settingsProblems = (settings: ServiceSettings): string[] => {
  const { controlTable, logRetentionDays, version } = settings;
  const name = fullName(settings);
  const queue = deadLetterQueueName(settings);
  return [
    ...problemIf(
      !/^[A-Za-z0-9_-]{1,64}$/.test(name),
      `service and stage make the name "${name}" (${name.length} characters), of the schedule group and the dashboard, which must be ` +
        "at most 64 letters, digits, - and _",
    ),
    ...problemIf(
      queue.length > 80,
      `service and stage make the name "${queue}" (${queue.length} characters) of the queue for dead letters, which must be at most 80`,
    ),
    ...problemIf(
      !/^[A-Za-z0-9_.-]{3,255}$/.test(controlTable.name),
      `controlTable is "${controlTable.name}", and must be a table's name: 3 to 255 letters, digits, _, - and .`,
    ),
    ...problemIf(
      !retentionDays.includes(logRetentionDays),
      `logRetentionDays is ${logRetentionDays}, and must be one of ${retentionDays.join(", ")}`,
    ),
    ...problemIf(
      !/^[\x21-\x7e]{1,256}$/.test(version),
      `version is "${version}", and must be 1 to 256 printable characters`,
    ),
  ];
};

const duplicates = ({ jobs }: DeployedService): string[] =>
  (
    [
      ["job name", ({ job }) => job.name],
      ["function name", ({ functionName }) => functionName],
      ["function's logical id", ({ functionLogicalId }) => functionLogicalId],
      // Of names that differ only in how they are written for CloudFormation.
      ["logical id", ({ job }) => jobIds(job.name).role],
    ] satisfies [string, (deployed: DeployedJob) => string][]
  ).flatMap(([what, of]) => {
    const seen = new Map<string, DeployedJob[]>();
    for (const deployed of jobs) seen.set(of(deployed), [...(seen.get(of(deployed)) ?? []), deployed]);
    const names = (same: readonly DeployedJob[]) =>
      same.map(({ job, functionName }) => `"${job.name}" (${functionName})`);
    return [...seen]
      .filter(
        ([, same]) => same.length > 1 && (what !== "logical id" || new Set(same.map(({ job }) => job.name)).size > 1),
      )
      .map(
        ([value, same]) =>
          `${same.length} jobs have the ${what} "${value}", and each needs one of its own: ${names(same).join(", ")}`,
      );
  });

const jobProblems = (deployed: DeployedJob, service: DeployedService): string[] => {
  const { job, functionName } = deployed;
  const { settings } = service;
  const expression = job.schedule === undefined ? undefined : scheduleExpression(job.schedule);
  return [
    ...problemIf(
      functionSeconds(job.timeoutMs) > mostSeconds,
      `timeout is ${job.timeoutMs / 1_000} s, and must be at most ${mostSeconds - reserveSeconds} s: a Lambda function runs for at most ` +
        `${mostSeconds} s, and a run needs ${reserveSeconds} s of them to end well`,
    ),
    ...problemIf(
      flexibleMinutes(job) > mostFlexibleMinutes,
      `jitter is ${job.jitterMs / 60_000} minutes, and EventBridge's flexible window has at most ${mostFlexibleMinutes} (24h)`,
    ),
    ...(expression !== undefined && "problem" in expression ? [`schedule ${expression.problem}`] : []),
    ...problemIf(
      !/^[A-Za-z0-9_-]{1,64}$/.test(functionName),
      `its function's name is "${functionName}" (${functionName.length} characters), and must be at most 64 letters, digits, - and _; ` +
        "shorten the service's, the stage's or the job's name",
    ),
    ...problemIf(
      tablesOf(job).includes(settings.controlTable.name),
      `its access or its source names "${settings.controlTable.name}", the control table, which only cronfence reads and writes`,
    ),
    ...environmentProblems(deployed, service),
    ...problemIf(
      job.watches?.heals === true && functionNamePattern(service) === undefined,
      "it heals, and the functions' names have no common pattern by which it could find them: end each with its job's name, " +
        "after the same beginning",
    ),
  ];
};
