/** What an attempt comes to: the report its caller gets, which is also what its last log line says. */
import type { ControlState, TickRange } from "./control/control-store.ts";
import type { Outcome } from "./outcome.ts";

/** Serialisable, so that it can be a Lambda function's answer. Instants are ISO 8601 strings. */
export interface RunReport {
  readonly job: string;
  readonly outcome: Outcome;
  /** Absent for an attempt that never became a run. */
  readonly run?: string;
  readonly fence?: number;
  /** The tick that was delivered. */
  readonly tick?: string;
  /** The ticks that the run covers. */
  readonly ticks?: { readonly from: string; readonly through: string; readonly count: number };
  readonly items: number;
  /** Items whose own condition didn't hold. */
  readonly itemsSkipped?: number;
  /** Items set aside after repeated failure. */
  readonly itemsParked?: number;
  readonly commits: number;
  readonly durationMs: number;
  readonly nextTick?: string;
  /** What is left to do after `capped`. */
  readonly backlog?: string;
  readonly error?: { readonly name: string; readonly code?: string; readonly message: string };
  /** Who held the lease, for `held` and `queued`. */
  readonly holder?: { readonly run?: string; readonly fence: number; readonly leaseUntil?: string };
  readonly version?: string;
  /** For a dry run: writes that would have been sent. */
  readonly wouldWrite?: number;
  /** What made the run fail, as it was thrown. Not enumerable, so not part of the JSON. */
  readonly thrown?: unknown;
}

export const isoOf = (instant: number): string => new Date(instant).toISOString();

export const rangeOf = (ticks: TickRange): NonNullable<RunReport["ticks"]> => ({
  from: isoOf(ticks.from),
  through: isoOf(ticks.through),
  count: ticks.count,
});

export const holderOf = (state: ControlState): NonNullable<RunReport["holder"]> => ({
  fence: state.fence,
  ...(state.run === undefined ? {} : { run: state.run.id }),
  ...(state.leaseUntil === undefined ? {} : { leaseUntil: isoOf(state.leaseUntil) }),
});

/** An error as it is kept in a record: whatever was thrown, cut to what a record can hold. */
export const errorOf = (thrown: unknown): NonNullable<RunReport["error"]> => {
  try {
    return readError(thrown);
  } catch {
    return { name: "Error", message: "something was thrown that can't be read" };
  }
};

const readError = (thrown: unknown): NonNullable<RunReport["error"]> => {
  const { name, code, message } =
    typeof thrown === "object" && thrown !== null
      ? (thrown as { name?: unknown; code?: unknown; message?: unknown })
      : { name: "Error", code: undefined, message: String(thrown) };
  return {
    name: cut(name ?? "Error", 200),
    ...(typeof code === "string" ? { code: cut(code, 200) } : {}),
    message: cut(message ?? "", 2_000),
  };
};

const cut = (text: unknown, most: number): string => {
  const whole = String(text);
  return whole.length > most ? `${whole.slice(0, most - 1)}…` : whole;
};

export const withThrown = (report: RunReport, thrown: unknown): RunReport =>
  thrown === undefined ? report : Object.defineProperty({ ...report }, "thrown", { value: thrown });
