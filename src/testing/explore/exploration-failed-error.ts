/** What an exploration has found, as one readable text: the rule, the faults that break it, and everything that happened. */
import { CronfenceError } from "../../errors.ts";
import { faultKinds, type ScheduledFault } from "./schedule.ts";

export interface FoundFailure {
  /** The rule that doesn't hold, and what was seen. */
  readonly broken: string;
  /** The shortest schedule that breaks it: `explore(job, { …, replay })` plays it again. */
  readonly replay: string;
  readonly faults: readonly ScheduledFault[];
  /** One line for each event: time, who, what, and what became of it. */
  readonly timeline: readonly string[];
  /** How many schedules were played before it was found. */
  readonly schedules: number;
}

/** A schedule that breaks a rule. */
export class ExplorationFailedError extends CronfenceError implements FoundFailure {
  override readonly name = "ExplorationFailedError";
  readonly job: string;
  readonly broken: string;
  readonly replay: string;
  readonly faults: readonly ScheduledFault[];
  readonly timeline: readonly string[];
  readonly schedules: number;

  constructor(job: string, { broken, replay, faults, timeline, schedules }: FoundFailure) {
    const why = faults.map(({ kind, at }) => `  ${at} ${faultKinds[kind]} (${kind})`);
    const head = [
      `job "${job}" breaks a rule`,
      faults.length === 0
        ? " though nothing goes wrong"
        : ` when ${faults.length === 1 ? "this goes" : "these go"} wrong`,
    ].join("");
    super(
      "EXPLORATION_FAILED",
      [
        head,
        ...why,
        "",
        `this doesn't hold: ${broken}`,
        "",
        ...timeline.map((line) => `  ${line}`),
        "",
        `replay: ${JSON.stringify(replay)}`,
      ].join("\n"),
    );
    this.job = job;
    this.broken = broken;
    this.replay = replay;
    this.faults = faults;
    this.timeline = timeline;
    this.schedules = schedules;
  }
}
