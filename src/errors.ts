/**
 * Every error that cronfence throws. Tell them apart by `code` (bundling can load a class twice, so `instanceof`
 * isn't reliable); the message is for people and may change. Expected outcomes (held, duplicate, paused…) are values
 * in a run's report, not errors: an error means that somebody must act.
 */

/** The base of all of cronfence's errors. */
export class CronfenceError extends Error {
  /** Stable, for programs. */
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "CronfenceError";
    this.code = code;
  }
}

/** Whether `error` is one of cronfence's own with this code. Works across bundles. */
export const hasCode = (error: unknown, code: string): boolean =>
  typeof error === "object" && error !== null && (error as { code?: unknown }).code === code;

/** Options that can't be accepted; every problem found is listed, each with its option, value and what is allowed. */
export class InvalidOptionsError extends CronfenceError {
  override readonly name = "InvalidOptionsError";
  /** One sentence for each problem. */
  readonly problems: readonly string[];

  constructor(subject: string, problems: readonly string[], options?: ErrorOptions) {
    super("INVALID_OPTIONS", `${subject}: ${problems.join("; ")}`, options);
    this.problems = problems;
  }
}

/** A schedule expression that can't be parsed, never fires, or has no equivalent in the asked-for dialect. */
export class InvalidScheduleError extends CronfenceError {
  override readonly name = "InvalidScheduleError";
  readonly expression: string;
  /** Offset of the first offending character in `expression`, from 0, where one can be named. */
  readonly position: number | undefined;

  constructor(expression: string, reason: string, position?: number, options?: ErrorOptions) {
    super(
      "INVALID_SCHEDULE",
      `schedule "${expression}"${position === undefined ? "" : ` at character ${position + 1}`}: ${reason}`,
      options,
    );
    this.expression = expression;
    this.position = position;
  }
}
