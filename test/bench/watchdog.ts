/** A watchdog's look at 10,000 jobs: how long it takes, how many requests, and how much memory against 1,000 jobs. */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type Row, row } from "./row.ts";
import { controlTable, type Scene } from "./scene.ts";
import type { LookResult } from "./watchdog-process.ts";
import { fillControlItems } from "./watched-jobs.ts";

const few = 1_000;
const many = 10_000;
const rounds = 3;

export const measureWatchdog = async ({ endpoint, client }: Pick<Scene, "endpoint" | "client">): Promise<Row[]> => {
  await fillControlItems(client, controlTable, many);
  const looks: { few: LookResult; many: LookResult }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    looks.push({ few: await look(endpoint, few), many: await look(endpoint, many) });
  }
  const median = (figure: (look: (typeof looks)[number]) => number): number =>
    looks.map(figure).sort((one, other) => one - other)[rounds >> 1] as number;
  const [first] = looks;
  const perJob = (size: "few" | "many", count: number) => (((first?.[size].requests ?? 0) - own) / count) * 100;
  return [
    row(`a watchdog's look at ${many.toLocaleString("en")} jobs`, median((each) => each.many.wallMs) / 1_000, "s", {
      atMost: 60,
    }),
    row("its requests for 100 jobs", perJob("many", many), "requests", { exactly: 1 }),
    row(`its requests for 100 jobs, of ${few.toLocaleString("en")}`, perJob("few", few), "requests", { exactly: 1 }),
    row("overdue jobs that it found", first?.many.report.overdue ?? 0, "jobs", { exactly: many / 100 }),
    row(
      `its peak memory against ${few.toLocaleString("en")} jobs`,
      median((each) => each.many.peakRssBytes / each.few.peakRssBytes),
      "times",
      { atMost: 1.5 },
    ),
    row("its peak memory", median((each) => each.many.peakRssBytes) / 2 ** 20, "MiB"),
  ];
};

/** The watchdog's own: an acquisition of a job that isn't known yet, its first use, the acquisition, and the finish. */
const own = 4;

const look = (endpoint: string, count: number): Promise<LookResult> =>
  new Promise((resolve, reject) => {
    const script = fileURLToPath(new URL("watchdog-process.ts", import.meta.url));
    const child = spawn(
      process.execPath,
      ["--import", import.meta.resolve("tsx"), script, endpoint, controlTable, String(count)],
      {
        // Its metrics go to its standard output, as on Lambda.
        stdio: ["ignore", "ignore", "inherit", "ipc"],
        env: {
          ...process.env,
          TSX_TSCONFIG_PATH: fileURLToPath(new URL("../../tsconfig.json", import.meta.url)),
        },
      },
    );
    let result: LookResult | undefined;
    child.once("message", (message) => {
      result = message as LookResult;
    });
    child.once("error", reject);
    child.once("exit", (code) => {
      if (result !== undefined && code === 0) resolve(result);
      else reject(new Error(`a watchdog's process ended with ${code}`));
    });
  });
