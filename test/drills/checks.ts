/**
 * What the main drill claims, as functions of what it measured: a claim that doesn't hold can't be printed as one that
 * does. Each check says which figures it compared.
 */
import { isDeepStrictEqual } from "node:util";
import type { ControlState, RunRecord, RunReport } from "cronfence";
import type { Effects } from "./carts.ts";

/** A run that was cut short, and the one that took over. */
export interface Succession {
  readonly due: number;
  /** The control item just after the first one was cut short. */
  readonly left: ControlState;
  readonly skewMs: number;
  /** When the successor tried and was held, on its clock. */
  readonly heldAt: readonly number[];
  /** When it tried and was granted the lease. */
  readonly grantedAt: number;
  readonly successor: RunReport;
}

export interface Figures {
  readonly carts: number;
  readonly doubleTrigger: { readonly due: number; readonly reports: readonly RunReport[] };
  readonly stopped: Succession & {
    /** What the stopped process reported after it was continued. */
    readonly holder: RunReport;
    /** The control item, held by the successor, before the stopped process was continued and after it gave up. */
    readonly before: ControlState | undefined;
    readonly after: ControlState | undefined;
  };
  readonly killed: Succession;
  readonly missed: { readonly due: number; readonly ticks: readonly number[]; readonly report: RunReport };
  /** Oldest first. */
  readonly records: readonly RunRecord[];
  readonly effects: Effects;
}

export interface Check {
  readonly name: string;
  readonly holds: boolean;
  /** What was compared. */
  readonly figures: string;
}

export const checksOf = (figures: Figures): readonly Check[] => [
  ...doubleTriggerChecks(figures),
  ...stoppedChecks(figures),
  ...killedChecks(figures),
  ...missedChecks(figures),
  ...onceChecks(figures),
];

const doubleTriggerChecks = ({ doubleTrigger: { due, reports } }: Figures): Check[] => {
  const worked = reports.filter(({ outcome }) => outcome === "succeeded");
  const refused = reports.filter(({ outcome }) => outcome === "held" || outcome === "duplicate");
  return [
    {
      name: "Double trigger: one process works, the other is told so",
      holds: reports.length === 2 && worked.length === 1 && refused.length === 1 && refused[0]?.commits === 0,
      figures: reports.map(({ outcome, commits }) => `${outcome} with ${count(commits, "commit")}`).join(", "),
    },
    {
      name: "Double trigger: every cart due was expired",
      holds: total(reports) === due,
      figures: `${sum(reports.map(({ items }) => items))} expired, ${number(due)} due`,
    },
  ];
};

const stoppedChecks = ({ stopped, records, effects }: Figures): Check[] => {
  const { left, holder, before, after } = stopped;
  const record = recordOf(left, records);
  const rows = effects.byRun[left.run?.id ?? ""] ?? 0;
  return [
    successionCheck("Stopped holder", stopped),
    {
      name: "Stopped holder: continued, it is refused",
      holds: holder.outcome === "lease_lost" && record?.outcome === "lease_lost",
      figures: `it reports ${holder.outcome}, on record as ${record?.outcome ?? "nothing"}`,
    },
    {
      name: "Stopped holder: its late commit changes nothing",
      holds:
        before !== undefined &&
        before.owner !== undefined &&
        isDeepStrictEqual(unrenewed(before), unrenewed(after)) &&
        record?.commits === left.run?.seq &&
        rows === left.run?.items,
      figures:
        `${count(left.run?.seq, "commit")} before the stop, ${number(record?.commits)} on record; ` +
        `${number(left.run?.items)} carts, ${count(rows, "audit row")}; ` +
        `seq ${before?.run?.seq ?? "?"} of fence ${before?.fence ?? "?"} before, ${after?.run?.seq ?? "?"} of ${after?.fence ?? "?"} after`,
    },
    restCheck("Stopped holder", stopped),
  ];
};

const killedChecks = ({ killed, records }: Figures): Check[] => {
  const { left, successor } = killed;
  const dead = recordOf(left, records);
  const next = records.find(({ id }) => id === successor.run);
  return [
    successionCheck("Killed process", killed),
    {
      name: "Killed process: on record as crashed, with what it committed",
      holds: dead?.outcome === "crashed" && dead.commits === left.run?.seq && dead.items === left.run?.items,
      figures:
        `${dead?.outcome ?? "no record"}; ${count(left.run?.seq, "commit")} before, ${number(dead?.commits)} on record; ` +
        `${number(left.run?.items)} carts before, ${number(dead?.items)} on record`,
    },
    {
      name: "Killed process: the next run starts exactly after its last commit",
      holds: left.watermark !== undefined && isDeepStrictEqual(next?.watermarkBefore, left.watermark),
      figures: `left at ${cursor(left.watermark)}, resumed at ${cursor(next?.watermarkBefore)}`,
    },
    restCheck("Killed process", killed),
  ];
};

