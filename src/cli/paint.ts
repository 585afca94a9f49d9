/** Colour, where standard output is a terminal and nobody has said NO_COLOR: https://no-color.org */
import { styleText } from "node:util";
import { printable } from "../printable.ts";

type Style = Parameters<typeof styleText>[0];

export const paint = (style: Style, text: string): string =>
  text === "" ? text : styleText(style, text, { stream: process.stdout });

const styles: Readonly<Partial<Record<string, Style>>> = {
  succeeded: "green",
  done: "green",
  capped: "yellow",
  dry_run: "dim",
  interrupted: "yellow",
  cancelled: "yellow",
  paused: "yellow",
  held: "yellow",
  owed: "yellow",
};

/** An outcome or a tick's state: what is well is green, what somebody may have wanted yellow, and all else red. */
export const painted = (outcome: string): string => paint(styles[outcome] ?? "red", outcome);

/** Text for a terminal: no control character but line breaks and the colours of this file reaches it, wherever it came from. */
export const cleaned = (text: string): string =>
  text
    .split(kept)
    .map((part, index) => (index % 2 === 1 ? part : printable(part)))
    .join("");

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are meant
const kept = /(\n|\u001b\[(?:2|22|31|32|33|39)m)/;
