/**
 * Reads a whole cron expression: five fields as in a crontab, or EventBridge's `cron(…)` with six. What comes out no
 * longer depends on the dialect, except where the meaning does (star bits).
 */

import { InvalidScheduleError } from "../errors.ts";
import { type Dialect, type Field, type FieldName, isEvery, readField } from "./field.ts";

/** A cron expression, read. */
export interface Expression {
  readonly source: string;
  readonly dialect: Dialect;
  readonly minute: Field;
  readonly hour: Field;
  readonly dayOfMonth: Field;
  readonly month: Field;
  readonly dayOfWeek: Field;
  /** Absent in five-field cron. */
  readonly year: Field | undefined;
  /** Minute or hour starts with `*`: such a schedule follows real time through clock changes, as cronie does it. */
  readonly wildcard: boolean;
  /** How the two day fields combine: by which of them there is, or by both (`and`), or by either (`or`). */
  readonly days: "every" | "of-month" | "of-week" | "and" | "or";
}

const unixFields: readonly FieldName[] = ["minute", "hour", "day-of-month", "month", "day-of-week"];
const eventBridgeFields: readonly FieldName[] = [...unixFields, "year"];

/**
 * Reads `source`.
 * @throws InvalidScheduleError with the position of what is wrong.
 */
export function readExpression(source: string): Expression {
  const call = /^\s*(\w+)\s*\(/.exec(source);
  if (!call) return assemble(source, "unix", source, 0);
  const open = call[0].length;
  const name = call[1]?.toLowerCase();
  if (name === "at") {
    throw new InvalidScheduleError(source, "at(…) is a single moment, not a schedule; start such a run by hand", 0);
  }
  if (name !== "cron") {
    throw new InvalidScheduleError(source, `${call[1]}(…) isn't known; write cron(…), rate(…) or five fields`, 0);
  }
  const end = source.trimEnd().length - 1;
  if (source[end] !== ")") throw new InvalidScheduleError(source, "the closing ) is missing", end + 1);
  return assemble(source, "eventbridge", source.slice(open, end), open);
}

function assemble(source: string, dialect: Dialect, body: string, offset: number): Expression {
  const words = [...body.matchAll(/\S+/g)];
  const names = dialect === "unix" ? unixFields : eventBridgeFields;
  if (words.length !== names.length) refuseCount(source, dialect, words, offset);
  const fields = names.map((name, index) => {
    const word = words[index]!;
    return readField(source, name, word[0], offset + word.index, dialect);
  });
  const [minute, hour, dayOfMonth, month, dayOfWeek, year] = fields as [Field, Field, Field, Field, Field, Field?];
  // https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#cron-based
  if (dialect === "eventbridge" && dayOfMonth.open === dayOfWeek.open) {
    const reason = "exactly one of day-of-month and day-of-week must be ?";
    throw new InvalidScheduleError(source, reason, dayOfWeek.position);
  }
  const wildcard = minute.star || hour.star;
  const days = combineDays(dayOfMonth, dayOfWeek);
  return { source, dialect, minute, hour, dayOfMonth, month, dayOfWeek, year, wildcard, days };
}

/**
 * In cron a day field that starts with `*` makes the two fields a conjunction, even where it has a step; otherwise
 * either is enough (crontab(5), cronie's DOM_STAR and DOW_STAR).
 */
function combineDays(dayOfMonth: Field, dayOfWeek: Field): Expression["days"] {
  const both = dayOfMonth.star || dayOfWeek.star || dayOfMonth.open || dayOfWeek.open;
  if (isEvery(dayOfMonth)) return both && !isEvery(dayOfWeek) ? "of-week" : "every";
  if (isEvery(dayOfWeek)) return both ? "of-month" : "every";
  return both ? "and" : "or";
}

function refuseCount(source: string, dialect: Dialect, words: readonly RegExpExecArray[], offset: number): never {
  const found = `${words.length} field${words.length === 1 ? "" : "s"}`;
  const extra = words[dialect === "unix" ? 5 : 6];
  const last = words.at(-1);
  const position = offset + (extra?.index ?? (last ? last.index + last[0].length : 0));
  if (dialect === "unix" && /^@/.test(words[0]?.[0] ?? "")) {
    throw new InvalidScheduleError(source, "nicknames such as @daily aren't known; write the five fields", 0);
  }
  if (dialect === "unix" && (words.length === 6 || words.length === 7)) {
    const reason = `${found} without cron(…): seconds are not supported; leave the first field out, or write EventBridge's form as cron(…)`;
    throw new InvalidScheduleError(source, reason, words[0]!.index);
  }
  const wanted =
    dialect === "unix"
      ? "five: minute hour day-of-month month day-of-week"
      : "six: minutes hours day-of-month month day-of-week year";
  throw new InvalidScheduleError(source, `${found}, where there must be ${wanted}`, position);
}
