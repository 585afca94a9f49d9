/** The main drill's claims are compared, not asserted: each of them fails on a figure that breaks it. */
import type { ControlState, RunRecord, RunReport } from "cronfence";
import { describe, expect, it } from "vitest";
import { type Check, checksOf, type Figures } from "./checks.ts";
import { verdictOn } from "./verdict.ts";

const tick = (index: number) => Date.parse("2026-03-02T06:00:00Z") + index * 300_000;

const record = (id: string, fence: number, more: Partial<RunRecord>): RunRecord => ({
  job: "expire-carts",
  id,
  owner: `owner-of-${id}`,
  fence,
  outcome: "succeeded",
  trigger: "schedule",
  startedAt: tick(0) + fence,
  endedAt: tick(0) + fence,
  items: 0,
  commits: 0,
  ...more,
});

const report = (run: string, items: number, more: Partial<RunReport> = {}): RunReport => ({
  job: "expire-carts",
  outcome: "succeeded",
  run,
  items,
  commits: 1,
  durationMs: 1,
  ...more,
});

const control = (run: string, fence: number, seq: number, items: number): ControlState => ({
  job: "expire-carts",
  fence,
  owner: `owner-of-${run}`,
  leaseUntil: tick(1),
  run: { id: run, owner: `owner-of-${run}`, startedAt: 0, trigger: "schedule", seq, items },
  prev: [],
  recentOwners: [],
  watermark: `2026-03-02T06:00:00.000Z#cart-${items}`,
  since: 0,
  unfinished: 0,
  failedTicks: 0,
  recent: [],
});

/** As measured when all is well: 1,000 carts, of which the first tick brings 400 and the others 200 each. */
const good = (): Figures => {
  const stoppedLeft = control("stopped", 12, 2, 98);
  const killedLeft = control("killed", 14, 1, 49);
  const during = control("after-stopped", 13, 1, 49);
  const succession = { due: 200, skewMs: 200, heldAt: [tick(1), tick(1) + 200], grantedAt: tick(1) + 201 };
  return {
    carts: 1_000,
    doubleTrigger: { due: 400, reports: [report("first", 400), { ...report("", 0), outcome: "held", commits: 0 }] },
    stopped: {
      ...succession,
      left: stoppedLeft,
      successor: report("after-stopped", 102),
      holder: report("stopped", 98, { outcome: "lease_lost" }),
      before: during,
      after: { ...during, leaseUntil: tick(2) },
    },
    killed: { ...succession, left: killedLeft, successor: report("after-killed", 151) },
    missed: { due: 200, ticks: [tick(3), tick(4)], report: report("last", 200) },
    records: [
      record("first", 11, { items: 400 }),
      record("stopped", 12, { items: 98, commits: 2, outcome: "lease_lost" }),
      record("after-stopped", 13, { items: 102 }),
      record("killed", 14, { items: 49, commits: 1, outcome: "crashed" }),
      record("after-killed", 15, { items: 151, watermarkBefore: killedLeft.watermark as string }),
      record("last", 16, { items: 200, ticks: { from: tick(3), through: tick(4), count: 2 } }),
    ],
    effects: {
      rows: 1_000,
      fewest: 1,
      most: 1,
      open: 0,
      byRun: { first: 400, stopped: 98, "after-stopped": 102, killed: 49, "after-killed": 151, last: 200 },
    },
  };
};

const broken = (checks: readonly Check[]) => checks.filter(({ holds }) => !holds).map(({ name }) => name);
const recordIn = (figures: Figures, id: string) => figures.records.find((one) => one.id === id)!;

