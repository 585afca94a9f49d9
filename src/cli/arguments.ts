/** What people write on the command line, read strictly: anything that could be meant in two ways is refused. */
import { InvalidArgumentError, Option } from "commander";
import { milliseconds } from "../duration.ts";
import type { InvalidOptionsError } from "../errors.ts";
import { canonicalZone } from "../schedule/zone-names.ts";

/** Where jobs are found. */
export const jobsOption = (): Option =>
  new Option("--jobs <glob>", "files that define jobs; may be given several times")
    .default([defaultJobs], defaultJobs)
    .argParser((glob: string, before: readonly string[]) => (before[0] === defaultJobs ? [glob] : [...before, glob]));

export const defaultJobs = "handlers/*.{ts,mts,js,mjs}";

export const jsonOption = (): Option => new Option("--json", "prints JSON, for programs");

/** A date, which is its midnight in UTC, or an instant with an offset; in milliseconds since the epoch. */
export const instant = (text: string): number => {
  const [, date, time, offset] =
    /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)(Z|[+-]\d\d:\d\d))?$/.exec(text) ?? [];
  const midnight = date === undefined ? Number.NaN : Date.parse(date);
  // Date.parse takes February 30 for March 2.
  const isDate = !Number.isNaN(midnight) && new Date(midnight).toISOString().startsWith(date as string);
  const value = time === undefined ? midnight : Date.parse(`${date}T${time}${offset}`);
  if (isDate && !Number.isNaN(value)) return value;
  throw new InvalidArgumentError("It must be a date (2026-01-31) or an instant with an offset (2026-01-31T06:00:00Z).");
};

/** FROM..TO, each as `instant` takes it. */
export const span = (text: string, before: readonly { from: number; to: number }[] = []) => {
  const [from = "", to = "", ...rest] = text.split("..");
  const read = { from: instant(from), to: instant(to) };
  if (rest.length > 0 || read.from >= read.to) {
    throw new InvalidArgumentError("It must be FROM..TO, and FROM the earlier one (2026-01-31..2026-02-02).");
  }
  return [...before, read];
};

export const wholeNumber =
  (least: number, most: number) =>
  (text: string): number => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };

/** "24h", "30m"; in milliseconds. A bare number could be of anything, and is refused. */
export const duration = (text: string): number => {
  const value = /^\d+(\.\d+)?$/.test(text) ? undefined : milliseconds(text);
  if (value !== undefined) return value;
  throw new InvalidArgumentError("It must be a duration, such as 24h or 30m.");
};

/** "5%" or "0.05". */
export const share = (text: string): number => {
  const [, digits, percent] = /^(\d+(?:\.\d+)?)(%?)$/.exec(text) ?? [];
  const value = Number(digits) / (percent ? 100 : 1);
  if (digits !== undefined && value <= 1) return value;
  throw new InvalidArgumentError("It must be a share, such as 5% or 0.05.");
};

export const zone = (text: string): string => {
  try {
    return canonicalZone(text);
  } catch (error) {
    throw new InvalidArgumentError(`${(error as InvalidOptionsError).problems.join("; ")}.`);
  }
};
