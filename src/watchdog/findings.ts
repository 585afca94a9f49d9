/** What a look of the watchdog finds, and how it is said: a few things in full, many things as a number. */
import type { Logger } from "../observe/log.ts";
import { isoOf } from "../report.ts";
import type { Judgement, Remark, Suspect } from "./judge.ts";

export type Finding = { readonly job: string } & (
  | { readonly kind: "unwatched"; readonly problem: string }
  | { readonly kind: "overdue"; readonly tick: string; readonly overdueMs: number }
  | { readonly kind: "suspect"; readonly suspect: Suspect }
  | { readonly kind: "started"; readonly tick: string }
  | { readonly kind: "notStarted"; readonly tick: string; readonly problem: string }
  | { readonly kind: "remark"; readonly remark: Remark }
);

export interface Findings {
  readonly list: readonly Finding[];
  readonly counts: Readonly<Record<Finding["kind"], number>>;
  add(finding: Finding): void;
  /** Adds what is to be said of a job that was judged. */
  of(job: string, judgement: Judgement): void;
}

/** What was found: counted in full, kept as far as memory stays flat, and logged as far as a log is still read. */
export const collectFindings = (log: Logger): Findings => {
  const list: Finding[] = [];
  const counts = { unwatched: 0, overdue: 0, suspect: 0, started: 0, notStarted: 0, remark: 0 };
  let logged = 0;
  const add = (finding: Finding): void => {
    counts[finding.kind] += 1;
    if (list.length < mostKept) list.push(finding);
    if (logged === mostLogged) log.warn({ logged }, "more was found than is logged; the counts at the end are of all");
    logged += 1;
    if (logged > mostLogged) return;
    const { job, kind, ...what } = finding;
    log[finding.kind === "started" ? "info" : "warn"]({ watched: job, ...what }, messages[kind]);
  };
  return {
    list,
    counts,
    add,
    of: (job, { overdueMs, overdueTick, suspects, remarks }) => {
      if (overdueTick !== undefined) add({ job, kind: "overdue", tick: isoOf(overdueTick), overdueMs });
      for (const suspect of suspects) add({ job, kind: "suspect", suspect });
      for (const remark of remarks) add({ job, kind: "remark", remark });
    },
  };
};

const mostKept = 1_000;
const mostLogged = 100;

const messages: Record<Finding["kind"], string> = {
  unwatched: "a job couldn't be judged",
  overdue: "a tick is overdue",
  suspect: "a run seems to have died or to hang",
  started: "an overdue job was started",
  notStarted: "an overdue job couldn't be started",
  remark: "a job should be looked at",
};
