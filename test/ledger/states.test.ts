/** States that need more than a random history: clocks that change, schedules that changed, records that are gone, other names. */
import type { ActRecord, ControlState, RunRecord, Schedule } from "cronfence";
import { cron } from "cronfence";
import type { LedgerEntry } from "cronfence/operate";
import { describe, expect, it } from "vitest";
import type { HistoryStore } from "../../src/ledger/read-history.ts";
import { ledgerOf } from "../../src/ledger/read-ledger.ts";
import { calendar, withCalendar } from "../../src/schedule/index.ts";

const hourMs = 3_600_000;
const day = Date.parse("2026-01-01T00:00:00Z");
const at = (hour: number) => day + hour * hourMs;
const hourly = cron("0 * * * *");

interface Kept {
  readonly schedule?: Schedule;
  readonly state?: Partial<ControlState>;
  readonly records?: readonly RunRecord[];
  readonly acts?: readonly ActRecord[];
  /** Of the job's name before. */
  readonly older?: { readonly records: readonly RunRecord[]; readonly acts?: readonly ActRecord[] };
  readonly now?: number;
  readonly from?: number;
  readonly startAt?: number;
}

const storeOf = ({ state, records = [], acts = [], older }: Kept): HistoryStore => {
  const known = { fence: 9, since: day - 1, prev: [], recentOwners: [], unfinished: 0, failedTicks: 0, recent: [] };
  const recordsOf = (job: string) => (job === "old" ? (older?.records ?? []) : records);
  const key = (record: RunRecord) => `run#${new Date(record.startedAt).toISOString()}`;
  return {
    read: async (job) => ({
      ...known,
      job,
      ...(job === "job" && older !== undefined ? { movedFrom: { job: "old", at: at(9) } } : {}),
      ...(job === "job" ? state : {}),
    }),
    runs: async (job, { before }) => ({
      runs: recordsOf(job)
        .filter((record) => before === undefined || key(record) < before)
        .toReversed(),
    }),
    runsSince: async (job, { from }) => ({ runs: recordsOf(job).filter(({ startedAt }) => startedAt >= from) }),
    coverage: async (job, { from }) => ({ runs: recordsOf(job).filter(({ startedAt }) => startedAt >= from) }),
    acts: async (job) => ({ acts: (job === "old" ? (older?.acts ?? []) : acts).toReversed() }),
  };
};

const read = async (kept: Kept): Promise<LedgerEntry[]> => {
  const { schedule = hourly, now = at(6.5), from = day, startAt } = kept;
  const job = {
    name: "job",
    schedule,
    timeoutMs: 60_000,
    jitterMs: 0,
    skewMs: 10_000,
    dryRun: false,
    alert: { missedAfterMs: 600_000, failures: 3 },
    catchUp: startAt === undefined ? {} : { startAt },
  };
  const budget = () => ({ clock: { now: () => now, after: () => () => {} }, random: () => 0, until: now });
  const entries: LedgerEntry[] = [];
  for await (const entry of ledgerOf(
    job as never,
    { from, to: at(24) },
    { store: storeOf(kept), now: () => now, budget },
  ))
    entries.push(entry);
  return entries;
};
const states = async (kept: Kept) =>
  (await read(kept)).map(({ tick, state }) => `${new Date(tick).toISOString().slice(11, 16)} ${state}`);

const record = (fence: number, from: number, through: number, more: Partial<RunRecord> = {}): RunRecord => ({
  job: "job",
  id: `run ${fence}`,
  owner: `owner ${fence}`,
  fence,
  outcome: "succeeded",
  trigger: "schedule",
  startedAt: at(through) + 1_000,
  endedAt: at(through) + 2_000,
  ticks: { from: at(from), through: at(through), count: through - from + 1 },
  completed: at(through),
  items: 0,
  commits: 1,
  nextTick: at(through + 1),
  ...more,
});

