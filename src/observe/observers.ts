/**
 * Being told of runs: when one has been granted the lease, and when it has ended.
 *
 * Guarantees: an observer never changes what becomes of a run. It doesn't hold up the work, only the report, and that
 * for a few seconds at most; what it throws is logged and nothing else. Attempts that never became a run, and ad hoc dry
 * runs, aren't told of.
 */
import type { Clock } from "../clock.ts";
import type { TriggerKind } from "../control/control-store.ts";
import { errorOf, type RunReport } from "../report.ts";
import type { Logger } from "./log.ts";

/** A run that holds the lease. Instants are in milliseconds since the epoch. */
export interface StartedRun {
  readonly job: string;
  readonly run: string;
  readonly fence: number;
  readonly trigger: TriggerKind;
  /** The tick that was delivered. */
  readonly tick?: number;
  readonly startedAt: number;
  /** It writes nothing but its record. */
  readonly dryRun: boolean;
  readonly version?: string;
}

export interface EndedRun extends StartedRun {
  readonly endedAt: number;
  /** Absent where the end couldn't be recorded, so that nobody knows it yet. */
  readonly report?: RunReport;
  /** Why it couldn't. */
  readonly error?: unknown;
}

/** Something that is told of runs, such as metrics and pings. */
export interface RunObserver {
  /** What it is called in the log. */
  readonly name: string;
  /** The run goes on meanwhile; `ended` is called when this has settled. */
  started?(run: StartedRun, signal: AbortSignal): unknown;
  /** @param signal aborts when the time for it is over */
  ended?(run: EndedRun, signal: AbortSignal): unknown;
}

/** One run, as its observers are told of it. */
export interface Observation {
  /** Tells them that it has ended; resolves when they are done, or their time is over. Never rejects. */
  ended(end: { readonly report?: RunReport; readonly error?: unknown }): Promise<void>;
}

export const observeRun = (
  observers: readonly RunObserver[],
  run: StartedRun,
  { clock, log, remainingMs }: { clock: Clock; log: Logger; remainingMs: (() => number) | undefined },
): Observation => {
  const abort = new AbortController();
  const guarded = async (observer: RunObserver, tell: () => unknown): Promise<void> => {
    try {
      await tell();
    } catch (error) {
      log.warn({ observer: observer.name, error: errorOf(error) }, "an observer of runs failed");
    }
  };
  const beginnings = observers.map((observer) => guarded(observer, () => observer.started?.(run, abort.signal)));
  return {
    ended: async (end) => {
      if (observers.length === 0) return;
      const ended: EndedRun = { ...run, ...end, endedAt: clock.now() };
      const tellAll = Promise.all(
        observers.map(async (observer, index) => {
          await beginnings[index];
          await guarded(observer, () => observer.ended?.(ended, abort.signal));
        }),
      );
      const limitMs = Math.max(0, Math.min(longestMs, (remainingMs?.() ?? Number.POSITIVE_INFINITY) - spareMs));
      let over = () => {};
      const limit = new Promise<"over">((resolve) => {
        over = clock.after(limitMs, () => resolve("over"));
      });
      const first = await Promise.race([tellAll, limit]);
      over();
      abort.abort(new Error("the time for observers is over"));
      if (first === "over") log.warn({ limitMs }, "observers of runs weren't done in time");
    },
  };
};

/** The report isn't held up longer than this. */
const longestMs = 6_000;
/** What is left of an invocation for its answer. */
const spareMs = 100;