const breakages: readonly [string, (figures: Figures) => void, readonly string[]][] = [
  [
    "both processes work",
    ({ doubleTrigger: { reports } }) => Object.assign(reports[1]!, { outcome: "succeeded" }),
    ["Double trigger: one process works, the other is told so"],
  ],
  [
    "neither process works",
    ({ doubleTrigger: { reports } }) => Object.assign(reports[0]!, { outcome: "held" }),
    ["Double trigger: one process works, the other is told so"],
  ],
  [
    "the process that was held commits",
    ({ doubleTrigger: { reports } }) => Object.assign(reports[1]!, { commits: 1 }),
    ["Double trigger: one process works, the other is told so"],
  ],
  [
    "the process that works leaves a cart",
    ({ doubleTrigger: { reports } }) => Object.assign(reports[0]!, { items: 399 }),
    ["Double trigger: every cart due was expired"],
  ],
  [
    "a successor takes a live lease",
    ({ stopped }) => Object.assign(stopped, { grantedAt: tick(1) + 200 }),
    ["Stopped holder: a successor is held until the lease is over, then granted"],
  ],
  [
    "a successor is held by a lease that is over",
    ({ killed }) => Object.assign(killed, { heldAt: [tick(1), tick(1) + 201] }),
    ["Killed process: a successor is held until the lease is over, then granted"],
  ],
  [
    "the stopped holder reports a success",
    ({ stopped }) => Object.assign(stopped.holder, { outcome: "succeeded" }),
    ["Stopped holder: continued, it is refused"],
  ],
  [
    "the stopped holder is on record as a success",
    (figures) => Object.assign(recordIn(figures, "stopped"), { outcome: "succeeded" }),
    ["Stopped holder: continued, it is refused"],
  ],
  [
    "the late commit moves the watermark",
    ({ stopped }) => Object.assign(stopped.after!, { watermark: "2026-03-02T06:00:00.000Z#cart-147" }),
    ["Stopped holder: its late commit changes nothing"],
  ],
  [
    "the late commit takes the lease away from the successor",
    ({ stopped }) => Object.assign(stopped.after!, { owner: undefined }),
    ["Stopped holder: its late commit changes nothing"],
  ],
  [
    "the late commit is on record",
    (figures) => Object.assign(recordIn(figures, "stopped"), { commits: 3 }),
    ["Stopped holder: its late commit changes nothing"],
  ],
  [
    "the late commit wrote audit rows",
    ({ effects }) => Object.assign(effects.byRun, { stopped: 147, "after-stopped": 53 }),
    [
      "Stopped holder: its late commit changes nothing",
      "Exactly once: every run wrote as many audit rows as its record says",
    ],
  ],
  [
    "the stopped holder's successor leaves a cart",
    ({ stopped }) => Object.assign(stopped.successor, { items: 101 }),
    ["Stopped holder: its successor does the rest"],
  ],
  [
    "the killed process isn't on record",
    (figures) => Object.assign(figures, { records: figures.records.filter(({ id }) => id !== "killed") }),
    [
      "Killed process: on record as crashed, with what it committed",
      "Exactly once: the runs' records add up to the carts",
      "Exactly once: every run wrote as many audit rows as its record says",
    ],
  ],
  [
    "the killed process is on record as finished",
    (figures) => Object.assign(recordIn(figures, "killed"), { outcome: "succeeded" }),
    ["Killed process: on record as crashed, with what it committed"],
  ],
  [
    "the next run starts somewhere else",
    (figures) => Object.assign(recordIn(figures, "after-killed"), { watermarkBefore: "elsewhere" }),
    ["Killed process: the next run starts exactly after its last commit"],
  ],
  [
    "the killed process's successor fails",
    ({ killed }) => Object.assign(killed.successor, { outcome: "failed" }),
    ["Killed process: its successor does the rest"],
  ],
  [
    "a missed tick isn't covered",
    (figures) => Object.assign(recordIn(figures, "last").ticks!, { from: tick(4), count: 1 }),
    ["Missed ticks: the next run covers them all"],
  ],
  [
    "carts of a missed tick are left",
    ({ missed }) => Object.assign(missed.report, { items: 100 }),
    ["Missed ticks: the next run does everything due"],
  ],
  ["a cart is left", ({ effects }) => Object.assign(effects, { open: 1 }), ["Exactly once: no cart is left"]],
  [
    "a cart expired twice",
    ({ effects }) => Object.assign(effects, { most: 2 }),
    ["Exactly once: an audit row for every cart, and each cart expired one time"],
  ],
  [
    "an audit row is missing",
    ({ effects }) => Object.assign(effects, { rows: 999 }),
    ["Exactly once: an audit row for every cart, and each cart expired one time"],
  ],
  [
    "a run wrote less than its record says, and another more",
    ({ effects }) => Object.assign(effects.byRun, { first: 399, last: 201 }),
    ["Exactly once: every run wrote as many audit rows as its record says"],
  ],
  [
    "a run without a record wrote",
    ({ effects }) => Object.assign(effects.byRun, { nobody: 1 }),
    ["Exactly once: every run wrote as many audit rows as its record says"],
  ],
];

describe("the checks of the main drill", () => {
  it("all hold on good figures, which end with status 0", () => {
    expect(broken(checksOf(good()))).toEqual([]);
    const { text, exitStatus } = verdictOn(good(), new Map());
    expect(exitStatus).toBe(0);
    expect(text).toContain(`All ${checksOf(good()).length} checks hold.`);
    expect(text).not.toContain("✗");
  });

  it.each(breakages)("end with status 1, and say which, when %s", (_, damage, names) => {
    const figures = good();
    damage(figures);
    expect(broken(checksOf(figures))).toEqual(names);
    const { text, exitStatus } = verdictOn(figures, new Map());
    expect(exitStatus).toBe(1);
    expect(text).toContain(`checks don't hold: ${names.join("; ")}.`);
    expect(text.match(/✗/g)).toHaveLength(names.length);
  });

  it("each have a figure that breaks it", () => {
    expect(new Set(breakages.flatMap(([, , names]) => names))).toEqual(
      new Set(checksOf(good()).map(({ name }) => name)),
    );
  });

  it("don't hold on a drill in which nothing happened", () => {
    const effects = { rows: 0, fewest: 0, most: 0, open: 1_000, byRun: {} };
    expect(verdictOn({ ...good(), records: [], effects }, new Map()).exitStatus).toBe(1);
  });
});

describe("the verdict of the main drill", () => {
  it("fits 100 columns, and has no colour unless asked for it", () => {
    const processes = new Map([["first", "A"]]);
    const { text } = verdictOn(good(), processes);
    for (const line of text.split("\n")) expect(line.length).toBeLessThanOrEqual(100);
    expect(text).not.toContain("\u001b");
    expect(verdictOn(good(), processes, true).text).toContain("\u001b[32m✓");
  });

  it("shows each run as it is on record, with its process", () => {
    const { text } = verdictOn(good(), new Map([["last", "C"]]));
    expect(text).toMatch(/16 +│ succeeded +│ +200 │ +0 │ owner-of │ C +│ 06:15 to 06:20 \(2\)/);
    expect(text).toMatch(/12 +│ lease_lost +│ +98 │ +2 │ owner-of │ \? +│ none/);
  });
});
