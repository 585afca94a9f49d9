/** What `drills` can be told, checked at once: everything behind trusts it. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { InvalidOptionsError } from "../../errors.ts";
import type { Job } from "../../job.ts";
import { unknownOption } from "../../unknown-option.ts";
import type { TableDefinition } from "../tables.ts";
import { type DrillName, drillNames } from "./drill-names.ts";
import type { OutsideCall } from "./outside-calls.ts";

/** First items by table, or nothing where the function has written them itself. */
export type Seeded = Readonly<Record<string, readonly object[]>>;

export interface DrillOptions {
  /** The tables that the job reads and writes. They are made on the local engine, and are gone afterwards. */
  readonly tables?: readonly TableDefinition[];
  /**
   * Sets everything to where each trial begins: called many times, and the same each time. It returns the first items by
   * table, or writes them itself. What the job calls outside DynamoDB (a stub of an API, a list of sent mails) is set back here.
   *
   * Something must be due within the ticks that are delivered, the first of them at `now`.
   *
   * @param now the time of the first tick, in milliseconds since the epoch
   * @param client for the local engine
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: a function without a result is one that writes by itself
  readonly seed?: (now: number, client: DynamoDBClient) => Seeded | void | Promise<Seeded | void>;
  /**
   * The state that is compared with an undisturbed run's, by names of your own: rows of tables, or anything else. Leave out
   * what may differ, such as ids by chance.
   * @param client for the local engine
   * @default all rows of `tables`
   */
  readonly read?: (
    client: DynamoDBClient,
  ) => Readonly<Record<string, unknown>> | Promise<Readonly<Record<string, unknown>>>;
  /**
   * All that the job has done outside DynamoDB since the last `seed`, one entry for each effect, such as the ids of the
   * mails that went out. List what the receiver would count: one that honours idempotency keys counts a repetition once.
   * No entry may be there more often than after an undisturbed run.
   */
  readonly effects?: () => readonly unknown[] | Promise<readonly unknown[]>;
  /**
   * When the trials begin, in milliseconds since the epoch or ISO 8601: the first tick is the first one due from then on.
   * @default noon of 12 January 2026, or the job's `startAt` where that is later
   */
  readonly now?: number | string;
  /** How many ticks are delivered in each trial: 2 to 20. @default 3 */
  readonly ticks?: number;
  /**
   * Attributes whose value may differ, as `"table.attribute"`. What differs between undisturbed runs (a run's id, its fence) is
   * left out by itself.
   */
  readonly ignore?: readonly string[];
  /** Tables that the job may write outside its commits, such as one for diagnostics that nothing depends on. */
  readonly unfenced?: readonly string[];
  /**
   * Whether a call over HTTP outside `run.once` may be repeated without harm.
   * @default those with an idempotency key, and all but POST and PATCH; of AWS services also those that read or delete
   */
  readonly repeatable?: (call: OutsideCall) => boolean;
  /** The job writes nothing of its own and has no effects, as a watchdog: only cronfence's own invariants are checked. @default false */
  readonly writesNothing?: boolean;
  /** Only these drills. @default all that fit the job */
  readonly only?: readonly DrillName[];
  /** Not these drills. */
  readonly skip?: readonly DrillName[];
  /**
   * At how many of a run's requests it is disturbed; of more requests the first, the last and some between
   * are taken.
   * @default 40
   */
  readonly points?: number;
}

const known: Record<keyof DrillOptions, true> = {
  tables: true,
  seed: true,
  read: true,
  effects: true,
  now: true,
  ticks: true,
  ignore: true,
  unfenced: true,
  repeatable: true,
  writesNothing: true,
  only: true,
  skip: true,
  points: true,
};

/** @throws InvalidOptionsError naming every option that can't be accepted. */
export const checkOptions = (job: Job, options: DrillOptions): void => {
  const subject = `drills of job "${job.name}"`;
  const problems = Object.keys(options)
    .filter((key) => !(key in known))
    .map((key) => unknownOption(key, Object.keys(known)));
  for (const name of ["seed", "read", "effects", "repeatable"] as const) {
    if (options[name] !== undefined && typeof options[name] !== "function") problems.push(`${name} must be a function`);
  }
  const { tables = [], now, ticks, points, ignore = [], unfenced = [], only = [], skip = [] } = options;
  if (!Array.isArray(tables) || !tables.every((table) => typeof table?.name === "string" && table.key?.hash)) {
    problems.push('tables must be a list of tables, such as [{ name: "carts", key: { hash: "id" } }]');
  }
  if (now !== undefined && Number.isNaN(new Date(now).getTime())) {
    problems.push(`now is ${JSON.stringify(now)}, and must be an instant: milliseconds since the epoch, or ISO 8601`);
  }
  if (ticks !== undefined && !(Number.isInteger(ticks) && ticks >= 2 && ticks <= 20)) {
    problems.push(`ticks is ${ticks}, and must be a whole number from 2 to 20`);
  }
  if (points !== undefined && !(Number.isInteger(points) && points >= 1)) {
    problems.push(`points is ${points}, and must be a whole number of at least 1`);
  }
  for (const name of ignore) {
    if (!/^[^.]+\..+/.test(name)) {
      problems.push(
        `ignore has ${JSON.stringify(name)}, and must have attributes of tables, such as "carts.updatedAt"`,
      );
    }
  }
  const names = Array.isArray(tables) ? tables.map(({ name }) => name) : [];
  for (const name of unfenced) {
    if (!names.includes(name))
      problems.push(`unfenced has ${unknownOption(name, names).replace("an option", "a table")}`);
  }
  for (const name of [...only, ...skip]) {
    if (!drillNames.includes(name)) problems.push(unknownOption(name, drillNames).replace("an option", "a drill"));
  }
  if (job.dryRun) {
    problems.push(
      "the job is configured as a dry run (dryRun, or the environment's CRONFENCE_DRY_RUN), so that it never writes",
    );
  }
  if (problems.length > 0) throw new InvalidOptionsError(subject, problems);
};
