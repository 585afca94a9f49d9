/** A logger that keeps its lines, each with the bindings of the child that wrote it, as pino would print them. */
import type { Logger } from "cronfence";

export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into lines of every kind
  readonly [field: string]: any;
}

export interface RecordedLog {
  readonly log: Logger;
  readonly lines: readonly LogLine[];
  /** All of them as one text of JSON, to search for what must not be there. */
  text(): string;
}

export const recordedLog = (): RecordedLog => {
  const lines: LogLine[] = [];
  const loggerWith = (bindings: object): Logger => {
    const at = (level: LogLine["level"]) => (fields: object, message: string) =>
      // As JSON: what can't be serialised wouldn't be in the log either.
      void lines.push(JSON.parse(JSON.stringify({ ...bindings, ...fields, level, message })));
    return {
      debug: at("debug"),
      info: at("info"),
      warn: at("warn"),
      error: at("error"),
      child: (more) => loggerWith({ ...bindings, ...more }),
    };
  };
  return { log: loggerWith({}), lines, text: () => JSON.stringify(lines) };
};
