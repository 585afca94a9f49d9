/**
 * Logging: one line at the start and one at the end of each attempt; user code gets a child of the same logger.
 * No payloads and no secrets: items, watermarks and events are never logged. A single item that was skipped, tried again or
 * parked, and the first few that a guard counted, are named by their cursors, or nobody could find them.
 */
import { pino } from "pino";

/** What cronfence needs of a logger; pino's and most others' fit. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(bindings: object): Logger;
}

let shared: Logger | undefined;

/** JSON lines on standard output, at the level of the environment's CRONFENCE_LOG_LEVEL (default "info"). */
export const defaultLog = (): Logger => {
  shared ??= pino({
    level: process.env.CRONFENCE_LOG_LEVEL || "info",
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label) => ({ level: label }) },
  });
  return shared;
};
