/**
 * Reads one field of a cron expression into plain values and the few forms that depend on the month (`L`, `W`, `#`).
 * It checks what may be written and says where it is wrong; which days that means is croner's business
 * (wall-pattern.ts). Days of the week come out as 0 (Sunday) to 6 whatever the dialect counts from.
 */

import { InvalidScheduleError } from "../errors.ts";

/** The two ways of writing cron that are read. */
export type Dialect = "unix" | "eventbridge";

export type FieldName = "minute" | "hour" | "day-of-month" | "month" | "day-of-week" | "year";

/** A day that depends on the month. `weekday` is 0 (Sunday) to 6. */
export type SpecialDay =
  | { readonly kind: "last-day" }
  | { readonly kind: "last-workday" }
  | { readonly kind: "nearest-workday"; readonly day: number }
  | { readonly kind: "last-weekday"; readonly weekday: number }
  | { readonly kind: "nth-weekday"; readonly weekday: number; readonly nth: number };

/** One field, read. */
export interface Field {
  readonly name: FieldName;
  /** As written. */
  readonly text: string;
  /** Offset of the field in the expression, from 0. */
  readonly position: number;
  /** Whether it starts with `*`: in cron this decides how day fields combine and how clock changes are treated. */
  readonly star: boolean;
  /** Whether it is `?`, EventBridge's "no condition". */
  readonly open: boolean;
  /** Plain values, ascending, without repeats. */
  readonly values: readonly number[];
  readonly special: readonly SpecialDay[];
}

interface Range {
  readonly lowest: number;
  /** The last value that an open end (`*`, `5/10`) runs to. */
  readonly highest: number;
  /** The highest that may be written, where that is more: 7 is Sunday, too. */
  readonly allowed?: number;
  readonly names?: readonly string[];
}

const months = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const days = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const ranges: Record<FieldName, Range> = {
  minute: { lowest: 0, highest: 59 },
  hour: { lowest: 0, highest: 23 },
  "day-of-month": { lowest: 1, highest: 31 },
  month: { lowest: 1, highest: 12, names: months },
  "day-of-week": { lowest: 0, highest: 6, allowed: 7, names: days },
  // https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#cron-based
  year: { lowest: 1970, highest: 2199 },
};

const quartzWeek: Range = { lowest: 1, highest: 7, names: days };

/** Where a piece of the expression stands, for errors. */
interface Piece {
  readonly expression: string;
  readonly name: FieldName;
  readonly text: string;
  readonly position: number;
  readonly dialect: Dialect;
  readonly range: Range;
}

/**
 * Reads the field `text`, which stands at `position` in `expression`.
 * @throws InvalidScheduleError with the position of the first piece that can't be read.
 */
export function readField(
  expression: string,
  name: FieldName,
  text: string,
  position: number,
  dialect: Dialect,
): Field {
  const range = dialect === "eventbridge" && name === "day-of-week" ? quartzWeek : ranges[name];
  const values = new Set<number>();
  const special: SpecialDay[] = [];
  const terms = text.split(",");
  let at = position;
  for (const term of terms) {
    const piece: Piece = { expression, name, text: term, position: at, dialect, range };
    if (term === "") refuse(piece, "a value is missing here");
    if (term === "?") {
      if (dialect === "unix" || !name.startsWith("day-of-") || terms.length > 1) {
        refuse(piece, dialect === "unix" ? "? isn't cron; write *" : "? may only stand alone in a day field");
      }
    } else {
      const day = readSpecial(piece);
      if (day === undefined) for (const value of readValues(piece)) values.add(value);
      else special.push(day);
      const alone = dialect === "eventbridge" || day?.kind === "last-workday";
      if (day !== undefined && terms.length > 1 && alone) {
        refuse(piece, `${term} must stand alone in its field; use two schedules`);
      }
    }
    at += term.length + 1;
  }
  const shift = range === quartzWeek ? 1 : 0;
  const plain = new Set([...values].map((value) => (name === "day-of-week" ? (value - shift) % 7 : value)));
  return {
    name,
    text,
    position,
    star: text.startsWith("*"),
    open: text === "?",
    values: [...plain].sort((a, b) => a - b),
    special,
  };
}

/** Whether the field sets no condition: every value, written in whatever way. */
export const isEvery = (field: Field): boolean => {
  const { lowest, highest } = ranges[field.name];
  return field.open || field.values.length === highest - lowest + 1;
};

function refuse(piece: Piece, reason: string, offset = 0): never {
  throw new InvalidScheduleError(piece.expression, `${piece.name}: ${reason}`, piece.position + offset);
}

