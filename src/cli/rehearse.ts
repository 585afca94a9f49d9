/** `cronfence rehearse`: a job's own code over simulated time, on a local DynamoDB. */
import type { Command } from "commander";
import { durationText } from "../duration.ts";
import { InvalidOptionsError } from "../errors.ts";
import type { LeftOut } from "../rehearse/account.ts";
import type { Rehearsal } from "../rehearse/rehearse.ts";
import { instant, jobsOption, jsonOption, share, span, wholeNumber } from "./arguments.ts";
import { print, printJson } from "./exit.ts";
import { iso, localTime } from "./instants.ts";

interface RehearseOptions {
  readonly from: number;
  readonly to: number;
  readonly outage?: readonly { readonly from: number; readonly to: number }[];
  readonly seed: number;
  readonly duplicates: number;
  readonly json?: boolean;
  readonly log?: boolean;
  readonly alarms?: boolean;
  readonly missed?: readonly number[];
  readonly jobs: readonly string[];
}

export const addRehearse = (program: Command): void => {
  program
    .command("rehearse")
    .description("runs a job's own code over simulated time, and accounts for every tick")
    .argument("<job>", "the job's name")
    .requiredOption("--from <instant>", "where to begin, a date or an instant", instant)
    .requiredOption("--to <instant>", "where to end; not included", instant)
    .option("--outage <from..to>", "when nothing is delivered; may be given several times", span)
    .option("--seed <n>", "decides which ticks come twice and how late they come", wholeNumber(0, 2 ** 32 - 1), 1)
    .option("--duplicates <share>", "how many ticks are delivered twice", share, 0.05)
    .option("--log", "prints what the runs log, to standard error")
    .option("--alarms", "says instead when you would be paged: nothing is run, the job's alarms are replayed")
    .option("--missed <tick>", "with --alarms: a tick that nobody delivers; may be given several times", instants)
    .addOption(jobsOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      "\nTicks are delivered as EventBridge Scheduler would deliver them: late by the job's jitter, some twice, none at a time that" +
        "\nthe clocks skip, and again after a run that fails. DynamoDB is a local one, with the tables that the module's export" +
        "\n`local` names. Nothing else is simulated: whatever else the job calls is called, without your AWS credentials." +
        "\n\nExample:\n  npx cronfence rehearse daily-report --from 2026-01-01 --to 2027-01-01 --outage 2026-08-01..2026-08-03" +
        "\n  npx cronfence rehearse daily-report --from 2026-01-01 --to 2026-02-01 --alarms --missed 2026-01-15T05:30Z",
    )
    .action((name: string, options: RehearseOptions) =>
      options.alarms ? showAlarms(name, options) : showRehearsal(name, options),
    );
};

/** One more of an option that may be given several times. */
const instants = (text: string, earlier: readonly number[] = []): readonly number[] => [...earlier, instant(text)];

const showAlarms = async (name: string, options: RehearseOptions): Promise<void> => {
  const [{ loadJobs, pickJob }, { reportProblems }, { rehearsalText, rehearseAlarms }] = await Promise.all([
    import("./load-jobs.ts"),
    import("./problems.ts"),
    import("../alarms/rehearsal.ts"),
  ]);
  const found = await loadJobs(options.jobs);
  reportProblems(found);
  const { from, to, seed, missed = [], outage: outages = [] } = options;
  const rehearsal = rehearseAlarms([pickJob(found, name).job], { from, to, seed, missed, outages });
  if (options.json) printJson(rehearsal);
  else print(rehearsalText(rehearsal));
};

const showRehearsal = async (name: string, options: RehearseOptions): Promise<void> => {
  if (options.missed !== undefined) {
    throw new InvalidOptionsError("rehearse", [
      "--missed is for --alarms; a tick that isn't delivered here is an --outage",
    ]);
  }
  const [{ loadJobs, pickJob }, { reportProblems }, { startEngine }, { rehearse }] = await Promise.all([
    import("./load-jobs.ts"),
    import("./problems.ts"),
    import("../local/engine.ts"),
    import("../rehearse/rehearse.ts"),
  ]);
  const engine = await startEngine();
  try {
    // Before the jobs are loaded, so that clients of their own talk to it, too.
    useOnly(engine.endpoint);
    const found = await loadJobs(options.jobs);
    reportProblems(found);
    const { job, local } = pickJob(found, name);
    const rehearsal = await rehearse({
      job,
      ...(local === undefined ? {} : { local }),
      from: options.from,
      to: options.to,
      outages: options.outage ?? [],
      seed: options.seed,
      duplicates: options.duplicates,
      endpoint: engine.endpoint,
      onProgress,
      ...(options.log ? { log: await logToStderr() } : {}),
    });
    if (!rehearsal.ok) process.exitCode = 1;
    clearProgress();
    if (options.json) printJson(asJson(rehearsal));
    else print(await asText(rehearsal, job.schedule?.zone ?? "UTC", local === undefined));
  } finally {
    await engine.stop();
  }
};

