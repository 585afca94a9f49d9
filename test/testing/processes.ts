/** Looking at processes from tests: whether one is still there, and waiting for something without a fixed sleep. */
import { readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

/** Whether no process `pid` runs. A zombie that nobody reaped counts as gone: it holds no port and no file. */
export const isGone = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
  } catch {
    return true;
  }
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .startsWith("Z");
  } catch {
    return process.platform === "linux";
  }
};

/** Resolves when `holds` does, looking every few milliseconds; rejects after 10 seconds. */
export const until = async (what: string, holds: () => boolean): Promise<void> => {
  for (const giveUpAt = performance.now() + 10_000; !holds(); await wait(3)) {
    if (performance.now() > giveUpAt) throw new Error(`still not so after 10 s: ${what}`);
  }
};
