/** What the watchdog makes of a job: each rule by itself, on control items as they are kept. */
import { type ControlState, cron, defineJob, type Job } from "cronfence";
import { dutyOf, type JudgeOptions, judge, lateAfterMs, type WatchedJob } from "cronfence/watchdog";
import { describe, expect, it } from "vitest";

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
const at = (text: string) => Date.parse(text);
const clock = { now: () => at("2026-01-01T00:00:00Z"), after: () => () => {} };

const define = (more: object = {}): Job =>
  defineJob(
    {
      name: "daily",
      schedule: cron("30 6 * * *"),
      timeout: "5m",
      jitter: "10m",
      skew: "10s",
      alert: { missedAfter: "20m" },
      run: () => {},
      ...more,
    },
    { clock },
  );
const daily = define();

const healthy: ControlState = {
  job: "daily",
  fence: 1_767_225_600,
  prev: [],
  recentOwners: [],
  since: at("2026-01-01T00:00:00Z"),
  tick: at("2026-03-09T06:30:00Z"),
  lastSuccessAt: at("2026-03-09T06:31:00Z"),
  unfinished: 0,
  failedTicks: 0,
  recent: [],
};
const state = (more: Partial<ControlState> = {}): ControlState => ({ ...healthy, ...more });
/** The first tick that `healthy` owes. */
const owed = at("2026-03-10T06:30:00Z");

const options: JudgeOptions = { heals: false, tooLongMs: 7 * day, everyMs: 5 * minute };
const look = (now: number, given: ControlState = healthy, job: WatchedJob = daily, more: Partial<JudgeOptions> = {}) =>
  judge(job, given, now, { ...options, ...more });

describe("A tick must be done", () => {
  it("by its time, the jitter, the timeout, the slack and the skew, and is overdue from then on", () => {
    const by = owed + 10 * minute + 5 * minute + 20 * minute + 10 * second;
    expect(lateAfterMs(daily)).toBe(by - owed);
    expect(look(by)).toMatchObject({ overdueMs: 0 });
    expect(look(by)).not.toHaveProperty("overdueTick");
    expect(look(by + 1)).toMatchObject({ overdueMs: 1, overdueTick: owed });
    // Not from its own deadline anew with every further tick.
    expect(look(by + 3 * day)).toMatchObject({ overdueMs: 3 * day, overdueTick: owed });
  });

  it("and once it is, the next one is what is waited for", () => {
    const done = state({ tick: owed });
    expect(look(owed + 20 * hour, done).overdueMs).toBe(0);
    expect(look(owed + day + hour, done)).toMatchObject({ overdueTick: owed + day });
  });

  it("unless the calendar removes it", () => {
    const closed = define({ except: ["2026-03-10..2026-03-12"] });
    expect(look(owed + 3 * day - 1, healthy, closed).overdueMs).toBe(0);
    expect(look(owed + 3 * day + hour, healthy, closed).overdueTick).toBe(owed + 3 * day);
  });

  it("unless it is from before the job was known, or before its first instant", () => {
    const { tick, lastSuccessAt, ...never } = healthy;
    const known = { ...never, since: owed };
    expect(look(owed + 23 * hour, known).overdueMs).toBe(0);
    expect(look(owed + day + hour, known).overdueTick).toBe(owed + day);
    const later = define({ startAt: "2026-03-20T00:00:00Z" });
    expect(look(at("2026-03-20T06:00:00Z"), healthy, later).overdueMs).toBe(0);
    expect(look(at("2026-03-20T07:30:00Z"), healthy, later).overdueTick).toBe(at("2026-03-20T06:30:00Z"));
  });

  it("unless there is no schedule, or none of its ticks is left", () => {
    const { schedule, ...byHand } = define({ jitter: undefined });
    expect(look(owed + 99 * day, healthy, byHand).overdueMs).toBe(0);
    expect(dutyOf(byHand, healthy, undefined)).toBeUndefined();
    const once = define({ schedule: cron("cron(30 6 9 3 ? 2026)"), jitter: undefined });
    expect(look(owed + 99 * day, healthy, once).overdueMs).toBe(0);
  });

  it("whatever run holds the lease: that it is late is so all the same", () => {
    const run = { id: "r1", owner: "o", startedAt: owed + 30 * minute, trigger: "schedule", seq: 0 } as const;
    const held = state({ owner: "o", leaseUntil: owed + 40 * minute, run, unfinished: 1 });
    expect(look(owed + 36 * minute, held).overdueMs).toBeGreaterThan(0);
  });
});

