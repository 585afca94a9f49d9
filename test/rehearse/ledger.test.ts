/** The ledger against random histories whose truth is kept beside the records that they leave. */
import type { RunOutcome, RunRecord } from "cronfence";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CatchUpPolicy, planTicks } from "../../src/catch-up.ts";
import { accountOf } from "../../src/rehearse/account.ts";
import { ledgerOf, type TickFate } from "../../src/rehearse/ledger.ts";
import { calendar, cron, withCalendar } from "../../src/schedule/index.ts";

const minuteMs = 60_000;
const start = Date.parse("2026-01-01T00:00:00Z");
const at = (minutes: number) => start + minutes * minuteMs;
const end = at(600);

interface Happening {
  /** How many ticks after the last delivered one; 0 and less deliver it, or an earlier one, again. */
  readonly ahead: number;
  readonly lateMinutes: number;
  readonly outcome: RunOutcome;
  /** Ticks that are done before the run ends; `succeeded` does all. */
  readonly ticks: number;
}

interface History {
  readonly frozen: readonly number[];
  readonly policy: CatchUpPolicy;
  /** Whether each tick is committed by itself, or all at the end. */
  readonly byTick: boolean;
  readonly happenings: readonly Happening[];
}

const outcomes = fc.constantFrom<RunOutcome>(
  "succeeded",
  "capped",
  "failed",
  "crashed",
  "cancelled",
  "lease_lost",
  "dry_run",
);

const histories: fc.Arbitrary<History> = fc.record({
  frozen: fc.array(fc.integer({ min: 0, max: 590 }), { maxLength: 3 }),
  policy: fc.record(
    {
      catchUp: fc.constantFrom("all", "latest", "none"),
      maxTicks: fc.integer({ min: 1, max: 6 }),
      startWithinMs: fc.integer({ min: 0, max: 40 * minuteMs }),
      startAt: fc.integer({ min: start, max: at(200) }),
    },
    { requiredKeys: ["catchUp"] },
  ) as fc.Arbitrary<CatchUpPolicy>,
  byTick: fc.boolean(),
  happenings: fc.array(
    fc.record({
      ahead: fc.integer({ min: -1, max: 8 }),
      lateMinutes: fc.integer({ min: 0, max: 30 }),
      outcome: outcomes,
      ticks: fc.integer({ min: 0, max: 8 }),
    }),
    { maxLength: 25 },
  ),
});

/** Lives a history: the records it leaves, and what really became of each tick. */
const live = ({ frozen, policy, byTick, happenings }: History) => {
  const all = cron("*/5 * * * *");
  const schedule = withCalendar(all, calendar(frozen.map((minute) => ({ from: at(minute), to: at(minute + 17) }))));
  const deliverable = [...all.between(start - 1, end)];
  const records: RunRecord[] = [];
  const truth = new Map<number, TickFate>();
  let delivered = -1;
  let completed: number | undefined;
  for (const [fence, { ahead, lateMinutes, outcome, ticks }] of happenings.entries()) {
    delivered = Math.max(0, delivered + ahead);
    const tick = deliverable[delivered];
    if (tick === undefined || tick <= (completed ?? start - 1)) continue;
    const now = tick + lateMinutes * minuteMs;
    const plan = planTicks(schedule, policy, { after: completed ?? start - 1, through: tick, delivered: [tick], now });
    const isWhole = outcome === "succeeded" || (outcome === "capped" && !byTick);
    const lastDone = byTick ? plan.ticks[Math.min(ticks, plan.ticks.length) - 1] : undefined;
    const settledThrough = outcome === "dry_run" ? undefined : isWhole ? plan.range.through : lastDone;
    const skipped = plan.skipped.filter(({ through }) => through <= (settledThrough ?? 0));
    const id = `run ${fence}`;
    for (const due of schedule.between(completed ?? start - 1, settledThrough ?? 0)) {
      const left = skipped.find(({ from, through }) => due >= from && due <= through);
      truth.set(due, left === undefined ? { kind: "done", run: id } : { kind: "skipped", reason: left.reason });
    }
    completed = settledThrough ?? completed;
    const secondHand = outcome === "crashed" || outcome === "cancelled";
    const known = secondHand ? settledThrough : completed;
    records.push({
      job: "job",
      id,
      owner: id,
      outcome,
      trigger: "schedule",
      startedAt: now,
      endedAt: now,
      items: 0,
      commits: ticks,
      // Nobody knows the fence of a run that died before its first commit.
      ...(secondHand && settledThrough === undefined ? {} : { fence }),
      ticks: secondHand ? { from: tick, through: tick, count: 1 } : plan.range,
      ...(known === undefined ? {} : { completed: known }),
      ...(skipped.length === 0 ? {} : { skipped }),
    });
  }
  const due = [...schedule.between(start - 1, end)];
  const removed = [...schedule.removed(start - 1, end)];
  for (const tick of due) if (!truth.has(tick)) truth.set(tick, { kind: "owed" });
  for (const { tick } of removed) truth.set(tick, { kind: "skipped", reason: "calendar" });
  return { due, removed, records, truth };
};

