/** Schedules in plain words, for people who check that a schedule is the one they meant. */

import { type Expression, readExpression } from "./expression.ts";
import { isEvery, type SpecialDay } from "./field.ts";
import { rateText } from "./rate.ts";
import type { Schedule } from "./schedule.ts";
import { valueRuns } from "./value-runs.ts";

/** `schedule` as a sentence without a full stop: "at 09:00, on Monday to Friday, Europe/Berlin time". */
export function explain(schedule: Schedule): string {
  if (schedule.kind === "rate") {
    return `every ${rateText(schedule).replace(/^1 /, "")}, counted from a fixed instant${exceptions(schedule)}`;
  }
  const read = readExpression(schedule.source);
  const zone = schedule.zone === "UTC" ? "UTC" : `${schedule.zone} time`;
  const parts = [times(read), days(read), months(read), years(read), zone].filter((part) => part !== "");
  return `${parts.join(", ")}${clockWords(schedule)}${exceptions(schedule)}`;
}

const exceptions = ({ calendar }: Schedule): string => (calendar ? ", except what its calendar removes" : "");

/** Only what differs from the default policy is worth a word. */
function clockWords(schedule: Schedule): string {
  if (schedule.zone === "UTC" || schedule.wildcard) return "";
  const skips = schedule.gap === "skip" ? "; left out on a day whose clocks skip it" : "";
  return schedule.overlap === "both" ? `${skips}; both times on a day whose clocks repeat it` : skips;
}

/** More times of day than this aren't listed one by one. */
const mostTimes = 6;

function times({ minute, hour }: Expression): string {
  const everyHour = isEvery(hour);
  if (isEvery(minute)) return everyHour ? "every minute" : `every minute ${hoursWords(hour.values)}`;
  if (minute.values.length * hour.values.length <= mostTimes) {
    const all = hour.values.flatMap((h) => minute.values.map((m) => `${pad(h)}:${pad(m)}`));
    return `at ${listing(all)}`;
  }
  const minutes = minutesWords(minute.values);
  return everyHour ? minutes : `${minutes} ${hoursWords(hour.values)}`;
}

function minutesWords(values: readonly number[]): string {
  const step = stepOf(values, 60);
  if (step !== undefined && values[0] === 0) return `every ${step} minutes`;
  if (values.length === 1) return values[0] === 0 ? "on the hour" : `at ${values[0]} minutes past the hour`;
  return `at ${listing(runs(values, String))} minutes past the hour`;
}

function hoursWords(values: readonly number[]): string {
  if (values.length === 1) return `from ${pad(values[0]!)}:00 to ${pad(values[0]!)}:59`;
  const step = stepOf(values, 24);
  if (step !== undefined)
    return values[0] === 0
      ? `of every ${ordinal(step)} hour`
      : `of every ${ordinal(step)} hour from ${pad(values[0]!)}`;
  return `in the hours ${listing(runs(values, pad))}`;
}

/** The step of values that are evenly spaced round the whole of `size`. */
function stepOf(values: readonly number[], size: number): number | undefined {
  const step = size / values.length;
  const even =
    Number.isInteger(step) && values.length > 1 && values.every((value, index) => value === values[0]! + index * step);
  return even ? step : undefined;
}

const weekdays = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/** Days of the week counted from Monday, as people list them. */
const fromMonday = (sundayIsZero: readonly number[]) => sundayIsZero.map((day) => (day + 6) % 7).sort((a, b) => a - b);

const monthNames = "January February March April May June July August September October November December".split(" ");

function days({ days, dayOfMonth, dayOfWeek }: Expression): string {
  const ofMonth = () => {
    const plain =
      dayOfMonth.values.length === 0 ? [] : [`day ${listing(runs(dayOfMonth.values, String))} of the month`];
    return `on ${listing([...plain, ...dayOfMonth.special.map(specialWords)])}`;
  };
  const ofWeek = () =>
    `on ${listing([...runs(fromMonday(dayOfWeek.values), (day) => weekdays[day]!), ...dayOfWeek.special.map(specialWords)])}`;
  switch (days) {
    case "every":
      return "";
    case "of-month":
      return ofMonth();
    case "of-week":
      return ofWeek();
    case "and":
      return `${ofMonth()} if it is ${ofWeek()
        .slice("on ".length)
        .replace(/ and (?=\S+$)/, " or ")}`;
    case "or":
      return `${ofMonth()} and also ${ofWeek()}`;
  }
}

function specialWords(day: SpecialDay): string {
  switch (day.kind) {
    case "last-day":
      return "the last day of the month";
    case "last-workday":
      return "the last weekday (Monday to Friday) of the month";
    case "nearest-workday":
      return `the weekday (Monday to Friday) nearest to day ${day.day} of the month`;
    case "last-weekday":
      return `the last ${weekdays[(day.weekday + 6) % 7]} of the month`;
    case "nth-weekday":
      return `the ${ordinal(day.nth)} ${weekdays[(day.weekday + 6) % 7]} of the month`;
  }
}

const months = ({ month }: Expression): string =>
  isEvery(month) ? "" : `in ${listing(runs(month.values, (value) => monthNames[value - 1]!))}`;

const years = ({ year }: Expression): string =>
  year === undefined || isEvery(year) ? "" : `in ${listing(runs(year.values, String))}`;

const runs = (values: readonly number[], word: (value: number) => string) => valueRuns(values, word, " to ");

const listing = (words: readonly string[]): string =>
  words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;

const ordinal = (value: number): string => {
  const ending = value % 100 >= 11 && value % 100 <= 13 ? "th" : (["th", "st", "nd", "rd"][value % 10] ?? "th");
  return `${value}${ending}`;
};

const pad = (value: number): string => String(value).padStart(2, "0");
