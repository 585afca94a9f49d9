/** A drill that a job hasn't stood. */
import { CronfenceError } from "../../errors.ts";

/** What went wrong, in words for the job's developer. */
export class DrillFailedError extends CronfenceError {
  override readonly name = "DrillFailedError";
  readonly job: string;
  /** Such as "paused holder". */
  readonly drill: string;
  /** What was done to the job when it happened. */
  readonly where: string;
  readonly problems: readonly string[];

  constructor(job: string, drill: string, where: string, problems: readonly string[], hints: readonly string[] = []) {
    const lines = [...problems.map((problem) => `  - ${problem}`), ...hints.map((hint) => `  hint: ${hint}`)];
    super("DRILL_FAILED", `job "${job}", drill "${drill}": ${where}\n${lines.join("\n")}`);
    this.job = job;
    this.drill = drill;
    this.where = where;
    this.problems = problems;
  }
}
