/** The page of the comparison, as Markdown. Pure: what is said about who does worse follows from the figures. */

import { type ContenderName, contenderNames } from "./contender.ts";
import type { Effects } from "./expiry.ts";
import { type ScenarioName, scenarioNames } from "./scenarios.ts";

/** Assumed for a server that isn't next door. */
export const distanceMs = 5;

/** Less is better in all of them. */
export const measures = {
  requestsFew: "requests of a run, 10 carts due",
  requestsMany: "requests of a run, 500 carts due",
  unitsFew: "write units, 10 carts due",
  unitsMany: "write units, 500 carts due",
  timeFew: "time of a run, 10 carts due",
  timeFar: `the same, each request ${distanceMs} ms away`,
  timeMany: "time of a run, 500 carts due",
  coldStart: "cold start to the end of the first run",
  bundle: "size of the bundle",
} as const;
export type Measure = keyof typeof measures;

/** Counts as they are; the others of the bare SDK's. */
const counts: readonly Measure[] = ["requestsFew", "requestsMany", "unitsFew", "unitsMany"];

export interface Compared {
  readonly measured: Readonly<Record<Measure, Readonly<Record<ContenderName, number>>>>;
  readonly drilled: Readonly<Record<ScenarioName, Readonly<Record<ContenderName, Effects>>>>;
  readonly machine: { readonly cores: number; readonly node: string; readonly engine: string; readonly load: number };
}

export const pageOf = (compared: Compared): string =>
  [
    "# Benchmarks: beside others",
    "",
    "The same job done five other ways: a table of carts, of which those that are due are marked as expired and counted in an audit",
    "row, in transactions of as many as fit. `npm run bench:docs` measures everything in one run and writes this page; nothing in it is",
    "written by hand. What cronfence costs beside itself, in all its shapes and under load, `npm run bench` prints.",
    "",
    tableOf(compared),
    "",
    `Measured on ${noteOf(compared)}.`,
    "Requests and write units are counted, and the same on every machine. Times are ratios, each of the time of the bare SDK in the same",
    "round, all contenders in turns, the median over the rounds, in a process that is warm; a busy machine shifts them. The engine is",
    "next door, so its own work counts for more, and the way to it for less, than with DynamoDB.",
    "",
    "## Where cronfence does worse",
    "",
    ...worse(compared),
    "",
    ...explanations,
  ].join("\n");

const tableOf = ({ measured, drilled }: Compared): string => {
  const rows = [
    ...(Object.keys(measures) as Measure[]).map((measure) => [
      measures[measure],
      ...contenderNames.map((name) => shown(measure, measured[measure][name])),
    ]),
    ...scenarioNames.map((scenario) => [
      `**${scenario}**`,
      ...contenderNames.map((name) => effectsText(drilled[scenario][name])),
    ]),
  ];
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [
    line(["", ...contenderNames]),
    line(["---", ...contenderNames.map(() => "---:")]),
    ...rows.map((row) => line(row)),
  ].join("\n");
};

const shown = (measure: Measure, value: number): string =>
  counts.includes(measure) ? value.toLocaleString("en") : value.toFixed(2);

const effectsText = ({ left, doubled }: Effects): string => {
  const said = [...(left > 0 ? [`${left} left`] : []), ...(doubled > 0 ? [`${doubled} twice`] : [])];
  return said.length === 0 ? "once each" : said.join(", ");
};

const noteOf = ({ machine: { cores, node, engine, load } }: Compared): string =>
  `${cores} cores, Node.js ${node}, the ${engine} engine, with a load of ${load.toFixed(1)} for each core`;

const worse = ({ measured, drilled }: Compared): string[] => {
  const others = contenderNames.filter((name) => name !== "cronfence");
  const found = [
    ...(Object.keys(measures) as Measure[]).flatMap((measure) => {
      const { cronfence, ...rest } = measured[measure];
      const better = others.filter((name) => rest[name] < cronfence);
      if (better.length === 0) return [];
      const of = better.map((name) => `${shown(measure, rest[name])} (${name})`).join(", ");
      return [`- ${measures[measure]}: ${shown(measure, cronfence)}, against ${of}`];
    }),
    ...scenarioNames.flatMap((scenario) => {
      const { left, doubled } = drilled[scenario].cronfence;
      return left + doubled > 0 ? [`- ${scenario}: ${effectsText({ left, doubled })}`] : [];
    }),
  ];
  return found.length > 0 ? found : ["Nowhere in this run."];
};

const explanations = [
  "## The drills",
  "",
  "150 carts are due. Every invocation is a process of its own, with a proxy between it and the engine, and every contender meets",
  "the same. A lock, or an invocation, lasts for a second and a half. A tick is delivered again, twice at most, when its invocation",
  "failed or died. *Left* is what is open after that, and would wait for the next tick; *twice* is how often carts expired that had",
  "expired before.",
  "",
  "| drill | what happens |",
  "| --- | --- |",
  "| double trigger | two processes get the tick at once |",
  "| paused holder | SIGSTOP with its second write on its way out; another process does the job; SIGCONT, and the write arrives |",
  "| crash | SIGKILL after its first write was applied |",
  "| lost reply to taking the lock | its first write, which says that it is running, is applied, and its reply lost |",
  "| lost reply to a write | the first transaction is applied, and its reply lost |",
  "| late release | what ends its run (with cronfence, the transaction with its last writes) arrives when a second process is at work; then a third tries |",
  "| a challenger's clock ahead | the holder is at work, and another process's clock is ten minutes ahead |",
  "",
  "## The contenders",
  "",
  "- **bare SDK**: a conditional update takes a lock that expires, another one releases it, on the condition that it is still ours. A",
  "  delivery that finds the lock taken is content, as one must be with deliveries that come twice. A reply that was lost looks the same.",
  "- **cronfence**: a job with a source, through its Lambda handler.",
  "- **Powertools, each tick**: `makeIdempotent` of `@aws-lambda-powertools/idempotency` around the handler, with the tick as the key and",
  "  the invocation's remaining time registered. **Each item**: around the work on each cart, as its documentation shows for records.",
  "- **lock client**: `dynamodb-lock-client`'s lock that fails open, with heartbeats, as its README shows. **Token on items**: its fencing",
  "  token is kept on every cart and checked by every write, which the README leaves to its users, and work ends when a heartbeat fails.",
  "",
  "## What isn't like with like",
  "",
  "- Only cronfence keeps a record of each run, a watermark, and which ticks are done; the others would need more requests for these. Its",
  "  write units have that in them, and its control item's part in every transaction.",
  "- Powertools' idempotency is made to answer a repeated request with the first one's answer. It isn't a lock, and doesn't claim to be.",
  "- `dynamodb-lock-client` uses version 2 of the AWS SDK, which gets no updates any more, and brings it beside version 3. It trusts no",
  "  clock, and so a taker waits as long as a lock lasts. Its token must be checked on every item that is written, by conditions of",
  "  one's own; an item that the successor didn't touch isn't protected by it.",
  "- The carts' writes have no condition of their own. With one (`status = open`, say) no contender would do a cart twice in these drills:",
  "  where work can be made idempotent by itself, a lock only saves effort.",
  "- A paused process is what a frozen Lambda environment is that is thawed for a later invocation. Powertools assumes that a function is",
  "  ended at its timeout, which Lambda does, unless the environment was frozen before.",
  "- The cold start is that of a smaller job, which writes one item. cronfence's handler logs, measures and records it; Powertools' has",
  "  its logger and metrics beside its idempotency; the other two print a line.",
  "- Bundles are made with cronfence's settings for all, which suit the SDK: the smallest that each gets.",
  "",
];