/** Time decides when others may try: not before the lease is over, and then at the first try. */
const successionCheck = (
  subject: string,
  { left: { leaseUntil = Number.NaN }, skewMs, heldAt, grantedAt }: Succession,
): Check => ({
  name: `${subject}: a successor is held until the lease is over, then granted`,
  holds: grantedAt > leaseUntil + skewMs && heldAt.every((at) => at <= leaseUntil + skewMs),
  figures:
    `${count(heldAt.length, "try", "tries")} held; lease until ${clock(leaseUntil)} + ${skewMs} ms skew, ` +
    `granted at ${clock(grantedAt)}`,
});

const restCheck = (subject: string, { due, left, successor }: Succession): Check => {
  const done = left.run?.items ?? 0;
  return {
    name: `${subject}: its successor does the rest`,
    holds: successor.outcome === "succeeded" && done > 0 && successor.items > 0 && done + successor.items === due,
    figures: `${sum([done, successor.items])} expired, ${number(due)} due`,
  };
};

const missedChecks = ({ missed: { due, ticks, report }, records }: Figures): Check[] => {
  const covered = records.find(({ id }) => id === report.run)?.ticks;
  return [
    {
      name: "Missed ticks: the next run covers them all",
      holds:
        report.outcome === "succeeded" &&
        covered?.from === ticks[0] &&
        covered?.through === ticks.at(-1) &&
        covered?.count === ticks.length,
      figures:
        `${count(ticks.length, "tick")} due (${ticks.map(minute).join(", ")}), ` +
        (covered === undefined
          ? "none on record"
          : `${covered.count} on record (${minute(covered.from)} to ${minute(covered.through)})`),
    },
    {
      name: "Missed ticks: the next run does everything due",
      holds: report.items === due,
      figures: `${number(report.items)} expired, ${number(due)} due`,
    },
  ];
};

const onceChecks = ({ carts, records, effects }: Figures): Check[] => {
  const { rows, fewest, most, byRun, open } = effects;
  const differing = [...new Set([...Object.keys(byRun), ...records.map(({ id }) => id)])].filter(
    (id) => (byRun[id] ?? 0) !== (records.find((record) => record.id === id)?.items ?? 0),
  );
  return [
    {
      name: "Exactly once: no cart is left",
      holds: open === 0,
      figures: `${number(open)} of ${number(carts)} still open`,
    },
    {
      name: "Exactly once: an audit row for every cart, and each cart expired one time",
      holds: rows === carts && fewest === 1 && most === 1,
      figures: `${count(rows, "row")}, ${count(carts, "cart")}; times from ${fewest} to ${most}`,
    },
    {
      name: "Exactly once: the runs' records add up to the carts",
      holds: total(records) === carts,
      figures: `${sum(records.map(({ items }) => items))} on record, ${count(carts, "cart")}`,
    },
    {
      name: "Exactly once: every run wrote as many audit rows as its record says",
      holds: records.length > 0 && differing.length === 0,
      figures: `${count(records.length, "run")}, ${number(differing.length)} of which differ`,
    },
  ];
};

const recordOf = (left: ControlState, records: readonly RunRecord[]) => records.find(({ id }) => id === left.run?.id);

/** The holder may renew its lease meanwhile. */
const unrenewed = (state: ControlState | undefined): Omit<ControlState, "leaseUntil"> => {
  const { leaseUntil: _, ...rest } = state ?? ({} as ControlState);
  return rest;
};

const total = (runs: readonly { readonly items: number }[]): number => runs.reduce((sum, { items }) => sum + items, 0);

const sum = (terms: readonly number[]): string =>
  terms.length === 1
    ? number(terms[0])
    : `${terms.map(number).join(" + ")} = ${number(terms.reduce((a, b) => a + b, 0))}`;
export const number = (value: number | undefined): string => value?.toLocaleString("en-US") ?? "?";
const count = (value: number | undefined, one: string, many = `${one}s`): string =>
  `${number(value)} ${value === 1 ? one : many}`;
export const minute = (instant: number): string => new Date(instant).toISOString().slice(11, 16);
const clock = (instant: number): string =>
  Number.isFinite(instant) ? new Date(instant).toISOString().slice(11, 23) : "?";
/** The time and the end of a cart's cursor. */
const cursor = (watermark: unknown): string =>
  typeof watermark === "string" ? watermark.slice(11) : String(watermark);
