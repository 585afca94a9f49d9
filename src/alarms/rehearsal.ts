/**
 * When would somebody be paged? Jobs, the platform, the watchdog and CloudWatch in simulated time: the real judgement of the
 * watchdog, the alarms as they are deployed, and the documented rules by which CloudWatch evaluates them. Years take
 * seconds, since nothing is run: a run is a delivery, a duration and an outcome.
 *
 * What is assumed of the platform: EventBridge Scheduler delivers each tick that it knows within a minute and the job's
 * jitter, some of them twice, leaves out times of day that the clocks skip, and knows no calendar; Lambda tries a failed event
 * twice more, after one and two minutes; metrics reach CloudWatch within a minute.
 */
import { type Duration, milliseconds } from "../duration.ts";
import { InvalidOptionsError } from "../errors.ts";
import type { Schedule } from "../schedule/index.ts";
import { unknownOption } from "../unknown-option.ts";
import { deliveryMs } from "../watchdog/duty.ts";
import { type JudgeOptions, judge } from "../watchdog/judge.ts";
import type { WatchedJob } from "../watchdog/watched-job.ts";
import type { Alarm } from "./alarm.ts";
import { type AlarmMonitor, monitorAlarm } from "./evaluator.ts";
import { type AlarmedJob, jobAlarms, watchdogAlarm } from "./job-alarms.ts";
import { simulatePlatform, type Weather } from "./platform.ts";

/** Instants from `from` up to, and not including, `to`: milliseconds since the epoch, or ISO 8601. */
export interface Stretch {
  readonly from: number | string;
  readonly to: number | string;
}

export interface AlarmRehearsalOptions extends Stretch {
  /** Ticks that nobody delivers. */
  readonly missed?: readonly (number | string)[];
  /** Nothing is delivered: a schedule that was disabled, a scheduler that is down. */
  readonly outages?: readonly Stretch[];
  /** Every run fails. */
  readonly failing?: readonly Stretch[];
  /** The watchdog doesn't run. */
  readonly watchdogDown?: readonly Stretch[];
  /** How often the watchdog looks. @default "5m" */
  readonly every?: Duration;
  /** Whether the watchdog starts what is overdue. @default false */
  readonly heal?: boolean;
  /** How many data points more than an alarm needs CloudWatch looks at; see `MonitorOptions`. @default 2 */
  readonly extraPoints?: number;
  /** Decides on delays and durations: the same seed, the same rehearsal. @default 1 */
  readonly seed?: number;
}

/** An alarm that went off. */
export interface Page {
  /** `overdue`, `failures` or `capped` of a job, or `watchdog`. */
  readonly alarm: string;
  /** Absent for the watchdog's own. */
  readonly job?: string;
  readonly at: number;
  /** Absent where it was still on at the end. */
  readonly clearedAt?: number;
}

export interface AlarmRehearsal {
  /** In the order in which they went off. */
  readonly pages: readonly Page[];
  /** Ticks that were done, and how many of them the watchdog had started. */
  readonly done: number;
  readonly healed: number;
}

type RehearsedJob = WatchedJob & AlarmedJob;

/**
 * Rehearses the alarms of `jobs` over a stretch of time.
 * @throws InvalidOptionsError for options that can't be accepted
 * @example
 * ```ts
 * const { pages } = rehearseAlarms([job], { from: "2026-01-01", to: "2028-01-01", missed: ["2026-03-02T09:00:00Z"] });
 * ```
 */
export const rehearseAlarms = (jobs: readonly RehearsedJob[], options: AlarmRehearsalOptions): AlarmRehearsal => {
  const plan = planOf(options);
  const watchdogPages = rehearseWatchdog(plan);
  const rehearsed = jobs.map((job) => rehearseJob(job, plan));
  return {
    pages: [...watchdogPages, ...rehearsed.flatMap(({ pages }) => pages)].sort((one, other) => one.at - other.at),
    done: rehearsed.reduce((sum, { done }) => sum + done, 0),
    healed: rehearsed.reduce((sum, { healed }) => sum + healed, 0),
  };
};

/** A rehearsal in lines for people. */
export const rehearsalText = ({ pages, done, healed }: AlarmRehearsal): string => {
  const iso = (at: number) => new Date(at).toISOString().replace(".000", "");
  const lines = pages.map(({ alarm, job, at, clearedAt }) => {
    const end = clearedAt === undefined ? "still on at the end" : `cleared ${iso(clearedAt)}`;
    return `${iso(at)}  ${job === undefined ? "" : `${job}: `}${alarm}, ${end}`;
  });
  const counts = `${done} ticks done${healed > 0 ? `, ${healed} of them started by the watchdog` : ""}`;
  return [...(lines.length === 0 ? ["nobody is paged"] : lines), counts].join("\n");
};

interface Plan extends Weather {
  readonly everyMs: number;
  readonly heal: boolean;
  readonly extraPoints: number;
  readonly seed: number;
  /** When the watchdog looks, and CloudWatch knows what it saw. */
  looks(random: () => number): Iterable<{ readonly at: number; readonly knownAt: number }>;
}

