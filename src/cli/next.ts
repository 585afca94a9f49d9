/** `cronfence next`: when a job is due, as people in its zone see it. */
import type { Command } from "commander";
import { systemClock } from "../clock.ts";
import { durationText } from "../duration.ts";
import { CronfenceError } from "../errors.ts";
import type { Job } from "../job.ts";
import type { Schedule, ScheduleWithCalendar } from "../schedule/index.ts";
import { jitterOf } from "../schedule/jitter.ts";
import { remarkOn } from "../schedule/remarks.ts";
import { explain } from "../schedule/words.ts";
import { instant, jobsOption, jsonOption, wholeNumber, zone } from "./arguments.ts";
import { print, printJson } from "./exit.ts";
import { iso, localIso, localTime } from "./instants.ts";

interface NextOptions {
  readonly from?: number;
  readonly count: number;
  readonly zone?: string;
  readonly json?: boolean;
  readonly jobs: readonly string[];
}

export const addNext = (program: Command): void => {
  program
    .command("next")
    .description("shows when a job is due next, in its own zone and in UTC, with remarks on clock changes")
    .argument("<job>", "the job's name")
    .option("--from <instant>", "where to begin, a date or an instant (default: now)", instant)
    .option("--count <n>", "how many ticks", wholeNumber(1, 1_000), 10)
    .option("--zone <zone>", "shows the times in this zone, too", zone)
    .addOption(jobsOption())
    .addOption(jsonOption())
    .addHelpText("after", "\nExample:\n  npx cronfence next daily-report --from 2026-03-28 --count 3")
    .action(showNext);
};

const showNext = async (name: string, options: NextOptions): Promise<void> => {
  const { loadJobs, pickJob } = await import("./load-jobs.ts");
  const { reportProblems } = await import("./problems.ts");
  const found = await loadJobs(options.jobs);
  reportProblems(found);
  const { job } = pickJob(found, name);
  const { schedule } = job;
  if (schedule === undefined) {
    throw new CronfenceError("NO_SCHEDULE", `job "${name}" has no schedule; it runs only when somebody starts it`);
  }
  const coming = comingTicks(schedule, options.from ?? systemClock.now(), options.count);
  if (options.json) printJson(asJson(job, schedule, coming, options.zone));
  else print(await asText(job, schedule, coming, options.zone));
};

interface Coming {
  readonly ticks: readonly number[];
  /** What a calendar takes away before the last of them; neighbours with one reason together. */
  readonly removed: readonly Removed[];
}

interface Removed {
  readonly from: number;
  readonly through: number;
  readonly count: number;
  readonly reason: string;
}

/** The first `count` ticks at or after `from`. */
const comingTicks = (schedule: Schedule, from: number, count: number): Coming => {
  const ticks: number[] = [];
  for (let next = schedule.next(from - 1); next !== undefined && ticks.length < count; next = schedule.next(next)) {
    ticks.push(next);
  }
  const removed: Removed[] = [];
  const { removed: removedTicks } = schedule as Partial<ScheduleWithCalendar>;
  let upTo = 0;
  for (const { tick, reason } of removedTicks?.(from - 1, ticks.at(-1) ?? from) ?? []) {
    const before = upTo;
    while (upTo < ticks.length && ticks[upTo]! < tick) upTo += 1;
    const last = removed.at(-1);
    if (last !== undefined && last.reason === reason && before === upTo) {
      removed[removed.length - 1] = { ...last, through: tick, count: last.count + 1 };
    } else removed.push({ from: tick, through: tick, count: 1, reason });
  }
  return { ticks, removed };
};

const asJson = (job: Job, schedule: Schedule, { ticks, removed }: Coming, zone: string | undefined) => ({
  job: job.name,
  schedule: schedule.source,
  zone: schedule.zone,
  words: explain(schedule),
  jitterMs: job.jitterMs,
  startsAfterMs: jitterOf(job.name, job.jitterMs),
  ticks: ticks.map((tick) => ({
    tick: iso(tick),
    local: localIso(tick, schedule.zone),
    ...(zone === undefined ? {} : { [zone]: localIso(tick, zone) }),
    remark: remarkOn(schedule, tick) ?? null,
  })),
  removed: removed.map(({ from, through, count, reason }) => ({
    from: iso(from),
    through: iso(through),
    count,
    reason,
  })),
});

const asText = async (job: Job, schedule: Schedule, coming: Coming, zone: string | undefined): Promise<string> => {
  const { columns } = await import("./columns.ts");
  const zones = [...new Set([schedule.zone, ...(zone === undefined ? [] : [zone]), "UTC"])];
  const times = (instant: number) => zones.map((each) => localTime(instant, each));
  const rows = [
    ...coming.ticks.map((tick) => ({ at: tick, row: [...times(tick), remarkOn(schedule, tick) ?? ""] })),
    ...coming.removed.map(({ from, count, reason }) => ({
      at: from,
      row: [...times(from), `${count === 1 ? "left out" : `${count} ticks from here are left out`}: ${reason}`],
    })),
  ].sort((one, other) => one.at - other.at);
  const table = columns(
    [...zones, "remark"].map((heading) => ({ heading })),
    rows.map(({ row }) => row),
  );
  return [
    `${job.name} is due ${explain(schedule)} (${schedule.source})`,
    ...(job.jitterMs === 0 ? [] : [jitterLine(job)]),
    "",
    rows.length === 0 ? "it is never due after that" : table,
  ].join("\n");
};

const jitterLine = ({ name, jitterMs }: Job): string =>
  `starts ${seconds(jitterOf(name, jitterMs))} after each tick, its place in a jitter of ${durationText(jitterMs)}`;

const seconds = (durationMs: number): string =>
  durationText(Math.round(durationMs / 1_000) * 1_000).replace("0ms", "0s");
