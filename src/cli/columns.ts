/** Tables for people: aligned columns under their headings, at most 100 characters wide. */
import Table from "cli-table3";

export interface Column {
  readonly heading: string;
  /** Wider cells are broken. @default as wide as there is room */
  readonly most?: number;
}

const widest = 100;
const gap = 2;
/** A column that has to give way keeps this much. */
const least = 12;

/** The rows under their headings; columns with nothing in them are left out. */
export const columns = (headings: readonly Column[], rows: readonly (readonly string[])[]): string => {
  const used = headings.map((_, index) => rows.some((row) => row[index] !== ""));
  const shown = headings.filter((_, index) => used[index]);
  const cells = rows.map((row) => row.filter((_, index) => used[index]));
  const widths = narrowed(
    shown.map(({ heading, most = widest }, index) =>
      Math.min(most, Math.max(heading.length, ...cells.map((row) => widthOf(row[index] as string)))),
    ),
  );
  const table = new Table({
    head: shown.map(({ heading }) => heading),
    colWidths: widths.map((width) => width + gap),
    wordWrap: true,
    style: { head: [], border: [], "padding-left": 0, "padding-right": gap },
    chars: noBorders,
  });
  for (const row of cells) table.push(row.map((cell, index) => broken(cell, widths[index] as number)));
  return table
    .toString()
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
};

/** Narrows the widest column until all fit. */
const narrowed = (widths: readonly number[]): number[] => {
  const fitted = [...widths];
  const room = widest - gap * (widths.length - 1);
  for (let over = fitted.reduce((sum, width) => sum + width, 0) - room; over > 0; over -= 1) {
    const at = fitted.indexOf(Math.max(...fitted));
    if ((fitted[at] as number) <= least) break;
    fitted[at] = (fitted[at] as number) - 1;
  }
  return fitted;
};

const widthOf = (cell: string): number => Math.max(...cell.split("\n").map((line) => line.length));

/** Words that are longer than a line are cut into such as fit: a table would leave out their ends. */
const broken = (cell: string, width: number): string =>
  cell.replace(
    new RegExp(`\\S{${width + 1},}`, "g"),
    (word) => word.match(new RegExp(`.{1,${width}}`, "g"))?.join("\n") ?? word,
  );

const noBorders = Object.fromEntries(
  [
    "top top-mid top-left top-right bottom bottom-mid bottom-left bottom-right",
    "left left-mid mid mid-mid right right-mid middle",
  ]
    .join(" ")
    .split(" ")
    .map((name) => [name, ""]),
);