const nothingKnown = { notDelivered: () => undefined, isOwnRun: () => true };

describe("the ledger", () => {
  it("finds the one fate of every tick in whatever order the records come, and the counts add up", () => {
    const seen = new Set<string>();
    fc.assert(
      fc.property(histories, fc.integer(), (history, order) => {
        const { truth, ...lived } = live(history);
        const shuffled = [...lived.records].sort(
          (one, other) => ((one.startedAt ^ order) % 97) - ((other.startedAt ^ order) % 97),
        );
        const entries = ledgerOf({ ...lived, records: shuffled });
        expect(entries).toEqual(
          [...truth].sort(([one], [other]) => one - other).map(([tick, fate]) => ({ tick, fate })),
        );
        const { ticks } = accountOf(entries, nothingKnown);
        const { all, skipped, ...rest } = ticks;
        const sum = [...Object.values(skipped), ...Object.values(rest)].reduce((total, each) => total + each, 0);
        expect([sum, all]).toEqual([truth.size, truth.size]);
        for (const { fate } of entries) seen.add(fate.kind === "skipped" ? fate.reason : fate.kind);
      }),
      { numRuns: 1_000 },
    );
    expect([...seen].sort()).toEqual(["before startAt", "calendar", "catchUp", "done", "owed", "startWithin"]);
  });

  const record = (fence: number, from: number, completed: number, more: Partial<RunRecord> = {}): RunRecord => ({
    job: "job",
    id: `run ${fence}`,
    owner: `owner ${fence}`,
    fence,
    outcome: "succeeded",
    trigger: "schedule",
    startedAt: at(fence),
    endedAt: at(fence),
    items: 0,
    commits: 1,
    ticks: { from: at(from), through: at(completed), count: 1 },
    completed: at(completed),
    ...more,
  });
  const due = [at(5), at(10), at(15)];
  const kinds = (records: readonly RunRecord[]) =>
    ledgerOf({ due, removed: [], records }).map(({ fate }) => (fate.kind === "doubled" ? fate.runs : fate.kind));

  it("shows a tick that two runs did, with both runs", () => {
    expect(kinds([record(1, 5, 10), record(2, 10, 15)])).toEqual(["done", ["run 1", "run 2"], "done"]);
  });

  it("shows a tick that the job went past without a word", () => {
    expect(kinds([record(1, 5, 5), record(2, 15, 15)])).toEqual(["done", "unaccounted", "done"]);
  });

  it("takes a failed run's word for the ticks that it did before it failed", () => {
    const failed = record(1, 5, 10, { outcome: "failed", ticks: { from: at(5), through: at(15), count: 3 } });
    expect(kinds([failed])).toEqual(["done", "done", "owed"]);
  });

  it("counts what a run that died had committed, from where the one before it stopped", () => {
    const died = record(2, 15, 10, { outcome: "crashed", ticks: { from: at(15), through: at(15), count: 1 } });
    expect(kinds([record(1, 5, 5), died])).toEqual(["done", "done", "owed"]);
  });

  it("owes everything after a dry run", () => {
    expect(kinds([record(1, 5, 15, { outcome: "dry_run" })])).toEqual(["owed", "owed", "owed"]);
  });
});
