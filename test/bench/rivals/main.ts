/**
 * `npm run bench:docs`: the same job with other packages and by hand, what it costs and what becomes of it when things go wrong;
 * writes docs/benchmarks.md. Takes some minutes; with `--print` it is printed, and nothing written.
 */
import { writeFile } from "node:fs/promises";
import { availableParallelism, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { startEngine } from "cronfence/testing";
import { compareColdStarts, type StartOfTheBare } from "../cold-start.ts";
import { openScene } from "../scene.ts";
import { type ContenderName, contenderNames } from "./contender.ts";
import type { Effects } from "./expiry.ts";
import { type Cost, measureCost, measureTimes } from "./figures.ts";
import { bundleProcess } from "./invocation.ts";
import { type Compared, distanceMs, pageOf } from "./page.ts";
import { runScenario, type ScenarioName, scenarioNames } from "./scenarios.ts";

// Advice on versions isn't a result.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = "true";
process.env.AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE = "1";

const page = new URL("../../../docs/benchmarks.md", import.meta.url);
const [few, many] = [10, 500];

const { values } = parseArgs({ options: { print: { type: "boolean", default: false } } });
const say = (line: string) => console.error(line);

const byContender = async <T>(measure: (name: ContenderName) => T | Promise<T>): Promise<Record<ContenderName, T>> => {
  const measured = {} as Record<ContenderName, T>;
  for (const name of contenderNames) measured[name] = await measure(name);
  return measured;
};

const measureStarts = async (): Promise<Record<ContenderName, StartOfTheBare>> => {
  const scene = await openScene({ filled: false });
  const starts = await compareColdStarts(scene).finally(() => scene.stop());
  return {
    "bare SDK": starts.bare,
    cronfence: starts.fenced,
    "Powertools, each tick": starts.powertools,
    "Powertools, each item": starts.powertools,
    "lock client": starts["lock-client"],
    "lock client, token on items": starts["lock-client"],
  };
};

const drillAll = async (): Promise<Compared["drilled"]> => {
  const bundle = await bundleProcess();
  try {
    const drilled = {} as Record<ScenarioName, Record<ContenderName, Effects>>;
    for (const scenario of scenarioNames) {
      drilled[scenario] = await byContender((name) => runScenario(bundle, name, scenario));
      say(`${scenario}: ${JSON.stringify(drilled[scenario])}`);
    }
    return drilled;
  } finally {
    await bundle.remove();
  }
};

const engineKind = async (): Promise<string> => {
  const engine = await startEngine();
  await engine.stop();
  return engine.kind;
};

const load = loadavg()[0] ?? 0;
const cores = availableParallelism();
say("Counting requests and write units");
const costs = await byContender(async (name) => [await measureCost(name, few), await measureCost(name, many)] as const);
const costOf = (at: 0 | 1, what: keyof Cost) => byContender((name) => costs[name][at][what]);
say("Timing runs");
const timeFew = await measureTimes({ carts: few, rounds: 60, warmUps: 40 });
const timeFar = await measureTimes({ carts: few, rounds: 30, warmUps: 20, distanceMs });
const timeMany = await measureTimes({ carts: many, rounds: 8, warmUps: 3 });
say("Timing cold starts");
const starts = await measureStarts();
const compared: Compared = {
  measured: {
    requestsFew: await costOf(0, "requests"),
    requestsMany: await costOf(1, "requests"),
    unitsFew: await costOf(0, "writeUnits"),
    unitsMany: await costOf(1, "writeUnits"),
    timeFew,
    timeFar,
    timeMany,
    coldStart: await byContender((name) => starts[name].time),
    bundle: await byContender((name) => starts[name].size),
  },
  drilled: await drillAll(),
  machine: { cores, node: process.versions.node, engine: await engineKind(), load: load / cores },
};
const text = pageOf(compared);
if (values.print) console.log(text);
else await writeFile(page, text);
say(values.print ? "" : "docs/benchmarks.md is written");
