/** A short drill of the long kind on every run of the tests; and each of its claims fails on figures that break it. */
import type { ControlState, RunRecord } from "cronfence";
import { describe, expect, it } from "vitest";
import { chanceBy, deckOf } from "./long/deck.ts";
import { differencesIn, lossOf } from "./long/differences.ts";
import { longDrill } from "./long/drill.ts";
import type { JobFigures, LongFigures } from "./long/figures.ts";
import { cartsJob, lineId, linesJob, linesPerTick, stepId, stepsJob } from "./long/jobs.ts";
import { longVerdictOn } from "./long/verdict.ts";

const since = Date.parse("2026-03-02T06:00:00Z");
const due = [1, 2, 3].map((minute) => since + minute * 60_000);
const lastTick = due.at(-1) as number;

const record = (job: string, id: string, items: number, more: Partial<RunRecord> = {}): RunRecord => ({
  job,
  id,
  owner: `owner-of-${id}`,
  outcome: "succeeded",
  trigger: "schedule",
  startedAt: since,
  endedAt: since,
  items,
  commits: 1,
  ...more,
});

const figuresOf = (name: string, rows: readonly string[], more: Partial<ControlState> = {}): JobFigures => ({
  name,
  state: {
    job: name,
    fence: 2,
    prev: [],
    recentOwners: [],
    since,
    unfinished: 0,
    failedTicks: 0,
    recent: [],
    tick: lastTick,
    ...more,
  },
  records: [record(name, `${name}-run`, rows.length)],
  due,
  ledger: due.map((tick) => ({ tick, state: tick === lastTick ? ("done" as const) : ("covered" as const) })),
  times: Object.fromEntries(rows.map((id) => [id, 1])),
});

const lines = due.flatMap((tick) =>
  Array.from({ length: linesPerTick }, (_, line) => lineId(new Date(tick).toISOString(), line)),
);

/** As read when all is well: three carts, three ticks, two steps. */
const good = (): LongFigures => ({
  seed: 7,
  seconds: 10,
  faults: { "process: killed": 1 },
  inserted: { carts: 3, leastSpareMs: 1_000 },
  carts: ["a", "b", "c"].map((id) => ({ id, expired: true })),
  cartsByRun: { [`${cartsJob.name}-run`]: 3 },
  cartsJob: figuresOf(cartsJob.name, ["a", "b", "c"]),
  linesJob: figuresOf(linesJob.name, lines),
  stepsJob: figuresOf(stepsJob.name, [stepId(1), stepId(2)], { watermark: 2 }),
});

const stateOf = (job: JobFigures): ControlState => job.state as ControlState;