describe("While a job is paused or in a dry run", () => {
  const paused = { by: "ann", why: "stocktaking", at: owed - hour };
  const long = owed + 30 * day;

  it("nothing of it is overdue, and after too long that is remarked on", () => {
    expect(look(long, state({ paused }))).toMatchObject({
      overdueMs: 0,
      remarks: [{ kind: "paused", forMs: 30 * day + hour, by: "ann", why: "stocktaking" }],
    });
    expect(look(owed + 6 * day, state({ paused }))).toMatchObject({ overdueMs: 0, remarks: [] });
    const dry = define({ dryRun: true });
    expect(look(long, healthy, dry)).toMatchObject({
      overdueMs: 0,
      remarks: [{ kind: "dryRun", forMs: long - healthy.lastSuccessAt! }],
    });
    expect(look(owed + 5 * day, healthy, dry).remarks).toEqual([]);
  });

  it("a dry run is counted from the first day where nothing was ever done", () => {
    const { lastSuccessAt, tick, ...never } = healthy;
    const dry = define({ dryRun: true });
    expect(look(never.since + 8 * day, never, dry).remarks).toEqual([{ kind: "dryRun", forMs: 8 * day }]);
  });

  it("nothing is started", () => {
    expect(look(long, state({ paused }), daily, { heals: true })).not.toHaveProperty("start");
    expect(look(long, healthy, define({ dryRun: true }), { heals: true })).not.toHaveProperty("start");
  });

  it("and after a pause, the ticks that fell into it are late only after the next delivery", () => {
    const ends = owed + 2 * day + hour;
    for (const resumed of [state({ activeSince: ends }), state({ paused: { ...paused, until: ends } })]) {
      const next = owed + 3 * day;
      expect(look(ends + 1, resumed).overdueMs).toBe(0);
      expect(look(next + lateAfterMs(daily), resumed).overdueMs).toBe(0);
      expect(look(next + lateAfterMs(daily) + 1, resumed)).toMatchObject({ overdueMs: 1, overdueTick: owed });
    }
  });

  it("a pause that has no end yet outlasts one that had", () => {
    expect(look(long, state({ paused: { ...paused, until: long + 1 } })).overdueMs).toBe(0);
  });
});

describe("After a deployment with another schedule", () => {
  const deployed = owed - 10 * hour + minute;
  const often = define({ schedule: cron("*/30 * * * *"), timeout: "1m", jitter: 1, alert: { missedAfter: "5m" } });
  const asOnce = state({ nextTick: owed });

  it("ticks that the old one hadn't aren't overdue, and the change is to be noted", () => {
    const judged = look(deployed, asOnce, often);
    expect(judged.overdueMs).toBe(0);
    expect(judged.rescheduled).toBe(at("2026-03-09T07:00:00Z"));
  });

  it("the first tick after it must be done, once it is noted", () => {
    const noted = state({ nextTick: at("2026-03-09T07:00:00Z"), activeSince: deployed });
    const first = at("2026-03-09T21:00:00Z");
    expect(look(deployed + minute, noted, often)).not.toHaveProperty("rescheduled");
    expect(look(first + 6 * minute, noted, often).overdueMs).toBe(0);
    expect(look(first + 7 * minute, noted, often).overdueMs).toBeGreaterThan(0);
  });

  it("nothing is to be noted where the schedule is the same, has become sparser, or its new tick is to come", () => {
    expect(look(deployed, state({ nextTick: owed }))).not.toHaveProperty("rescheduled");
    expect(look(deployed, state({ nextTick: owed - 5 * hour }))).not.toHaveProperty("rescheduled");
    expect(look(healthy.lastSuccessAt! + minute, asOnce, often)).not.toHaveProperty("rescheduled");
    expect(look(deployed, healthy, often)).not.toHaveProperty("rescheduled");
  });

  it("nor where a failing run has moved the tick on since the last success", () => {
    const further = state({ nextTick: owed, tick: deployed - hour });
    expect(look(deployed, further, often)).not.toHaveProperty("rescheduled");
    expect(look(deployed, further, often).overdueMs).toBeGreaterThan(0);
  });
});