const planOf = (options: AlarmRehearsalOptions): Plan => {
  const problems = Object.keys(options)
    .filter((key) => !known.includes(key))
    .map((key) => unknownOption(key, known));
  const instant = (name: string, value: number | string): number => {
    const at = typeof value === "number" ? value : Date.parse(value);
    if (!Number.isFinite(at)) problems.push(`${name} is ${JSON.stringify(value)}, and must be an instant`);
    return at;
  };
  const stretches = (name: "outages" | "failing" | "watchdogDown") =>
    (options[name] ?? []).map(({ from, to }) => ({
      from: instant(`${name}.from`, from),
      to: instant(`${name}.to`, to),
    }));
  const [from, to] = [instant("from", options.from), instant("to", options.to)];
  const outages = stretches("outages");
  const failing = stretches("failing");
  const down = stretches("watchdogDown");
  const missed = new Set((options.missed ?? []).map((tick) => instant("missed", tick)));
  const everyMs = milliseconds(options.every ?? "5m");
  if (everyMs === undefined || everyMs % minuteMs !== 0) {
    problems.push(`every is ${JSON.stringify(options.every)}, and must be a whole number of minutes`);
  }
  if (to <= from) problems.push("to must be later than from");
  if (everyMs === undefined || problems.length > 0) throw new InvalidOptionsError("rehearsal of alarms", problems);
  const within = (list: readonly { from: number; to: number }[], at: number) =>
    list.some((stretch) => at >= stretch.from && at < stretch.to);
  return {
    from,
    to,
    everyMs,
    heal: options.heal ?? false,
    extraPoints: options.extraPoints ?? 2,
    seed: options.seed ?? 1,
    isMissed: (tick) => missed.has(tick) || within(outages, tick),
    isFailing: (at) => within(failing, at),
    *looks(random) {
      for (let tick = Math.ceil(from / everyMs) * everyMs; tick < to; tick += everyMs) {
        if (within(down, tick)) continue;
        const at = tick + Math.floor(random() * deliveryMs);
        yield { at, knownAt: at + Math.floor(random() * minuteMs) };
      }
    },
  };
};

const known = ["from", "to", "missed", "outages", "failing", "watchdogDown", "every", "heal", "extraPoints", "seed"];

const minuteMs = 60_000;

/** The watchdog's own alarm. Before the rehearsal it was well. */
const rehearseWatchdog = (plan: Plan): Page[] => {
  const monitor = monitored(watchdogAlarm("watchdog", service, plan.everyMs), plan, 0);
  for (const { at, knownAt } of plan.looks(randomOf("watchdog", plan.seed))) {
    monitor.record({ at, value: 0, knownAt });
    monitor.advance(at);
  }
  return monitor.pages(plan.to, { alarm: "watchdog" });
};

const service = "rehearsal";

/** An alarm that collects when it went off. */
const monitored = (alarm: Alarm, plan: Plan, healthy: number) => {
  // A while before, so that it isn't the first look that finds an alarm without data.
  const before = plan.from - 2 * plan.everyMs;
  const monitor: AlarmMonitor = monitorAlarm(alarm, { from: before, extraPoints: plan.extraPoints });
  for (let at = before; at < plan.from; at += minuteMs) monitor.record({ at, value: healthy });
  monitor.advance(plan.from);
  const on: { at: number; clearedAt?: number }[] = [];
  const advance = (through: number) => {
    for (const { at, from, to } of monitor.advance(through)) {
      if (to === "ALARM") on.push({ at });
      else if (from === "ALARM") Object.assign(on.at(-1) as object, { clearedAt: at });
    }
  };
  return {
    record: monitor.record,
    advance,
    pages: (through: number, about: Pick<Page, "alarm" | "job">): Page[] => {
      advance(through);
      return on.map((page) => ({ ...about, ...page }));
    },
  };
};

const rehearseJob = (
  given: RehearsedJob,
  plan: Plan,
): { readonly pages: Page[]; readonly done: number; readonly healed: number } => {
  const job = given.schedule === undefined ? given : { ...given, schedule: remembering(given.schedule) };
  const random = randomOf(job.name, plan.seed);
  const { overdue, failures } = jobAlarms(job, service, plan.everyMs);
  const overdueMonitor = overdue === undefined ? undefined : monitored(overdue, plan, 0);
  const failuresMonitor = failures === undefined ? undefined : monitored(failures, plan, 0);
  const platform = simulatePlatform(job, plan, random);
  const judging: JudgeOptions = {
    heals: plan.heal,
    tooLongMs: Number.POSITIVE_INFINITY,
    everyMs: plan.everyMs,
  };
  for (const { at, knownAt } of plan.looks(random)) {
    const judgement = judge(job, platform.at(at), at, judging);
    overdueMonitor?.record({ at, value: Math.ceil(judgement.overdueMs / 1_000), knownAt });
    failuresMonitor?.record({ at, value: judgement.failures, knownAt });
    if (judgement.start !== undefined) platform.heal(judgement.start, at);
    overdueMonitor?.advance(at);
    failuresMonitor?.advance(at);
  }
  return {
    pages: [
      ...(overdueMonitor?.pages(plan.to, { alarm: "overdue", job: job.name }) ?? []),
      ...(failuresMonitor?.pages(plan.to, { alarm: "failures", job: job.name }) ?? []),
    ],
    ...platform.counts(),
  };
};

/** The watchdog asks the same things of a schedule at every look, until something is done. */
const remembering = (schedule: Schedule): Schedule => {
  const answers = new Map<number, number | undefined>();
  return {
    ...schedule,
    next: (after) => {
      if (!answers.has(after)) {
        if (answers.size > 8) answers.clear();
        answers.set(after, schedule.next(after));
      }
      return answers.get(after);
    },
  };
};

/** Mulberry32, from a seed that is a name and a number. */
const randomOf = (name: string, seed: number): (() => number) => {
  let value = seed;
  for (const character of name) value = Math.imul(value ^ (character.codePointAt(0) ?? 0), 0x01000193);
  return () => {
    value = (value + 0x6d2b79f5) | 0;
    let mixed = Math.imul(value ^ (value >>> 15), value | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
};
