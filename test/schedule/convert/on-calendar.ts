/** A small reader of what `toSystemd` may write, by brute force over days: one line after another, all in UTC. */

import { dayMs } from "../oracle.ts";

const week = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/** Whether `value` is in a field such as `*`, `01,07`, `08..14`, `00/15`. */
function matches(field: string, value: number, highest: number): boolean {
  return field.split(",").some((term) => {
    const [span = "", step] = term.split("/");
    const [first = "", last] = span.split("..");
    if (first === "*") return true;
    const start = Number(first);
    const end = last === undefined ? (step === undefined ? start : highest) : Number(last);
    return value >= start && value <= end && (value - start) % Number(step ?? 1) === 0;
  });
}

/** Systemd's weekday ranges run from Monday and may not go round. */
function matchesWeekday(field: string, day: number): boolean {
  const fromMonday = (name: string) => (week.indexOf(name) + 6) % 7;
  return field.split(",").some((term) => {
    const [first = "", last = first] = term.split("..");
    if (fromMonday(last) < fromMonday(first)) throw new Error(`${field} goes round`);
    return fromMonday(week[day]!) >= fromMonday(first) && fromMonday(week[day]!) <= fromMonday(last);
  });
}

function matchesDay(line: RegExpExecArray, date: Date): boolean {
  const { weekdays, year = "", month = "", sign, day = "" } = line.groups!;
  const lastDay = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
  const fromEnd = lastDay - date.getUTCDate() + 1;
  // `~07/1` counts on from the seventh day before the end.
  const dayMatches =
    sign === "~" ? (day === "07/1" ? fromEnd <= 7 : matches(day, fromEnd, 31)) : matches(day, date.getUTCDate(), 31);
  return (
    dayMatches &&
    (weekdays === undefined || matchesWeekday(weekdays, date.getUTCDay())) &&
    matches(year, date.getUTCFullYear(), 2199) &&
    matches(month, date.getUTCMonth() + 1, 12)
  );
}

const form =
  /^(?:(?<weekdays>[A-Z]\S+) )?(?<year>[^-\s]+)-(?<month>[^-~\s]+)(?<sign>[-~])(?<day>\S+) (?<hour>[^:\s]+):(?<minute>[^:\s]+):00 UTC$/;

/** The instants in [from, to) at which any of `lines` elapses, ascending. The lines differ in their days only. */
export function onCalendarTicks(lines: readonly string[], from: number, to: number): number[] {
  const read = lines.map((line) => form.exec(line) ?? fail(line));
  const { hour = "", minute = "" } = read[0]!.groups!;
  const times = Array.from({ length: 1440 }, (_, index) => index).filter(
    (index) => matches(hour, Math.floor(index / 60), 23) && matches(minute, index % 60, 59),
  );
  const ticks: number[] = [];
  for (let day = from; day < to; day += dayMs) {
    if (read.some((line) => matchesDay(line, new Date(day)))) ticks.push(...times.map((time) => day + time * 60_000));
  }
  return ticks;
}

const fail = (line: string): never => {
  throw new Error(`can't read ${line}`);
};
