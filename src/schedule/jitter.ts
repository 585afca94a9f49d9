/** Spreads jobs over a window, so that not all of them start at the same second. */

import { InvalidOptionsError } from "../errors.ts";

/**
 * How long after each tick the job `jobName` starts: a whole number of milliseconds from 0 up to, and not including,
 * `windowMs`, which is always the same for the same name and window. 0 for a window of 0.
 * @throws InvalidOptionsError for a window that isn't an integer of 0 or more.
 */
export function jitterOf(jobName: string, windowMs: number): number {
  if (!Number.isSafeInteger(windowMs) || windowMs < 0) {
    throw new InvalidOptionsError("jitter", [`window: ${windowMs} isn't an integer of milliseconds, 0 or more`]);
  }
  return Math.floor((hash(jobName) / 2 ** 32) * windowMs);
}

/** FNV-1a over UTF-16 units, then MurmurHash3's finalizer: names that differ in their last letter end far apart. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
