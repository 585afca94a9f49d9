/** A logger for people: one line per entry, with the time, the job and the fields that say something. */
import type { Logger } from "../observe/log.ts";
import { printable } from "../printable.ts";

export interface PlainLogOptions {
  /** Where a line goes. */
  readonly print: (line: string) => void;
  /** The present, in milliseconds since the epoch. */
  readonly now: () => number;
  /** The least that is printed. @default "info" */
  readonly level?: Level;
}

export type Level = "debug" | "info" | "warn" | "error";
const levels: readonly Level[] = ["debug", "info", "warn", "error"];

/** Prints lines such as `12:05:00.120 expire-carts: attempt ended: succeeded (items 360, commits 8)`. */
export const plainLog = (options: PlainLogOptions, bindings: Readonly<Record<string, unknown>> = {}): Logger => {
  const least = levels.indexOf(options.level ?? "info");
  const write = (level: Level) => (fields: object, message: string) => {
    if (levels.indexOf(level) < least) return;
    const { job, ...rest } = { ...bindings, ...fields } as Record<string, unknown>;
    const said = Object.entries(rest).flatMap(([name, value]) => (value === undefined ? [] : `${name} ${show(value)}`));
    const time = new Date(options.now()).toISOString().slice(11, 23);
    const loud = level === "warn" || level === "error" ? `${level.toUpperCase()} ` : "";
    const subject = job === undefined ? "" : `${job}: `;
    options.print(`${time} ${loud}${subject}${message}${said.length === 0 ? "" : ` (${said.join(", ")})`}`);
  };
  return {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
    child: (more) => plainLog(options, { ...bindings, ...more }),
  };
};

const show = (value: unknown): string =>
  printable(typeof value === "string" ? value : (JSON.stringify(value) ?? String(value)));
