/**
 * Pings to an outside dead man's switch (Healthchecks, Cronitor, Sentry and the like), which notices when they stop coming:
 * the one watcher that doesn't depend on this account's scheduler, functions and alarms.
 *
 * Guarantees: a ping never changes a run. It has a short time, one more try, and a line in the log where it fails; that
 * line names its host only, since the rest of its URL is usually a secret.
 */
import type { Clock } from "../clock.ts";
import { CronfenceError } from "../errors.ts";
import type { Outcome } from "../outcome.ts";
import type { EndedRun, RunObserver, StartedRun } from "./observers.ts";

/**
 * Where to ping. `{run}`, `{job}` and `{tick}` in a URL stand for the run's id, the job's name and the delivered tick. A URL
 * without `{run}` gets the run's id as the parameter `rid`, as Healthchecks wants it.
 *
 * | service | start | success | fail |
 * | --- | --- | --- | --- |
 * | Healthchecks | `https://hc-ping.com/ID/start` | `https://hc-ping.com/ID` | `https://hc-ping.com/ID/fail` |
 * | Cronitor | `…/p/KEY/JOB?state=run&series={run}` | `…?state=complete&series={run}` | `…?state=fail&series={run}` |
 * | Sentry | `…/cron/JOB/KEY/?check_in_id={run}&status=in_progress` | `…&status=ok` | `…&status=error` |
 */
export interface PingUrls {
  readonly start?: string;
  readonly success?: string;
  readonly fail?: string;
}

export const pingKinds = ["start", "success", "fail"] as const;

type PingKind = (typeof pingKinds)[number];

export interface PingDeps {
  readonly clock: Clock;
  /** How long one try may take, in milliseconds. @default 2000 */
  readonly timeoutMs?: number;
}

/** Whether a text can be pinged. */
export const isPingUrl = (text: unknown): boolean =>
  typeof text === "string" && URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);

/** Pings for every run that isn't a dry one. */
export const runPings = (urls: PingUrls, deps: PingDeps): RunObserver => {
  const ping = async (kind: PingKind, run: StartedRun, signal: AbortSignal) => {
    const url = urls[kind];
    if (url !== undefined) await send(kind, urlFor(url, run), deps, signal);
  };
  return {
    name: "ping",
    started: async (run, signal) => {
      if (!run.dryRun) await ping("start", run, signal);
    },
    ended: async (run, signal) => {
      const kind = kindOf(run);
      if (kind !== undefined && !run.dryRun) await ping(kind, run, signal);
    },
  };
};

/**
 * A run that was replaced or cancelled says nothing: its successor does, and a late "fail" would hide the success of that
 * one. An end that nobody knows is a failure until somebody does.
 */
const kindOf = ({ report }: EndedRun): PingKind | undefined =>
  report === undefined ? "fail" : kindsByOutcome[report.outcome];

const kindsByOutcome: Partial<Record<Outcome, PingKind>> = {
  succeeded: "success",
  capped: "success",
  failed: "fail",
  timed_out: "fail",
  interrupted: "fail",
  guard_tripped: "fail",
};

const urlFor = (template: string, { run, job, tick }: StartedRun): URL => {
  const values = { run, job, tick: tick === undefined ? "" : new Date(tick).toISOString() };
  const url = new URL(
    template.replaceAll(/\{(run|job|tick)\}/g, (_, name: keyof typeof values) => encodeURIComponent(values[name])),
  );
  if (!template.includes("{run}")) url.searchParams.set("rid", run);
  return url;
};

/** A ping that didn't arrive, as far as is known. */
class PingError extends CronfenceError {
  override readonly name = "PingError";

  constructor(kind: PingKind, host: string, problem: string, options?: ErrorOptions) {
    super("PING", `the ${kind} ping to ${host} failed: ${problem}`, options);
  }
}

const send = async (kind: PingKind, url: URL, deps: PingDeps, signal: AbortSignal): Promise<void> => {
  const first = await tryOnce(url, deps, signal);
  if (first === undefined) return;
  const second = first.again && !signal.aborted ? await tryOnce(url, deps, signal) : first;
  if (second !== undefined) throw new PingError(kind, url.host, second.problem);
};

/** What went wrong, if something did, and whether another try may do better. */
const tryOnce = async (
  url: URL,
  { clock, timeoutMs = 2_000 }: PingDeps,
  signal: AbortSignal,
): Promise<{ readonly problem: string; readonly again: boolean } | undefined> => {
  const abort = new AbortController();
  const cancel = clock.after(timeoutMs, () => abort.abort());
  try {
    const response = await fetch(url, { signal: AbortSignal.any([signal, abort.signal]) });
    await response.body?.cancel();
    if (response.ok) return undefined;
    return { problem: `status ${response.status}`, again: response.status >= 500 || response.status === 429 };
  } catch (error) {
    if (abort.signal.aborted) return { problem: `no answer within ${timeoutMs} ms`, again: true };
    const { code } = ((error as { cause?: unknown }).cause ?? {}) as { code?: string };
    return { problem: code ?? "no connection", again: true };
  } finally {
    cancel();
  }
};
