/**
 * Reads calendars from files: the only part of schedules that does I/O, imported by itself. ICS is read by ical.js, which
 * is loaded only when such a file is met.
 */

import { readFile } from "node:fs/promises";
import { InvalidOptionsError } from "../errors.ts";
import { calendar, type Exception } from "./calendar.ts";
import type { Calendar } from "./schedule.ts";

/**
 * The calendar in the file `path`, by its ending:
 *
 * - `.json`: a list of exceptions as `calendar` takes them, or an object whose `except` is one;
 * - `.ics`: iCalendar (RFC 5545). Events of whole days remove those dates in the schedule's zone, timed events are
 *   freezes, and the reason is the event's summary. Repeated events are followed through 2099. Cancelled events are left
 *   out. A timed event needs `Z` or a known IANA zone.
 *
 * @throws InvalidOptionsError naming the file and everything in it that can't be read.
 */
export async function readCalendarFile(path: string): Promise<Calendar> {
  const refuse = (problem: string, cause?: unknown): never => {
    throw new InvalidOptionsError(`calendar file ${path}`, [problem], { cause });
  };
  const text = await readFile(path, "utf8").catch((error: Error) => refuse(error.message, error));
  let exceptions: readonly Exception[];
  try {
    if (path.endsWith(".json")) exceptions = exceptionsOf(JSON.parse(text));
    else if (path.endsWith(".ics")) exceptions = (await import("./icalendar.ts")).readICalendar(text);
    else return refuse("its name must end in .json or .ics");
    return calendar(exceptions);
  } catch (error) {
    if (error instanceof InvalidOptionsError) return refuse(error.problems.join("; "), error);
    return refuse((error as Error).message, error);
  }
}

function exceptionsOf(content: unknown): readonly Exception[] {
  const list = Array.isArray(content) ? content : (content as { except?: unknown } | null)?.except;
  if (!Array.isArray(list)) throw new Error('it must hold a list of exceptions, or an object with one as "except"');
  for (const entry of list) {
    const shape = typeof entry === "object" && entry !== null ? Object.keys(entry).sort().join() : typeof entry;
    if (!["string", "on,reason", "from,to", "from,reason,to"].includes(shape)) {
      throw new Error(`${JSON.stringify(entry)} isn't a date, a range, {"on", "reason"} or {"from", "to", "reason"}`);
    }
  }
  return list;
}