describe("A time of day that the clocks skip (case 16)", () => {
  // 02:30 doesn't exist in New York on 2026-03-08: the tick is 03:00 EDT, and EventBridge leaves it out.
  const skipped = at("2026-03-08T07:00:00Z");
  const next = at("2026-03-09T06:30:00Z");
  const nightly = define({ schedule: cron("30 2 * * *", { zone: "America/New_York" }) });
  const before = state({ tick: at("2026-03-07T07:30:00Z"), lastSuccessAt: at("2026-03-07T07:31:00Z") });

  it("is due with the next delivery, where the watchdog starts nothing", () => {
    expect(dutyOf(nightly, before, undefined)).toMatchObject({ tick: skipped, from: next, leftOut: false });
    expect(look(next + lateAfterMs(nightly), before, nightly).overdueMs).toBe(0);
    expect(look(next + lateAfterMs(nightly) + 1, before, nightly).overdueTick).toBe(skipped);
  });

  it("is started by a healing watchdog soon after its time, long before it is late", () => {
    const heals = { heals: true };
    expect(look(skipped + 11 * minute, before, nightly, heals)).not.toHaveProperty("start");
    expect(look(skipped + 11 * minute + 1, before, nightly, heals)).toMatchObject({ start: skipped, overdueMs: 0 });
    expect(dutyOf(nightly, before, 5 * minute)).toMatchObject({
      tick: skipped,
      from: skipped + 5 * minute,
      leftOut: true,
    });
  });

  it("isn't owed where the job says so", () => {
    const skips = define({ schedule: cron("30 2 * * *", { zone: "America/New_York", gap: "skip" }) });
    expect(dutyOf(skips, before, 5 * minute)).toMatchObject({ tick: next, from: next });
  });
});

describe("A healing watchdog starts", () => {
  const heal = (now: number, given: ControlState = healthy, job: WatchedJob = daily) =>
    look(now, given, job, { heals: true }).start;
  // A delivery within a minute and the jitter, three tries of 5 minutes, 1 and 2 minutes between them: 29 minutes.
  const late = lateAfterMs(daily);

  it("a tick that is overdue, and only where it heals", () => {
    expect(heal(owed + late)).toBeUndefined();
    expect(heal(owed + late + 1)).toBe(owed);
    expect(look(owed + late + 1)).not.toHaveProperty("start");
  });

  it("no tick that the platform may still be trying", () => {
    const hasty = define({ alert: { missedAfter: "1m" } });
    const tries = 10 * minute + minute + 3 * 5 * minute + 3 * minute;
    expect(look(owed + tries, healthy, hasty).overdueMs).toBeGreaterThan(0);
    expect(heal(owed + tries, healthy, hasty)).toBeUndefined();
    expect(heal(owed + tries + 1, healthy, hasty)).toBe(owed);
  });

  it("the latest of several, whose run does those before it", () => {
    expect(heal(owed + 3 * day + late + 1)).toBe(owed + 3 * day);
    expect(heal(owed + 3 * day + 1)).toBe(owed + 2 * day);
  });

  it("nothing while a run holds the lease, and something again when it is over", () => {
    const run = { id: "r1", owner: "o", startedAt: owed, trigger: "schedule", seq: 0 } as const;
    const until = owed + 2 * hour;
    const held = state({ owner: "o", leaseUntil: until, run, unfinished: 1 });
    expect(heal(until + 10 * second, held)).toBeUndefined();
    expect(heal(until + 10 * second + 1, held)).toBe(owed);
  });

  it("each tick once, and then less and less often", () => {
    const healed = { tick: owed, at: owed + hour, times: 1, by: "w" };
    expect(heal(owed + 2 * hour, state({ healed }))).toBeUndefined();
    const next = owed + day;
    expect(heal(next + late + 1, state({ healed }))).toBe(next);
    // The sixth pause is 5 minutes times 2 to the sixth, the ninth is about 43 hours.
    const often = state({ healed: { ...healed, times: 9, at: owed + hour } });
    expect(heal(owed + hour + 5 * minute * 2 ** 9 - 1, often)).toBeUndefined();
    expect(heal(owed + hour + 5 * minute * 2 ** 9, often)).toBe(owed + day);
  });

  it("without a pause where the job has succeeded in between", () => {
    const healed = { tick: owed, at: owed + hour, times: 12, by: "w" };
    const recovered = state({ healed, tick: owed, lastSuccessAt: owed + 2 * hour });
    expect(heal(owed + day + late + 1, recovered)).toBe(owed + day);
  });

  it("nothing before the first delivery after a pause was due", () => {
    const ends = owed + 2 * day + hour;
    const resumed = state({ activeSince: ends });
    expect(heal(ends + hour, resumed)).toBeUndefined();
    expect(heal(owed + 3 * day + late + 1, resumed)).toBe(owed + 3 * day);
  });
});

