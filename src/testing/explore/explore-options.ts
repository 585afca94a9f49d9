/** What `explore` can be told, checked at once, and the ticks that it comes to. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { RunRecord } from "../../control/control-store.ts";
import { InvalidOptionsError } from "../../errors.ts";
import type { Job } from "../../job.ts";
import type { Schedule } from "../../schedule/index.ts";
import { unknownOption } from "../../unknown-option.ts";
import type { DrillOptions } from "../drills/drill-options.ts";
import { readSchedule } from "./schedule.ts";

/** The tables, what is in them and what is compared are told as for drills. */
export interface ExploreOptions extends Pick<DrillOptions, "tables" | "seed" | "read" | "now" | "ignore"> {
  /** How many ticks are delivered while things go wrong: 1 to 10. @default 2 */
  readonly ticks?: number;
  /** How many attempts may go on at the same time: 2 to 4. A delivery beyond waits. @default 2 */
  readonly runners?: number;
  /** How many schedules are played at most: so it takes as long as they do, and always finds the same. @default 300 */
  readonly budget?: number;
  /** How many things go wrong in one schedule at most: 0 to 3. @default 3 */
  readonly faults?: number;
  /** Decides which of the schedules are played where the budget isn't enough for all. @default 1 */
  readonly randomSeed?: number;
  /**
   * Plays this one schedule, as a failed exploration prints it: "lost-reply@A.3 paused-before@B.2", or "undisturbed". Everything
   * else must be told as it was.
   */
  readonly replay?: string;
  /** Looks at what a schedule has led to, and throws what is wrong with it. Called after each, when all is over. */
  readonly check?: (seen: {
    /** For the local engine. */
    readonly client: DynamoDBClient;
    readonly records: readonly RunRecord[];
  }) => void | Promise<void>;
}

const known: Record<keyof ExploreOptions, true> = {
  tables: true,
  seed: true,
  read: true,
  now: true,
  ignore: true,
  ticks: true,
  runners: true,
  budget: true,
  faults: true,
  randomSeed: true,
  replay: true,
  check: true,
};

/** @throws InvalidOptionsError naming every option that can't be accepted */
export const checkOptions = (job: Job, options: ExploreOptions): void => {
  const problems = Object.keys(options)
    .filter((option) => !(option in known))
    .map((option) => unknownOption(option, Object.keys(known)));
  for (const name of ["seed", "read", "check"] as const) {
    if (options[name] !== undefined && typeof options[name] !== "function") problems.push(`${name} must be a function`);
  }
  const { tables = [], ignore = [], now, replay } = options;
  if (!Array.isArray(tables) || !tables.every((table) => typeof table?.name === "string" && table.key?.hash)) {
    problems.push('tables must be a list of tables, such as [{ name: "carts", key: { hash: "id" } }]');
  }
  if (!Array.isArray(ignore) || !ignore.every((each) => /^[^.]+\..+/.test(each))) {
    problems.push(`ignore is ${JSON.stringify(ignore)}, and must list attributes of tables, such as "carts.updatedAt"`);
  }
  if (now !== undefined && Number.isNaN(new Date(now).getTime())) {
    problems.push(`now is ${JSON.stringify(now)}, and must be an instant: milliseconds since the epoch, or ISO 8601`);
  }
  for (const [name, { from, to }] of Object.entries(ranges)) {
    const value = options[name as keyof typeof ranges];
    if (value === undefined || (Number.isSafeInteger(value) && value >= from && value <= to)) continue;
    problems.push(`${name} is ${value}, and must be a whole number from ${from} to ${to}`);
  }
  if (replay !== undefined && typeof replay !== "string") problems.push(`replay must be a schedule's text`);
  else if (replay !== undefined) readSchedule(replay);
  if (job.schedule === undefined) problems.push("the job has no schedule, so nothing is ever due");
  if (job.dryRun) {
    problems.push(
      "the job is configured as a dry run (dryRun, or the environment's CRONFENCE_DRY_RUN): it never writes",
    );
  }
  if (problems.length > 0) throw new InvalidOptionsError(`exploration of job "${job.name}"`, problems);
};

const ranges = {
  ticks: { from: 1, to: 10 },
  runners: { from: 2, to: 4 },
  budget: { from: 1, to: 10_000_000 },
  faults: { from: 0, to: 3 },
  randomSeed: { from: 0, to: 2 ** 32 - 1 },
};

/** Late enough for all leases, retries and pauses to be over. */
const closingDelayMs = 6 * 3_600_000;

/** The most deliveries that a job may need until nothing is left to do. */
const mostClosing = 20;

export const planOf = (job: Job, options: ExploreOptions) => {
  const { ticks: count = 2, runners = 2, now = "2026-01-12T12:00:00Z" } = options;
  const from = Math.max(new Date(now).getTime(), job.catchUp.startAt ?? 0);
  const all = firstOf(job.schedule as Schedule, from - 1, count + mostClosing);
  if (all.length <= count) {
    throw new InvalidOptionsError(`exploration of job "${job.name}"`, [
      `ticks is ${count}, and after ${new Date(from).toISOString()} the job is due only ${all.length} times, of which one is for the end`,
    ]);
  }
  const ticks = all.slice(0, count);
  return { ticks, closing: all.slice(count), closingAt: (all[count] as number) + closingDelayMs, runners };
};

/** The first `count` ticks after `after`. */
const firstOf = (schedule: Schedule, after: number, count: number): number[] => {
  const ticks: number[] = [];
  for (let tick = schedule.next(after); tick !== undefined && ticks.length < count; tick = schedule.next(tick)) {
    ticks.push(tick);
  }
  return ticks;
};
