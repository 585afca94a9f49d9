/** Runs in words: what one line says of a run that goes, or has ended. */
import type { RunEntry, RunRecord } from "../control/control-store.ts";
import { printable } from "../printable.ts";
import { isoOf, type RunReport } from "../report.ts";
import { paint, painted } from "./paint.ts";

/** "12s", "3m 20s": as people count. */
export const elapsed = (ms: number): string => {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (ms < 10_000) return `${(Math.max(0, ms) / 1_000).toFixed(1)}s`;
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 === 0 ? `${minutes}m` : `${minutes}m ${seconds % 60}s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours}h` : `${hours}h ${minutes % 60}m`;
  return hours % 24 === 0 ? `${hours / 24}d` : `${Math.floor(hours / 24)}d ${hours % 24}h`;
};

export const plural = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;

/** "run 3f2a1b0c… has been going for 12s (3 commits, 120 items)" */
export const going = ({ id, startedAt, seq, items = 0, version }: RunEntry, now: number): string =>
  `run ${id} has been going for ${elapsed(now - startedAt)} (${plural(seq, "commit")}, ${plural(items, "item")}` +
  `${version === undefined ? "" : `, version ${version}`})`;

/** "run 3f2a1b0c succeeded after 12s: 120 items in 3 commits, version v7" */
export const ended = (record: RunRecord): string => {
  const { id, outcome, startedAt, endedAt, items, commits, version, backlog, error } = record;
  const parts = [
    `${plural(items, "item")} in ${plural(commits, "commit")}`,
    ...(version === undefined ? [] : [`version ${version}`]),
    ...(backlog === undefined ? [] : [`left: ${printable(backlog)}`]),
  ];
  const why = error === undefined ? "" : `\n${printable(`${error.name}: ${error.message}`)}`;
  return `run ${id} ${wasOf(outcome)} after ${elapsed(endedAt - startedAt)}: ${parts.join(", ")}${why}`;
};

/** The same of a run in this process. */
export const reported = (report: RunReport): string => {
  const { run, outcome, items, commits, durationMs, version, backlog, error, wouldWrite } = report;
  if (outcome === "dry_run") {
    return `dry run: ${plural(wouldWrite ?? 0, "write")} would have been made in ${elapsed(durationMs)}, and none was`;
  }
  if (run === undefined) return `no run: ${noRun(report)}`;
  const parts = [
    `${plural(items, "item")} in ${plural(commits, "commit")}`,
    ...(version === undefined ? [] : [`version ${version}`]),
    ...(backlog === undefined ? [] : [`left: ${printable(backlog)}`]),
  ];
  const why = error === undefined ? "" : `\n${printable(`${error.name}: ${error.message}`)}`;
  return `run ${run} ${wasOf(outcome)} after ${elapsed(durationMs)}: ${parts.join(", ")}${why}`;
};

const noRun = ({ outcome, holder, tick }: RunReport): string => {
  const by = holder?.run === undefined ? "another run" : `run ${holder.run}`;
  const until = holder?.leaseUntil === undefined ? "" : ` until ${holder.leaseUntil}`;
  if (outcome === "held") return `${by} holds the lease${until}`;
  if (outcome === "queued") return `${by} holds the lease${until}, and was asked to do this tick too`;
  if (outcome === "duplicate") return `tick ${tick ?? ""} is done already`;
  return `the job is ${outcome}`;
};

const wasOf = (outcome: string): string =>
  outcome === "succeeded" ? paint("green", outcome) : `ended as ${painted(outcome)}`;

/** Whether somebody should look: for the exit status. */
export const isWell = (outcome: string): boolean =>
  ["succeeded", "capped", "dry_run", "duplicate", "queued"].includes(outcome);

/** A record for programs: instants as ISO 8601. */
export const recordJson = (record: RunRecord) => ({
  ...record,
  startedAt: isoOf(record.startedAt),
  endedAt: isoOf(record.endedAt),
  ...(record.ticks === undefined ? {} : { ticks: rangeJson(record.ticks) }),
  ...(record.skipped === undefined
    ? {}
    : { skipped: record.skipped.map(({ reason, ...range }) => ({ ...rangeJson(range), reason })) }),
  ...(record.backfilled === undefined ? {} : { backfilled: rangeJson(record.backfilled) }),
  ...(record.completed === undefined ? {} : { completed: isoOf(record.completed) }),
  ...(record.nextTick === undefined ? {} : { nextTick: isoOf(record.nextTick) }),
});

const rangeJson = ({ from, through, count }: { from: number; through: number; count: number }) => ({
  from: isoOf(from),
  through: isoOf(through),
  count,
});

/** A run that goes, for programs. */
export const goingJson = (run: RunEntry) => ({
  id: run.id,
  startedAt: isoOf(run.startedAt),
  trigger: run.trigger,
  commits: run.seq - (run.seals ?? 0),
  items: run.items ?? 0,
  ...(run.tick === undefined ? {} : { tick: isoOf(run.tick) }),
  ...(run.requestId === undefined ? {} : { requestId: run.requestId }),
  ...(run.version === undefined ? {} : { version: run.version }),
});