describe("A run is suspected", () => {
  const run = { id: "r7", owner: "o", startedAt: owed, tick: owed, trigger: "schedule", seq: 3 } as const;
  const held = (leaseUntil: number) => state({ owner: "o", leaseUntil, run, unfinished: 1 });

  it("to have died when its lease has been over for the skew", () => {
    const until = owed + minute;
    expect(look(until + 10 * second, held(until)).suspects).toEqual([]);
    expect(look(until + 10 * second + 1, held(until)).suspects).toEqual([
      { kind: "dead", run: "r7", startedAt: owed, tick: owed },
    ]);
  });

  it("to hang when it holds its lease longer than its timeout allows", () => {
    const now = owed + 5 * minute + 20 * second;
    expect(look(now, held(now + minute)).suspects).toEqual([]);
    expect(look(now + 1, held(now + minute)).suspects).toEqual([
      { kind: "hung", run: "r7", startedAt: owed, tick: owed },
    ]);
  });

  it("when a later one was started over it, and has not yet been recorded as crashed (case 27)", () => {
    const { tick, ...manual } = { ...run, id: "r5", startedAt: owed - hour };
    const now = owed + minute;
    const both = { ...held(now + minute), prev: [{ ...manual }, { ...run, id: "r6", startedAt: owed - minute }] };
    expect(look(now, both).suspects).toEqual([
      { kind: "replaced", run: "r5", startedAt: owed - hour },
      { kind: "replaced", run: "r6", startedAt: owed - minute, tick: owed },
    ]);
  });
});

describe("What else is measured:", () => {
  it("failures in a row, the run that is going not counted", () => {
    expect(look(owed, state({ failedTicks: 2 })).failures).toBe(2);
    const run = { id: "r", owner: "o", startedAt: owed, trigger: "schedule", seq: 0 } as const;
    const third = state({ failedTicks: 2, unfinished: 4, owner: "o", leaseUntil: owed + minute, run });
    expect(look(owed, third).failures).toBe(3);
  });

  it("capped runs in a row, the latest ones", () => {
    const ran = (capped?: true) => ({ durationMs: 1, items: 1, ...(capped && { capped }) });
    expect(look(owed, state({ recent: [] })).cappedInARow).toBe(0);
    expect(look(owed, state({ recent: [ran(true), ran(), ran(true), ran(true)] })).cappedInARow).toBe(2);
    expect(look(owed, state({ recent: [ran(true), ran()] })).cappedInARow).toBe(0);
    expect(look(owed, state({ recent: [ran(true), ran(true)] })).cappedInARow).toBe(2);
  });

  it.each([
    ["2026-03-10T06:00:00.000Z#cart-7", 30 * minute],
    ["2026-03-10T06:00:00Z", 30 * minute],
    ["2026-03-10T07:00:00+01:00", 30 * minute],
    ["2026-03-10T06:31:00Z", 0],
    [owed - hour, hour],
    ["cart-2026-03-10T06:00:00Z", undefined],
    ["2026-03-10", undefined],
    ["2026-13-45T99:00:00Z", undefined],
    [4711, undefined],
    [owed + 2 * day, undefined],
    [{ at: owed }, undefined],
    [null, undefined],
  ])("how far the watermark %j is behind: %s ms", (watermark, lag) => {
    const judged = look(owed, state({ watermark }));
    if (lag === undefined) expect(judged).not.toHaveProperty("watermarkLagMs");
    else expect(judged.watermarkLagMs).toBe(lag);
  });

  it("a recent run that came near its timeout", () => {
    const ran = (durationMs: number) => ({ durationMs, items: 1 });
    expect(look(owed, state({ recent: [ran(4 * minute)] })).remarks).toEqual([]);
    expect(look(owed, state({ recent: [ran(4 * minute + 1), ran(minute)] })).remarks).toEqual([
      { kind: "nearTimeout", slowestMs: 4 * minute + 1, timeoutMs: 5 * minute },
    ]);
  });
});

describe("An item that can't be judged is refused, not taken for a healthy one:", () => {
  it.each([
    [{ tick: "yesterday" }, 'tick on the control item is "yesterday", and must be a number'],
    [{ failedTicks: Number.NaN }, "failedTicks on the control item is null"],
    [{ since: undefined }, "since on the control item is undefined"],
    [{ leaseUntil: {} }, "leaseUntil on the control item is {}"],
    [{ recent: [{ items: 1 }] }, "recent on the control item is undefined"],
    [{ prev: [{ id: "r" }] }, "startedAt on the control item is undefined"],
    [{ tick: owed + 365 * day }, "lies in the future: no tick before it will run"],
  ])("%j", (broken, problem) => {
    expect(() => look(owed, { ...healthy, ...broken } as never)).toThrow(problem);
  });

  it("but not one of a machine whose clock is a little ahead of ours", () => {
    expect(() => look(owed, state({ tick: owed + 70 * second }))).not.toThrow();
  });
});