describe("a tick", () => {
  it("that the clocks skip, and the job with them, stands at the first instant after the gap", async () => {
    const schedule = cron("30 2 * * *", { zone: "America/New_York", gap: "skip" });
    const from = Date.parse("2026-03-07T00:00:00Z");
    const now = Date.parse("2026-03-09T12:00:00Z");
    const job = { schedule, from, now, state: { since: from - 1 } };
    const entries = await readThrough(job);
    expect(entries.map(({ tick, state, reason }) => [new Date(tick).toISOString(), state, reason])).toEqual([
      ["2026-03-07T07:30:00.000Z", "missed", undefined],
      ["2026-03-08T07:00:00.000Z", "gap", "02:30"],
      ["2026-03-09T06:30:00.000Z", "missed", undefined],
    ]);
  });

  const readThrough = async (kept: Kept & { schedule: Schedule; from: number; now: number }) => {
    const entries: LedgerEntry[] = [];
    const budget = () => ({ clock: { now: () => kept.now, after: () => () => {} }, random: () => 0, until: kept.now });
    const job = {
      name: "job",
      schedule: kept.schedule,
      timeoutMs: 60_000,
      jitterMs: 0,
      skewMs: 0,
      dryRun: false,
      alert: { missedAfterMs: 0, failures: 3 },
      catchUp: {},
    };
    const deps = { store: storeOf(kept), now: () => kept.now, budget };
    for await (const entry of ledgerOf(job as never, { from: kept.from, to: kept.now }, deps)) entries.push(entry);
    return entries;
  };

  it("isn't shown twice where a gap ends at a tick, nor left out where a calendar removes it", async () => {
    const from = Date.parse("2026-03-08T05:00:00Z");
    const now = Date.parse("2026-03-08T07:59:00Z");
    const both = cron("0,30 2,3 * * *", { zone: "America/New_York", gap: "skip" });
    expect(
      (await readThrough({ schedule: both, from, now, state: { since: from } })).map(({ state }) => state),
    ).toEqual(["missed", "missed"]);
    const frozen = withCalendar(both, calendar([{ on: "2026-03-08", reason: "holiday" }]));
    const entries = await readThrough({ schedule: frozen, from, now, state: { since: from } });
    expect(entries.map(({ state, reason }) => [state, reason])).toEqual([
      ["calendar", "holiday"],
      ["calendar", "holiday"],
    ]);
  });

  it("that no record names is settled all the same where the job has gone past it", async () => {
    const kept = { records: [record(3, 3, 3)], state: { tick: at(5) }, now: at(5.5) };
    expect(await states(kept)).toEqual([
      "00:00 unrecorded",
      "01:00 unrecorded",
      "02:00 unrecorded",
      "03:00 done",
      "04:00 unrecorded",
      "05:00 unrecorded",
    ]);
  });

  it("that an earlier schedule didn't have is said to have been none, and those that it had are shown", async () => {
    const halfPast = { ticks: { from: at(1.5), through: at(1.5), count: 1 }, completed: at(1.5), nextTick: at(4.5) };
    const records = [
      record(1, 0, 0, { nextTick: at(1.5) }),
      record(2, 1, 1, { ...halfPast, startedAt: at(1.5) + 1, endedAt: at(1.5) + 2 }),
      record(3, 4, 4, {
        ticks: { from: at(4.5), through: at(4.5), count: 1 },
        completed: at(4.5),
        startedAt: at(4.5) + 1,
        endedAt: at(4.5) + 2,
        nextTick: at(5),
      }),
      record(4, 5, 5),
    ];
    const entries = await read({ records, state: { tick: at(5) }, now: at(5.5) });
    expect(entries.map(({ tick, state, offSchedule }) => [(tick - day) / hourMs, state, offSchedule])).toEqual([
      [0, "done", undefined],
      [1, "unscheduled", undefined],
      [1.5, "done", true],
      [2, "unscheduled", undefined],
      [3, "unscheduled", undefined],
      [4, "unscheduled", undefined],
      [4.5, "done", true],
      [5, "done", undefined],
    ]);
  });

  it("that two runs settled is shown with both", async () => {
    const entries = await read({ records: [record(1, 0, 1), record(2, 1, 2)], state: { tick: at(2) }, now: at(2.5) });
    expect(entries).toEqual([
      { tick: at(0), state: "covered", run: "run 1" },
      { tick: at(1), state: "doubled", run: "run 1", others: ["run 2"] },
      { tick: at(2), state: "done", run: "run 2" },
    ]);
  });

  it("is its run's also where the clocks of two machines put their records the other way round", async () => {
    const ahead = record(1, 0, 1, { startedAt: at(2) + 2_000, endedAt: at(2) + 2_500 });
    const died = record(2, 2, 2, {
      outcome: "crashed",
      ticks: { from: at(2), through: at(2), count: 1 },
      startedAt: at(2) + 1_000,
      endedAt: at(2.4),
    });
    const entries = await read({ records: [died, ahead], state: { tick: at(2) }, now: at(2.5) });
    expect(entries.map(({ state, run }) => [state, run])).toEqual([
      ["covered", "run 1"],
      ["done", "run 1"],
      ["done", "run 2"],
    ]);
  });

  it("is as its run's record says where that was written while the ledger was read", async () => {
    const entry = { id: "run 2", owner: "o", tick: at(3), startedAt: at(3), trigger: "schedule" as const, seq: 0 };
    const { completed: _, ...ended } = record(2, 3, 3, { outcome: "failed", startedAt: at(3), endedAt: at(3.1) });
    const { fence: __, ...died } = ended;
    const done = record(1, 0, 2);
    const going = { tick: at(2), owner: "o", run: entry, leaseUntil: at(9) };
    const failed = { tick: at(3), state: "failed", run: "run 2" };
    const read3 = async (state: Kept["state"], last: RunRecord) =>
      (await read({ records: [done, last], state: { tick: at(2), ...state }, now: at(3.2) })).at(-1);
    expect(await read3(going, ended)).toEqual({ ...failed, outcome: "failed" });
    expect(await read3({ prev: [entry] }, { ...died, outcome: "crashed" })).toEqual({ ...failed, outcome: "crashed" });
  });

  it("that was done long before its time, by hand, is found however much has happened since", async () => {
    const early = record(1, 0, 5, { trigger: "manual", startedAt: at(0.5), endedAt: at(0.6) });
    const { ticks: _, ...byHand } = record(2, 5, 5, { trigger: "manual", startedAt: at(2), endedAt: at(2.1) });
    const kept = { records: [early, byHand], state: { tick: at(5) }, now: at(5.5), from: at(4) };
    expect(await states(kept)).toEqual(["04:00 done", "05:00 done"]);
  });

  it("of before the job had its name is known by the old one's records and acts", async () => {
    const skip: ActRecord = {
      id: "s",
      kind: "skip",
      by: "ann",
      why: "never mind",
      at: at(2.5),
      fence: 3,
      ticks: { from: at(1), through: at(2), count: 2 },
    };
    const older = { records: [record(2, 0, 0, { job: "old" })], acts: [skip] };
    const entries = await read({ records: [record(9, 3, 3)], older, state: { tick: at(3) }, now: at(3.5) });
    expect(entries).toEqual([
      { tick: at(0), state: "done", run: "run 2" },
      { tick: at(1), state: "skipped", reason: "operator", by: "ann", why: "never mind" },
      { tick: at(2), state: "skipped", reason: "operator", by: "ann", why: "never mind" },
      { tick: at(3), state: "done", run: "run 9" },
    ]);
  });

  it("that was delivered first of all, before the job was known, is failed when its run was, and not owed before", async () => {
    const failed = record(1, 3, 3, { outcome: "failed" });
    const { completed: _, ...first } = failed;
    const kept = { records: [first], state: { since: at(3) }, now: at(3.2) };
    expect(await states(kept)).toEqual(["00:00 before", "01:00 before", "02:00 before", "03:00 failed"]);
  });

  it("that was started by hand and that the schedule doesn't have is shown as long as it isn't done, too", async () => {
    const { completed: _, ...tried } = record(1, 2, 2, {
      outcome: "timed_out",
      trigger: "manual",
      ticks: { from: at(0), through: at(2.25), count: 4 },
      startedAt: at(2.3),
      endedAt: at(2.4),
    });
    const entries = await read({ records: [tried], now: at(2.5) });
    expect(entries.at(-1)).toEqual({
      tick: at(2.25),
      state: "failed",
      run: "run 1",
      outcome: "timed_out",
      offSchedule: true,
    });
    expect(entries).toHaveLength(4);
  });

  it("is owed until it is late by the watchdog's word, and missed from then on", async () => {
    const lateFrom = at(6) + 60_000 + 600_000 + 10_000;
    const state = { tick: at(5) };
    const records = [record(1, 0, 5, { startedAt: at(5) })];
    expect((await read({ records, state, now: lateFrom })).at(-1)).toEqual({ tick: at(6), state: "owed", lateFrom });
    expect((await read({ records, state, now: lateFrom + 1 })).at(-1)).toEqual({ tick: at(6), state: "missed" });
  });

  it("in the future isn't in the ledger", async () => {
    expect(await states({ now: at(0.1) })).toEqual(["00:00 owed"]);
  });

  it("of a run whose lease has run out isn't taken for being done", async () => {
    const run = { id: "r", owner: "o", tick: at(6), startedAt: at(6), trigger: "schedule" as const, seq: 0 };
    const going = { tick: at(5), owner: "o", run };
    const records = [record(1, 0, 5, { startedAt: at(5) })];
    const now = at(6.5);
    const live = await read({ records, state: { ...going, leaseUntil: now - 10_000 }, now });
    expect(live.at(-1)).toEqual({ tick: at(6), state: "running", run: "r" });
    const dead = await read({ records, state: { ...going, leaseUntil: now - 10_001 }, now });
    expect(dead.at(-1)).toEqual({ tick: at(6), state: "failed", run: "r" });
  });
});

it("a ledger of nothing says why", () => {
  const ledger = (job: object, from: number, to: number) => () =>
    ledgerOf(
      { name: "job", catchUp: {}, ...job } as never,
      { from, to },
      { store: storeOf({}), now: () => 0, budget: () => ({}) as never },
    );
  expect(ledger({}, 0, 1)).toThrow("no schedule");
  expect(ledger({ schedule: hourly }, 2, 1)).toThrow(
    "from is 1970-01-01T00:00:00.002Z, and must not be later than to, 1970-01-01T00:00:00.001Z",
  );
  expect(ledger({ schedule: hourly }, Number.NaN, 1)).toThrow("from is NaN");
});