const breakages: readonly [string, (figures: LongFigures) => void, RegExp][] = [
  ["a cart is still open", ({ carts }) => Object.assign(carts[1]!, { expired: false }), /lost \(1\): b is still open/],
  ["a cart is gone", ({ inserted }) => Object.assign(inserted, { carts: 4 }), /1 carts aren't there/],
  ["a cart has no audit row", ({ cartsJob }) => Reflect.deleteProperty(cartsJob.times, "c"), /c was never done/],
  ["a cart expired twice", ({ cartsJob }) => Object.assign(cartsJob.times, { a: 2 }), /doubled \(1\): a was done 2/],
  [
    "a line of a tick is missing",
    ({ linesJob }) => Reflect.deleteProperty(linesJob.times, lines[5]!),
    /was never done/,
  ],
  ["a tick was done twice", ({ linesJob }) => Object.assign(linesJob.times, { [lines[0]!]: 2 }), /was done 2 times/],
  ["a step is missing", ({ stepsJob }) => Reflect.deleteProperty(stepsJob.times, stepId(1)), /step-0000001 was never/],
  [
    "the watermark is behind a step",
    ({ stepsJob }) => Object.assign(stateOf(stepsJob), { watermark: 1 }),
    /nobody asked/,
  ],
  ["a tick is owed", ({ linesJob }) => Object.assign(linesJob.ledger[0]!, { state: "owed" }), /06:01:00.000Z is owed/],
  ["a tick is doubled", ({ stepsJob }) => Object.assign(stepsJob.ledger[1]!, { state: "doubled" }), /is doubled/],
  [
    "a tick is in the ledger twice",
    ({ cartsJob }) => (cartsJob.ledger as object[]).push({ tick: due[0], state: "done" }),
    /is covered and done/,
  ],
  ["a tick isn't in the ledger", ({ cartsJob }) => (cartsJob.ledger as object[]).splice(1, 1), /isn't in the ledger/],
  [
    "the ledger has a tick that wasn't due",
    ({ cartsJob }) => (cartsJob.ledger as object[]).push({ tick: since + 90_000, state: "done" }),
    /never due/,
  ],
  [
    "a lease is still held",
    ({ cartsJob }) => Object.assign(stateOf(cartsJob), { owner: "somebody" }),
    /held by somebody/,
  ],
  [
    "a run was never recorded",
    ({ linesJob }) => Object.assign(stateOf(linesJob), { prev: [{ id: "dead" }] }),
    /run dead was never recorded/,
  ],
  ["a run is unfinished", ({ linesJob }) => Object.assign(stateOf(linesJob), { run: { id: "dead" } }), /dead is unfin/],
  [
    "acquisitions are unfinished",
    ({ stepsJob }) => Object.assign(stateOf(stepsJob), { unfinished: 1 }),
    /1 acquisitions/,
  ],
  ["a tick is still queued", ({ cartsJob }) => Object.assign(stateOf(cartsJob), { pending: lastTick }), /still queued/],
  ["there is no control item", ({ cartsJob }) => Object.assign(cartsJob, { state: undefined }), /no control item/],
  [
    "a record says too much",
    ({ cartsJob }) => Object.assign(cartsJob.records[0]!, { items: 4 }),
    /wrote 3, and its rec/,
  ],
  ["a run isn't on record", ({ cartsByRun }) => Object.assign(cartsByRun, { other: 1 }), /its record says nothing/],
  ["a job did nothing", ({ stepsJob }) => Object.assign(stepsJob, { records: [] }), /job steps: it did nothing/],
  [
    "an insert came too late",
    ({ inserted }) => Object.assign(inserted, { leastSpareMs: -1 }),
    /proves nothing about c/,
  ],
  ["nothing went wrong", (figures) => Object.assign(figures, { faults: {} }), /nothing was proved/],
];

describe("the claims of a long drill", () => {
  it("hold on good figures, which end with status 0 and say that nothing was lost", () => {
    expect(differencesIn(good())).toEqual([]);
    expect(lossOf(good())).toEqual({ lost: [], doubled: [] });
    const { text, exitStatus } = longVerdictOn(good());
    expect(exitStatus).toBe(0);
    expect(text).toContain("Lost: nothing. Done twice: nothing.");
  });

  it.each(breakages)("don't hold when %s: status 1, with what differs and the seed", (_, damage, says) => {
    const figures = structuredClone(good());
    damage(figures);
    expect(differencesIn(figures).join("\n")).toMatch(says);
    const { text, exitStatus } = longVerdictOn(figures);
    expect(exitStatus).toBe(1);
    expect(text).toMatch(says);
    expect(text).toContain("--seed 7");
  });
});

describe("the chance of a long drill", () => {
  it("draws every card before one comes again, and the same ones for the same seed", () => {
    const draws = (seed: number) => {
      const draw = deckOf(["a", "b", "c"], chanceBy(seed));
      return Array.from({ length: 9 }, draw);
    };
    expect(draws(7)).toEqual(draws(7));
    for (const from of [0, 3, 6])
      expect(
        draws(7)
          .slice(from, from + 3)
          .sort(),
      ).toEqual(["a", "b", "c"]);
  });
});

describe.skipIf(process.platform === "win32")("a long drill, cut short", () => {
  it("leaves everything as if nothing had gone wrong, though processes, engine, requests and clocks did", async () => {
    const figures = await longDrill({ seconds: 5, seed: 7, processes: 3 });
    expect(differencesIn(figures)).toEqual([]);
    const kinds = Object.keys(figures.faults);
    for (const kind of ["process: ", "engine: ", "request: "]) {
      expect(kinds.filter((name) => name.startsWith(kind))).not.toEqual([]);
    }
  });
});
