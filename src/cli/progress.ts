/** One line about what is going on, on standard error, while it is a terminal; nothing is left of it at the end. */
import { printable } from "../printable.ts";

let shownAt = Number.NEGATIVE_INFINITY;
let isShown = false;

/** Shows `text` in the place of what was shown before, and not more often than anybody can read. */
export const progress = (text: string): void => {
  const { stderr } = process;
  if (!stderr.isTTY || performance.now() - shownAt < leastMs) return;
  shownAt = performance.now();
  isShown = true;
  stderr.write(`\r\u001b[K${printable(text).slice(0, Math.max(20, (stderr.columns ?? 100) - 1))}`);
};
const leastMs = 150;

/** Before anything else is written. */
export const clearProgress = (): void => {
  if (!isShown) return;
  isShown = false;
  shownAt = Number.NEGATIVE_INFINITY;
  process.stderr.write("\r\u001b[K");
};
