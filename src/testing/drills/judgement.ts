/**
 * What a trial has come to, against what it should have: the same state as after an undisturbed run, no item written and no effect done
 * twice, every tick done once, and nothing of cronfence's own left open.
 */
import { ledgerOf } from "../../rehearse/ledger.ts";
import { DrillFailedError } from "./drill-failed-error.ts";
import type { DrillName } from "./drill-names.ts";
import type { Scene } from "./scene.ts";
import { type Differences, differencesBetween } from "./state.ts";
import type { Aftermath } from "./trial.ts";
import { iso, playOnly, type Undisturbed } from "./undisturbed.ts";

export interface Case {
  readonly drill: DrillName;
  /** What was done to the job. */
  readonly where: string;
  /** @default the scene's */
  readonly ticks?: readonly number[];
  /** @default what an undisturbed run comes to */
  readonly expected?: Aftermath;
  /** Parts of rows that may differ. @default those that may where another run does the work */
  readonly ignored?: ReadonlySet<string>;
  /** What was seen beside the tables, and must not be. */
  readonly seen?: readonly string[];
  /** The watermark that a run which died had moved, where it had. */
  readonly movedTo?: unknown;
}

/** @throws DrillFailedError that says what differs */
export const judge = async (
  scene: Scene,
  undisturbed: Undisturbed,
  found: Aftermath,
  { drill, where, seen = [], movedTo, ...given }: Case,
): Promise<void> => {
  const { job } = scene;
  const fail = (problems: readonly string[], hints: readonly string[] = []): void => {
    if (problems.length > 0) throw new DrillFailedError(job.name, drill, where, problems, hints);
  };
  refuseUnfenced(scene, found, drill, where);
  const ticks = given.ticks ?? scene.ticks;
  const fates = fatesOf(scene, found, ticks);
  const leavesOut = fates.skipped.length > 0 && job.work.shape === "tick";
  const done = new Set(ticks.filter((tick) => !fates.skipped.includes(tick)));
  const expected = leavesOut ? await playOnly(scene, ticks, done) : (given.expected ?? undisturbed.aftermath);
  const ignored = given.ignored ?? undisturbed.ignoredElsewhere;
  const differences = differencesBetween(expected.state, found.state, ignored);
  const twice = [...found.writes].filter(([name, times]) => times > 1 && expected.writes.get(name) === 1);
  const effects = effectsBetween(expected.effects, found.effects);
  const calls = [...found.calls].filter(([call, times]) => times > (expected.calls.get(call) ?? 0));
  const rows = rowProblems(differences);
  const problems = [
    ...seen,
    ...(found.failure === undefined ? [] : [`the last run failed, and no other made it good: ${found.failure}`]),
    ...fates.problems,
    ...rows,
    ...(twice.length === 0
      ? []
      : [`written twice: ${named(twice.map(([name, times]) => `${name} (${times} times)`))}`]),
    ...effects,
    ...calls.map(
      ([call, times]) =>
        `${call} was called ${times} times outside run.once, and ${expected.calls.get(call) ?? 0} times in an undisturbed trial`,
    ),
    ...openEnds(found),
  ];
  fail(problems, [
    ...(movedTo === undefined || differences.missing.length + differences.different.length === 0
      ? []
      : [
          `watermark first: the run that died had moved the watermark to ${JSON.stringify(movedTo)} before the work that it covers was committed, ` +
            "so that the next run passed over it; commit the watermark together with that work (run.commit(writes, { watermark }))",
        ]),
    ...(effects.length + calls.length === 0
      ? []
      : [
          "an effect that isn't idempotent is repeated when its run is; make it inside run.once, or hand the receiver an idempotency key",
        ]),
    ...(twice.length === 0
      ? []
      : [
          "a run that starts again must go on after what was committed: from its watermark, or by a condition of the write",
        ]),
    ...(rows.length > 0 ? dateHint(found) : []),
  ]);
};

/** @throws DrillFailedError when the job has written past its commits */
const refuseUnfenced = (scene: Scene, { unfenced }: Aftermath, drill: DrillName, where: string): void => {
  if (unfenced.length === 0) return;
  const kinds = new Map<string, string[]>();
  for (const { operation, table, key } of unfenced) {
    const kind = `${operation} on table "${table}"`;
    kinds.set(kind, [...(kinds.get(kind) ?? []), key]);
  }
  throw new DrillFailedError(
    scene.job.name,
    drill,
    where,
    [...kinds].map(([kind, keys]) => `it writes outside its commits: ${kind} (${named([...new Set(keys)])})`),
    [
      "no fence stands behind such a write: a paused, doubled or crashed run can make it late or twice, and a dry run makes it, too; " +
        "return it from process or tick, or hand it to run.commit (a table that nothing depends on can be named in unfenced)",
    ],
  );
};

