/** What every act must say, checked before anything is asked or written: a caller in JavaScript may hand over anything. */
import type { EndingAct } from "../control/control-store.ts";
import { InvalidOptionsError } from "../errors.ts";
import { isJobName } from "../job-name.ts";

/** One sentence for each thing that is missing or can't be. */
export const problemsOf = (job: unknown, act: EndingAct): string[] => {
  const problems = nameProblems("job", job);
  const { by, why, fence, cancel }: Partial<EndingAct> = act ?? {};
  for (const [name, value] of Object.entries({ by, why } as Record<string, unknown>)) {
    if (typeof value !== "string" || value.trim() === "")
      problems.push(`${name} is ${show(value)}, and must say ${name === "by" ? "who does it" : "why"}`);
  }
  if (fence !== undefined && !Number.isInteger(fence))
    problems.push(`fence is ${show(fence)}, and must be the fence that was seen, a whole number`);
  if (cancel !== undefined && typeof cancel !== "boolean")
    problems.push(`cancel is ${show(cancel)}, and must be true or false`);
  return problems;
};

export const nameProblems = (what: string, name: unknown): string[] =>
  isJobName(name) ? [] : [`${what} is ${show(name)}, and must be at most 64 letters, digits, "-" and "_"`];

/** @param than it must be later than this, in milliseconds since the epoch */
export const laterProblems = (what: string, instant: unknown, than: number): string[] =>
  isTime(instant) && instant > than
    ? []
    : [`${what} is ${show(instant)}, and must be later than now (${than}), in milliseconds since the epoch`];

export const timeProblems = (what: string, instant: unknown): string[] =>
  isTime(instant) ? [] : [`${what} is ${show(instant)}, and must be milliseconds since the epoch, a whole number`];

/** What a `Date` can be made of: https://tc39.es/ecma262/#sec-time-values-and-time-range */
const isTime = (instant: unknown): instant is number =>
  Number.isInteger(instant) && Math.abs(instant as number) <= 8.64e15;

/** The key of a parked item or of an effect. */
export const keyProblems = (key: unknown): string[] =>
  typeof key === "string" && key !== "" ? [] : [`key is ${show(key)}, and must be a text`];

/** @throws InvalidOptionsError where there are any */
export const refuse = (act: string, problems: readonly string[]): void => {
  if (problems.length > 0) throw new InvalidOptionsError(act, problems);
};

/** JSON has no NaN and no bigint. */
export const show = (value: unknown): string =>
  typeof value === "object" || typeof value === "string" ? JSON.stringify(value) : String(value);
