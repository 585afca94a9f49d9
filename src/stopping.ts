/**
 * When a run must stop, whatever its work does: at its deadline, when the platform asks, or when the lease is lost.
 * The first reason wins. It only decides how soon work stops; what may still be written is decided by the fence.
 */
import type { Attempt } from "./attempt.ts";
import { RunEndedError, RunInterruptedError, RunTimedOutError } from "./errors.ts";
import type { RunOutcome } from "./outcome.ts";
import type { Ending } from "./run-record.ts";

export interface Stopping {
  readonly signal: AbortSignal;
  /** Resolves when the run must stop. */
  readonly stopped: Promise<Ending>;
  /** Why the run must stop, once it must. */
  readonly ending: Ending | undefined;
  /** What calls on the run are refused with, once it has stopped or ended. */
  readonly halted: Error | undefined;
  stop(outcome: RunOutcome, error: Error): void;
  /** The run has ended: nothing more is accepted, and nothing is waited for. */
  close(outcome: RunOutcome): void;
}

export const watchStopping = ({ spec, runId, startedAt, deadline, clock, interrupt }: Attempt): Stopping => {
  let halted: Error | undefined;
  let closedAs: RunOutcome | undefined;
  let ending: Ending | undefined;
  const abort = new AbortController();
  let resolve: (ending: Ending) => void = () => {};
  const stopped = new Promise<Ending>((resolveStopped) => {
    resolve = resolveStopped;
  });
  const stop = (outcome: RunOutcome, error: Error) => {
    if (halted !== undefined || closedAs !== undefined) return;
    halted = error;
    ending = { outcome, error };
    abort.abort(error);
    resolve(ending);
  };
  const cancelDeadline = Number.isFinite(deadline)
    ? clock.after(Math.max(0, deadline - clock.now()), () =>
        stop("timed_out", new RunTimedOutError(spec.name, runId, deadline - startedAt)),
      )
    : () => {};
  const onInterrupt = () =>
    stop("interrupted", new RunInterruptedError(spec.name, runId, String(interrupt?.reason ?? "asked to stop")));
  interrupt?.addEventListener("abort", onInterrupt, { once: true });
  if (interrupt?.aborted) onInterrupt();
  return {
    signal: abort.signal,
    stopped,
    get ending() {
      return ending;
    },
    get halted() {
      // Made when somebody asks: most runs end with nobody left who does.
      if (closedAs !== undefined) halted ??= new RunEndedError(spec.name, runId, closedAs);
      return halted;
    },
    stop,
    close: (outcome) => {
      closedAs ??= outcome;
      cancelDeadline();
      interrupt?.removeEventListener("abort", onInterrupt);
    },
  };
};
