/** When a job's alarms go off. */
import { type Duration, milliseconds } from "./duration.ts";

export interface AlertOptions {
  /**
   * How late a tick may be done, beyond its jitter and the job's timeout, before that pages. At least a minute, since
   * EventBridge delivers within one.
   * @default "10m"
   */
  readonly missedAfter?: Duration;
  /** How many failed ticks in a row page; retries of one tick count once. @default 3 */
  readonly failures?: number;
}

export interface Alert {
  readonly missedAfterMs: number;
  readonly failures: number;
}

export const alertOf = ({ missedAfter = "10m", failures = 3 }: AlertOptions = {}): Alert => ({
  missedAfterMs: milliseconds(missedAfter) as number,
  failures,
});

/** https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html */
export const leastSlackMs = 60_000;
