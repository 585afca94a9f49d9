/** A year of minutely runs: how long its ledger and its list of runs take to read, and how much memory against a month's. */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { HistoryResult } from "./history-process.ts";
import {
  coveredTicks,
  fillHistory,
  minuteMs,
  recordedRuns,
  yearEnd,
  yearMinutes,
  yearStart,
} from "./minutely-history.ts";
import { type Row, row } from "./row.ts";
import { controlTable, type Scene } from "./scene.ts";

const monthMinutes = 30 * 1_440;

export const measureHistory = async ({ endpoint, client }: Pick<Scene, "endpoint" | "client">): Promise<Row[]> => {
  await fillHistory(client, controlTable);
  const month = await read(endpoint, yearEnd - (monthMinutes - 1) * minuteMs);
  const year = await read(endpoint, yearStart);
  return [
    row("ledger of a year of minutely ticks", year.ledgerMs / 1_000, "s", { atMost: 30 }),
    row("its ticks", year.counts.all, "ticks", { exactly: yearMinutes }),
    row("of them covered by a later run", year.counts.covered, "ticks", { exactly: coveredTicks }),
    row("list of its runs", year.runsMs / 1_000, "s", { atMost: 30 }),
    row("its runs", year.runs, "runs", { exactly: recordedRuns }),
    row("its peak memory against a month's", year.peakRssBytes / month.peakRssBytes, "times", { atMost: 1.5 }),
    row("its peak memory", year.peakRssBytes / 2 ** 20, "MiB"),
  ];
};

const read = (endpoint: string, from: number): Promise<HistoryResult> =>
  new Promise((resolve, reject) => {
    const script = fileURLToPath(new URL("history-process.ts", import.meta.url));
    const child = spawn(
      process.execPath,
      ["--import", import.meta.resolve("tsx"), script, endpoint, controlTable, String(from)],
      {
        stdio: ["ignore", "ignore", "inherit", "ipc"],
        env: { ...process.env, TSX_TSCONFIG_PATH: fileURLToPath(new URL("../../tsconfig.json", import.meta.url)) },
      },
    );
    let result: HistoryResult | undefined;
    child.once("message", (message) => {
      result = message as HistoryResult;
    });
    child.once("error", reject);
    child.once("exit", (code) => {
      if (result !== undefined && code === 0) resolve(result);
      else reject(new Error(`the reading of a history ended with ${code}`));
    });
  });
