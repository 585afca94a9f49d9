/** What the main drill prints at its end: the runs as they are on record, the checks, and whether all of them hold. */
import Table from "cli-table3";
import type { RunRecord } from "cronfence";
import { type Check, checksOf, type Figures, minute, number } from "./checks.ts";

export interface Verdict {
  readonly text: string;
  /** 0 only if every check holds. */
  readonly exitStatus: 0 | 1;
}

/**
 * @param processes the process that each run was in, by the run's id
 * @param color whether the marks may be coloured
 */
export const verdictOn = (figures: Figures, processes: ReadonlyMap<string, string>, color = false): Verdict => {
  const checks = checksOf(figures);
  const broken = checks.filter(({ holds }) => !holds);
  const last =
    broken.length === 0
      ? `All ${checks.length} checks hold.`
      : `${broken.length} of ${checks.length} checks don't hold: ${broken.map(({ name }) => name).join("; ")}.`;
  const text = ["Runs on record", runsTable(figures.records, processes), "Checks", checksTable(checks, color), last];
  return { text: text.join("\n"), exitStatus: broken.length === 0 ? 0 : 1 };
};

const plain = { head: [], border: [], compact: true };

const runsTable = (records: readonly RunRecord[], processes: ReadonlyMap<string, string>): string => {
  const table = new Table({
    head: ["fence", "outcome", "items", "commits", "owner", "process", "ticks"],
    colAligns: ["left", "left", "right", "right", "left", "left", "left"],
    style: plain,
  });
  for (const { id, fence, outcome, items, commits, owner, ticks } of records) {
    table.push([
      fence ?? "?",
      outcome,
      number(items),
      number(commits),
      owner.slice(0, 8),
      processes.get(id) ?? "?",
      ticks === undefined
        ? "none"
        : ticks.count === 1
          ? minute(ticks.through)
          : `${minute(ticks.from)} to ${minute(ticks.through)} (${ticks.count})`,
    ]);
  }
  return table.toString();
};

const checksTable = (checks: readonly Check[], color: boolean): string => {
  const table = new Table({
    head: ["", "check", "figures"],
    colWidths: [4, 42, 50],
    wordWrap: true,
    style: { head: [], border: [] },
  });
  for (const { name, holds, figures } of checks) table.push([mark(holds, color), name, figures]);
  return table.toString();
};

const mark = (holds: boolean, color: boolean): string => {
  const sign = holds ? "✓" : "✗";
  return color ? `\u001b[${holds ? 32 : 31}m${sign}\u001b[39m` : sign;
};