/** A rehearsal reaches nothing real: neither DynamoDB nor, with these credentials, anything else of AWS. */
const useOnly = (endpoint: string): void => {
  const { env } = process;
  for (const name of ["AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"]) delete env[name];
  Object.assign(env, {
    AWS_ENDPOINT_URL_DYNAMODB: endpoint,
    AWS_REGION: "local",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
  });
};

const logToStderr = async () => {
  const [{ plainLog }, { systemClock }] = await Promise.all([import("../local/plain-log.ts"), import("../clock.ts")]);
  return plainLog({ print: (line) => process.stderr.write(`${line}\n`), now: systemClock.now });
};

let lastShown = 0;
/** On a terminal, and not more often than anybody can read. */
const onProgress = (done: number, all: number): void => {
  if (!process.stderr.isTTY || performance.now() - lastShown < 200) return;
  lastShown = performance.now();
  process.stderr.write(`\r${done} of ${all} deliveries`);
};
const clearProgress = (): void => {
  if (lastShown > 0) process.stderr.write("\r\u001b[K");
};

const asJson = ({ from, to, leftOut, errors, ...rest }: Rehearsal) => ({
  ...rest,
  from: iso(from),
  to: iso(to),
  leftOut: leftOut.map((each) => ({ ...each, first: iso(each.first), last: iso(each.last) })),
  errors: errors.map((each) => ({ ...each, firstTick: iso(each.firstTick) })),
});

const asText = async (rehearsal: Rehearsal, zone: string, withoutTables: boolean): Promise<string> => {
  const { columns } = await import("./columns.ts");
  const { ticks, leftOut, errors, deliveries } = rehearsal;
  const skipped = Object.values(ticks.skipped).reduce((sum, count) => sum + count, 0);
  const all = count(ticks.all, "tick", "ticks");
  const counts = columns(
    ["ticks", ""].map((heading) => ({ heading })),
    [
      [String(ticks.done), "done"],
      [String(ticks.doubled), "doubled (must be 0)"],
      [String(skipped), "left out for good"],
      [String(ticks.owed), "still owed at the end"],
      ...(ticks.unaccounted === 0 ? [] : [[String(ticks.unaccounted), "without any record (must be 0)"]]),
    ],
  );
  const away = columns(
    ["ticks", "not done by a run of their own, because", "what became of them", `first (${zone})`, "last"].map(
      (heading) => ({ heading }),
    ),
    leftOut.map((each) => [
      String(each.count),
      reasons[each.why],
      each.reason === undefined ? became[each.became] : `left out: ${each.reason}`,
      localTime(each.first, zone),
      each.count === 1 ? "" : localTime(each.last, zone),
    ]),
  );
  return [
    `${rehearsal.job} from ${iso(rehearsal.from)} to ${iso(rehearsal.to)}, seed ${rehearsal.seed}: ${all}`,
    "",
    counts,
    ...(leftOut.length === 0 ? [] : ["", away]),
    "",
    `deliveries: ${deliveries.all}, of them ${deliveries.duplicates} second ones and ${deliveries.retries} tries after a failure`,
    `runs: ${tallied(rehearsal.runs)}`,
    ...(Object.keys(rehearsal.attempts).length === 0 ? [] : [`no run: ${tallied(rehearsal.attempts)}`]),
    ...errors
      .slice(0, mostErrors)
      .map(
        ({ message, count: times, firstTick }) =>
          `failed ${count(times, "time", "times")}, first for tick ${iso(firstTick)}: ${message}`,
      ),
    ...(errors.length > mostErrors ? [`and ${errors.length - mostErrors} other errors (--json has them all)`] : []),
    ...(errors.length > 0 && withoutTables
      ? ["(the job's module exports no `local`, so there was no table beside the control table)"]
      : []),
    "",
    `took ${durationText(Math.round(rehearsal.wallMs / 100) * 100)}`,
  ].join("\n");
};

const mostErrors = 5;

const reasons: Record<LeftOut["why"], string> = {
  "before the start": "they were due before the start (startAt)",
  "clock change": "EventBridge doesn't deliver them: clocks change",
  outage: "nothing was delivered in the outage",
  "not done by its own run": "their own run failed, or stopped before them",
  "the job's definition": "the job says so",
};

const became: Record<LeftOut["became"], string> = {
  "done by a later run": "done by a later run",
  skipped: "left out",
  owed: "still owed",
  doubled: "done twice",
  unaccounted: "no record says",
};

const count = (value: number, one: string, many: string): string => `${value} ${value === 1 ? one : many}`;

const tallied = (counts: Readonly<Partial<Record<string, number>>>): string =>
  Object.entries(counts)
    .sort(([, one = 0], [, other = 0]) => other - one)
    .map(([name, value]) => `${value} ${name}`)
    .join(", ") || "none";
