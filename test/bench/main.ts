/**
 * `npm run bench`: what a run costs, in requests, write units and time, on the local engine. `--json` prints JSON only;
 * `--year` reads the history of half a million runs, too, which takes minutes to write. `npm run bench -- load counts` measures
 * these parts only.
 *
 * Times are figures, and a machine that does other things shifts them; the status says nothing about them. Counts are the
 * same everywhere: the status is 1 if one misses its goal.
 */
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import Table from "cli-table3";
import { measureColdStart } from "./cold-start.ts";
import { measureContention } from "./contention.ts";
import { measureCounts } from "./counts.ts";
import { measureHistory } from "./history.ts";
import { measureLoad } from "./load.ts";
import { stopMetering } from "./metered-client.ts";
import { benchRehearse } from "./rehearse.ts";
import { type Goal, isFault, isMet, type Row, row } from "./row.ts";
import { openScene, type Scene } from "./scene.ts";
import { benchSchedule } from "./schedule.ts";
import { measureTimes } from "./times.ts";
import { measureWatchdog } from "./watchdog.ts";
import { benchWork } from "./work.ts";

// Node 20 works; the SDK's warning about it isn't a result.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = "true";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: "boolean", default: false }, year: { type: "boolean", default: false } },
});

/** In this order: what is metered comes first, since metering slows whatever is timed after it. */
const parts: Record<string, (scene: Scene) => Promise<Row[]>> = {
  counts: measureCounts,
  contention: (scene) => measureContention(scene),
  load: measureLoad,
  times: measureTimes,
  start: measureColdStart,
  work: () => measureWork(),
  watchdog: measureWatchdog,
  schedule: () => measureSchedules(),
  rehearse: () => measureRehearsal(),
  ...(values.year ? { history: measureHistory } : {}),
};
const metered = ["counts", "contention", "load"];

const measureAll = async (wanted: readonly string[]): Promise<Row[]> => {
  const unknown = wanted.filter((part) => !Object.hasOwn(parts, part));
  if (unknown.length > 0)
    throw new Error(`no part "${unknown.join(", ")}"; there are ${Object.keys(parts).join(", ")}`);
  const scene = await openScene();
  try {
    const rows: Row[] = [];
    for (const [part, measure] of Object.entries(parts)) {
      if (wanted.length > 0 && !wanted.includes(part)) continue;
      if (!metered.includes(part)) stopMetering();
      rows.push(...(await measure(scene)));
    }
    return rows;
  } finally {
    await scene.stop();
  }
};

const measureWork = async (): Promise<Row[]> =>
  (await benchWork()).map(({ name, value, unit, goal }) =>
    row(name, value, unit, goal === undefined ? undefined : { atMost: goal }),
  );

const measureSchedules = async (): Promise<Row[]> =>
  (await benchSchedule()).map(({ name, value, unit, goal }) =>
    row(name, value, unit, goal === undefined ? undefined : { atLeast: goal }),
  );

const measureRehearsal = async (): Promise<Row[]> =>
  (await benchRehearse()).map(({ name, value, unit, goal }) =>
    row(name, value, unit, goal === undefined ? undefined : { atMost: goal }),
  );

const rounded = (value: number): string =>
  value.toLocaleString("en", Number.isInteger(value) ? {} : { maximumSignificantDigits: 3 });

const shown = (goal: Goal): string => {
  if ("exactly" in goal) return `= ${rounded(goal.exactly)}`;
  return "atMost" in goal ? `≤ ${rounded(goal.atMost)}` : `≥ ${rounded(goal.atLeast)}`;
};

const rows = await measureAll(positionals);
if (!values.json) {
  const table = new Table({
    head: ["figure", "value", "unit", "goal", ""],
    style: { head: [], border: [] },
    colAligns: ["left", "right"],
    chars: { mid: "", "left-mid": "", "mid-mid": "", "right-mid": "" },
  });
  for (const each of rows) {
    const { name, value, unit, goal } = each;
    table.push([name, rounded(value), unit, ...(goal ? [shown(goal), isMet(each) ? "met" : "missed"] : ["", ""])]);
  }
  console.log(table.toString());
}
const figures = rows.map((each) => ({ ...each, ...(each.goal === undefined ? {} : { met: isMet(each) }) }));
console.log(JSON.stringify({ node: process.version, cores: availableParallelism(), figures }));
if (rows.some(isFault)) process.exitCode = 1;
