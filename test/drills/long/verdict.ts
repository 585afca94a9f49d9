/** What a long drill prints at its end: what went wrong on purpose, how the runs ended, and what was lost. */
import Table from "cli-table3";
import { number } from "../checks.ts";
import { differencesIn, lossOf } from "./differences.ts";
import { jobsOf, type LongFigures } from "./figures.ts";

export interface LongVerdict {
  readonly text: string;
  /** 0 only if nothing differs. */
  readonly exitStatus: 0 | 1;
}

export const longVerdictOn = (figures: LongFigures): LongVerdict => {
  const differences = differencesIn(figures);
  const { lost, doubled } = lossOf(figures);
  const text = [
    "What went wrong on purpose",
    countsTable(["fault", "times"], Object.entries(figures.faults).sort()),
    "How the runs ended, as they are on record",
    runsTable(figures),
    ...jobsOf(figures).map(
      ({ name, due, times }) =>
        `${name}: ${number(due.length)} ticks due, ${number(Object.keys(times).length)} rows of work`,
    ),
    `Lost: ${amount(lost.length)}. Done twice: ${amount(doubled.length)}.`,
    ...differences.map((difference) => `✗ ${difference}`),
    differences.length === 0
      ? `Everything was done exactly once (seed ${figures.seed}).`
      : `It went wrong: npm run drill -- --seed ${figures.seed} --seconds ${figures.seconds} draws the same faults again.`,
  ];
  return { text: text.join("\n"), exitStatus: differences.length === 0 ? 0 : 1 };
};

const amount = (count: number): string => (count === 0 ? "nothing" : number(count));

const plain = { head: [], border: [], compact: true };

const countsTable = (head: [string, string], counts: readonly (readonly [string, number])[]): string => {
  const table = new Table({ head, colAligns: ["left", "right"], style: plain });
  for (const [name, count] of counts) table.push([name, number(count)]);
  return table.toString();
};

const runsTable = (figures: LongFigures): string => {
  const jobs = jobsOf(figures);
  const outcomes = [...new Set(jobs.flatMap(({ records }) => records.map(({ outcome }) => outcome)))].sort();
  const table = new Table({
    head: ["outcome", ...jobs.map(({ name }) => name)],
    colAligns: ["left", ...jobs.map(() => "right" as const)],
    style: plain,
  });
  for (const outcome of outcomes) {
    table.push([
      outcome,
      ...jobs.map(({ records }) => number(records.filter((one) => one.outcome === outcome).length)),
    ]);
  }
  return table.toString();
};
