/**
 * Whether a long drill left everything as if nothing had gone wrong: every item done exactly once, every tick with one state
 * that says it is done, no run unfinished, and records that say what the tables say. Pure; what differs is said in words.
 */
import type { TickState } from "../../../src/ledger/entry.ts";
import { type JobFigures, jobsOf, type LongFigures, type Times } from "./figures.ts";
import { lineId, linesPerTick, stepId } from "./jobs.ts";

export interface Loss {
  /** Work that should have been done, and wasn't. */
  readonly lost: readonly string[];
  /** Work that was done more than once, or that nobody asked for. */
  readonly doubled: readonly string[];
}

export const lossOf = (figures: LongFigures): Loss => {
  const { carts, cartsJob, linesJob, stepsJob } = figures;
  const open = carts.filter(({ expired }) => !expired).map(({ id }) => `${id} is still open`);
  const missing = figures.inserted.carts - carts.length;
  const losses = [
    lossBeside(
      carts.map(({ id }) => id),
      cartsJob.times,
    ),
    lossBeside(linesDue(linesJob), linesJob.times),
    lossBeside(stepsDone(stepsJob), stepsJob.times),
  ];
  return {
    lost: [...(missing > 0 ? [`${missing} carts aren't there`] : []), ...open, ...losses.flatMap(({ lost }) => lost)],
    doubled: losses.flatMap(({ doubled }) => doubled),
  };
};

/** What differs, a sentence each; nothing where all is well. */
export const differencesIn = (figures: LongFigures): readonly string[] => {
  const { lost, doubled } = lossOf(figures);
  return [
    ...some("lost", lost),
    ...some("doubled", doubled),
    ...jobsOf(figures).flatMap((job) => [...ledgerDifferences(job), ...unfinished(job), ...idle(job)]),
    ...recordDifferences(figures),
    ...(figures.inserted.leastSpareMs < 0
      ? [
          `an insert came ${-figures.inserted.leastSpareMs} ms later than the source's settle allows: the machine was too slow ` +
            "for this drill, which proves nothing about carts",
        ]
      : []),
    ...(Object.values(figures.faults).some((times) => times > 0) ? [] : ["nothing went wrong, so nothing was proved"]),
  ];
};

const lossBeside = (due: readonly string[], times: Times): Loss => {
  const wanted = new Set(due);
  return {
    lost: due.filter((id) => times[id] === undefined).map((id) => `${id} was never done`),
    doubled: Object.entries(times).flatMap(([id, done]) => {
      if (!wanted.has(id)) return [`${id} was done, and nobody asked for it`];
      return done === 1 ? [] : [`${id} was done ${done} times`];
    }),
  };
};

const linesDue = ({ due }: JobFigures): string[] =>
  due.flatMap((tick) => Array.from({ length: linesPerTick }, (_, line) => lineId(new Date(tick).toISOString(), line)));

const stepsDone = ({ state }: JobFigures): string[] =>
  Array.from({ length: Number(state?.watermark ?? 0) }, (_, index) => stepId(index + 1));

/** After the last, quiet run nothing that was due is in another state. */
const settled: readonly TickState[] = ["done", "covered"];

const ledgerDifferences = ({ name, due, ledger }: JobFigures): string[] => {
  const states = new Map<number, string[]>();
  for (const { tick, state } of ledger) states.set(tick, [...(states.get(tick) ?? []), state]);
  const all = [...new Set([...due, ...states.keys()])].sort((one, other) => one - other);
  const wrong = all.flatMap((tick) => {
    const found = states.get(tick) ?? [];
    const isDue = due.includes(tick);
    if (isDue && found.length === 1 && settled.some((state) => state === found[0])) return [];
    const said = found.length === 0 ? "isn't in the ledger" : `is ${found.join(" and ")}`;
    return [`${new Date(tick).toISOString()} ${said}${isDue ? "" : ", and was never due"}`];
  });
  return some(`job ${name}: ticks`, wrong);
};

const unfinished = ({ name, state }: JobFigures): string[] => {
  if (state === undefined) return [`job ${name}: there is no control item`];
  const { owner, run, prev, pending } = state;
  const left = [
    ...(owner === undefined ? [] : [`the lease is held by ${owner}`]),
    ...(run === undefined ? [] : [`run ${run.id} is unfinished`]),
    ...prev.map(({ id }) => `run ${id} was never recorded`),
    ...(state.unfinished === 0 ? [] : [`${state.unfinished} acquisitions are counted as unfinished`]),
    ...(pending === undefined ? [] : [`the tick of ${new Date(pending).toISOString()} is still queued`]),
  ];
  return some(`job ${name}: left over`, left);
};

/** A job that did nothing hides everything. */
const idle = ({ name, times, records }: JobFigures): string[] =>
  Object.keys(times).length > 0 && records.some(({ outcome }) => outcome === "succeeded")
    ? []
    : [`job ${name}: it did nothing`];

/** Each run wrote as many audit rows as its record says, whatever became of it. */
const recordDifferences = ({ cartsByRun, cartsJob: { records } }: LongFigures): string[] => {
  const onRecord = new Map(records.map(({ id, items }) => [id, items]));
  const ids = [...new Set([...onRecord.keys(), ...Object.keys(cartsByRun)])];
  return some(
    "records of expire-carts",
    ids
      .filter((id) => (onRecord.get(id) ?? 0) !== (cartsByRun[id] ?? 0))
      .map((id) => `run ${id} wrote ${cartsByRun[id] ?? 0}, and its record says ${onRecord.get(id) ?? "nothing"}`),
  );
};

const shown = 8;

/** A sentence, with the first few of them. */
const some = (what: string, which: readonly string[]): string[] => {
  if (which.length === 0) return [];
  const more = which.length > shown ? `; and ${which.length - shown} more` : "";
  return [`${what} (${which.length}): ${which.slice(0, shown).join("; ")}${more}`];
};
