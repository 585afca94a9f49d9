/**
 * The one source of time. Everything that needs "now" or a timer is handed a `Clock`, so that tests set the time
 * and nothing sleeps. Safety never depends on it: a wrong clock can only change how soon work resumes.
 */

/** Time as cronfence sees it: wall time in milliseconds since the epoch, and timers on that same time. */
export interface Clock {
  /** The current wall time, in milliseconds since the epoch. */
  now(): number;
  /**
   * Calls `wake` once, `delayMs` milliseconds from now, unless the returned function is called first.
   * A process isn't kept alive by a pending timer.
   */
  after(delayMs: number, wake: () => void): () => void;
}

/** The machine's own clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after: (delayMs, wake) => {
    const timer = setTimeout(wake, Math.min(delayMs, longestTimerMs));
    timer.unref?.();
    return () => clearTimeout(timer);
  },
};

/** Node fires a longer timer at once: https://nodejs.org/docs/latest/api/timers.html#settimeoutcallback-delay-args */
const longestTimerMs = 2 ** 31 - 1;

/** Resolves after `delayMs` on `clock`, or as soon as `signal` aborts; never rejects. */
export const pause = (clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const wake = () => {
      cancel();
      signal?.removeEventListener("abort", wake);
      resolve();
    };
    const cancel = clock.after(delayMs, wake);
    signal?.addEventListener("abort", wake, { once: true });
  });