function readSpecial(piece: Piece): SpecialDay | undefined {
  const text = piece.text.toUpperCase();
  const inMonth = piece.name === "day-of-month";
  const inWeek = piece.name === "day-of-week";
  if (inMonth && text === "L") return { kind: "last-day" };
  if (inMonth && text === "LW") return { kind: "last-workday" };
  if (inMonth && /^L-\d+$/.test(text)) {
    refuse(piece, `${piece.text} isn't documented by AWS and unknown to most crons; use L, or a day up to 28`);
  }
  if (inMonth && /^\d+W$/.test(text)) {
    return { kind: "nearest-workday", day: readValue(piece, text.slice(0, -1), 0) };
  }
  if (inWeek && text === "L" && piece.dialect === "unix") {
    refuse(piece, "a bare L is read differently by each cron; write 6 for Saturday or 5L for the last Friday");
  }
  if (inWeek && /^(\d|[A-Z]{3})L$/.test(text))
    return { kind: "last-weekday", weekday: readWeekday(piece, text.slice(0, -1)) };
  const [weekday, nth, ...rest] = text.split("#");
  if (inWeek && nth !== undefined) {
    if (rest.length > 0 || !/^[1-5]$/.test(nth)) {
      refuse(piece, "after # stands which one of the month, 1 to 5", (weekday ?? "").length + 1);
    }
    return { kind: "nth-weekday", weekday: readWeekday(piece, weekday ?? ""), nth: Number(nth) };
  }
  return undefined;
}

const readWeekday = (piece: Piece, text: string): number => {
  const value = readValue(piece, text, 0);
  return piece.range === quartzWeek ? value - 1 : value % 7;
};

function readValues(piece: Piece): number[] {
  const { range, text, name } = piece;
  // EventBridge: "if you use L in day-of-week by itself, it means 7 or SAT".
  if (name === "day-of-week" && text.toUpperCase() === "L") return [range.highest];
  const [span = "", stepText, ...more] = text.split("/");
  if (more.length > 0) refuse(piece, "more than one /", text.lastIndexOf("/"));
  const step = stepText === undefined ? 1 : readStep(piece, stepText, span.length + 1);
  const [first = "", last, ...rest] = span.split("-");
  if (rest.length > 0)
    refuse(piece, `${span} isn't a range; write it as from-to`, first.length + 1 + (last ?? "").length);
  if (first === "*" && last === undefined) return upTo(range.lowest, range.highest, step);
  const from = readValue(piece, first, 0);
  if (last === undefined) return stepText === undefined ? [from] : upTo(from, range.highest, step);
  const readTo = readValue(piece, last, first.length + 1);
  // "MON-SUN" can only mean the Sunday at the end of that week, though SUN alone is 0.
  const to = range.allowed === 7 && last.toUpperCase() === "SUN" ? 7 : readTo;
  if (from <= to) return upTo(from, to, step);
  if (piece.dialect === "unix" || name === "year") {
    refuse(piece, `reversed range ${span}; write ${inOrder(range, first, from, last, to)}`);
  }
  const size = range.highest - range.lowest + 1;
  return upTo(from, to + size, step).map((value) => (value > range.highest ? value - size : value));
}

/** A range that goes round the end of its field, written as one that doesn't. */
function inOrder({ lowest, highest, names }: Range, first: string, from: number, last: string, to: number): string {
  const end = names?.at(-1) ?? highest;
  const start = names?.[0] ?? lowest;
  const head = from > highest ? [] : from === highest ? [first] : [`${first}-${end}`];
  return [...head, to === lowest ? last : `${start}-${last}`].join(",");
}

const upTo = (from: number, to: number, step: number): number[] =>
  Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, index) => from + index * step);

function readStep(piece: Piece, text: string, offset: number): number {
  const { lowest, highest } = piece.range;
  if (!/^\d+$/.test(text)) refuse(piece, text === "" ? "a step is missing after /" : `"${text}" isn't a step`, offset);
  const step = Number(text);
  if (step === 0) refuse(piece, "a step of 0 never moves on", offset);
  if (step > highest - lowest + 1) {
    const unit = { minute: "minutes", hour: "hours" }[piece.name as string];
    const instead = unit ? `; write rate(${step} ${unit})` : "";
    refuse(
      piece,
      `a step of ${step} is longer than the field, so it would fire as if there were none${instead}`,
      offset,
    );
  }
  return step;
}

function readValue(piece: Piece, text: string, offset: number): number {
  const { lowest, highest, allowed = highest, names } = piece.range;
  if (text === "") refuse(piece, `"${piece.text}" lacks a value; a range is written as from-to`, offset);
  if (/^\d+$/.test(text)) {
    const value = Number(text);
    if (value < lowest || value > allowed) refuse(piece, `${value} is outside ${lowest}-${allowed}`, offset);
    return value;
  }
  const index = names?.indexOf(text.toUpperCase()) ?? -1;
  if (index >= 0) return index + (piece.range.names === months ? 1 : lowest);
  const known = names ? `a number or one of ${names.join(", ")}` : "a number";
  refuse(piece, `"${text}" isn't ${known}`, offset);
}

/** Writes a day that depends on the month as croner, EventBridge and Cloudflare read it, with `weekday` for its weekday. */
export function writeSpecialDay(day: SpecialDay, weekday: (day: number) => string): string {
  switch (day.kind) {
    case "last-day":
      return "L";
    case "last-workday":
      return "LW";
    case "nearest-workday":
      return `${day.day}W`;
    case "last-weekday":
      return `${weekday(day.weekday)}L`;
    case "nth-weekday":
      return `${weekday(day.weekday)}#${day.nth}`;
  }
}