/** What became of the ticks. */
const fatesOf = (scene: Scene, { records }: Aftermath, ticks: readonly number[]) => {
  const problems: string[] = [];
  const skipped: number[] = [];
  if (scene.job.schedule === undefined) return { problems, skipped };
  for (const { tick, fate } of ledgerOf({ due: ticks, removed: [], records })) {
    if (fate.kind === "skipped") skipped.push(tick);
    if (fate.kind === "owed") problems.push(`the tick of ${iso(tick)} is still owed at the end`);
    if (fate.kind === "doubled") problems.push(`the tick of ${iso(tick)} was done by ${fate.runs.length} runs`);
    if (fate.kind === "unaccounted") problems.push(`the tick of ${iso(tick)} was passed over, and no record says why`);
  }
  return { problems, skipped };
};

const rowProblems = ({ missing, extra, different }: Differences): string[] => [
  ...(missing.length === 0 ? [] : [`missing: ${named(missing)}`]),
  ...(extra.length === 0 ? [] : [`there, and not after an undisturbed run: ${named(extra)}`]),
  ...(different.length === 0
    ? []
    : [
        `different: ${named(
          different.map(({ name, path, expected, found }) => {
            const part = path === "" ? "" : `, ${path}`;
            return `${name}${part} is ${text(found)}, and not ${text(expected)}`;
          }),
        )}`,
      ]),
];

/** Effects as often as they are there: too often, or not at all. */
const effectsBetween = (expected: readonly unknown[], found: readonly unknown[]): string[] => {
  const [should, did] = [countOf(expected), countOf(found)];
  const more = [...did].filter(([effect, times]) => times > (should.get(effect) ?? 0));
  const fewer = [...should].filter(([effect, times]) => times > (did.get(effect) ?? 0));
  return [
    ...more.map(([effect, times]) => `effect ${effect} was done ${times} times, and not ${should.get(effect) ?? 0}`),
    ...fewer.map(([effect, times]) => `effect ${effect} was done ${did.get(effect) ?? 0} times, and not ${times}`),
  ].slice(0, mostNamed);
};

const countOf = (entries: readonly unknown[]): Map<string, number> => {
  const counts = new Map<string, number>();
  for (const entry of entries) counts.set(text(entry), (counts.get(text(entry)) ?? 0) + 1);
  return counts;
};

/** What cronfence keeps, and must have closed. */
const openEnds = ({ control, records }: Aftermath): string[] => {
  if (control === undefined) return ["the job's control item is gone"];
  const { owner, run, pending, tickPart, prev, unfinished } = control;
  const open = Object.entries({ owner, run, pending, tickPart }).filter(([, value]) => value !== undefined);
  const fences = records.flatMap(({ fence }) => fence ?? []);
  return [
    ...(open.length === 0
      ? []
      : [`the control item still has ${open.map(([name]) => name).join(", ")}: a run wasn't finished`]),
    ...(prev.length === 0 ? [] : [`${prev.length} unfinished runs aren't recorded`]),
    ...(unfinished === 0 ? [] : [`the control item counts ${unfinished} unfinished runs`]),
    ...(new Set(fences).size === fences.length ? [] : ["two runs had the same fence"]),
  ];
};

export const dateHint = ({ dateReaders }: Aftermath): string[] =>
  dateReaders.length === 0
    ? []
    : [
        `the job's code reads the machine's clock (${dateReaders.slice(0, mostNamed).join(", ")}), which says something else whenever a run is late; ` +
          "take the time of the tick (tick.at, run.tick)",
      ];

const mostNamed = 3;
const named = (names: readonly string[]): string =>
  names.length <= mostNamed
    ? names.join("; ")
    : `${names.slice(0, mostNamed).join("; ")}; and ${names.length - mostNamed} more`;

const text = (value: unknown): string => {
  const whole = value === undefined ? "nothing" : JSON.stringify(value);
  return whole.length > longestText ? `${whole.slice(0, longestText)}…` : whole;
};
const longestText = 120;
