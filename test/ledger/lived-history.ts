/**
 * A job's history, lived tick by tick, by a model that sees everything: what it leaves behind (control item, run records, acts)
 * is all that the ledger gets, and what became of each tick is kept beside it.
 */
import type { ActRecord, ControlState, RunEntry, RunOutcome, RunRecord } from "cronfence";
import type { TickState } from "cronfence/operate";
import fc from "fast-check";
import { type CatchUpPolicy, planTicks, type TickPlan } from "../../src/catch-up.ts";
import type { HistoryStore } from "../../src/ledger/read-history.ts";
import { calendar, cron, type ScheduleWithCalendar, withCalendar } from "../../src/schedule/index.ts";
import type { WatchedJob } from "../../src/watchdog/watched-job.ts";

export const minuteMs = 60_000;
export const start = Date.parse("2026-01-01T00:00:00Z");
const at = (minutes: number) => start + minutes * minuteMs;

/** What happens at a tick, and two and a half minutes after it. */
interface Turn {
  readonly delivery: "none" | "delivered" | "again";
  readonly lateSeconds: number;
  readonly runMinutes: number;
  readonly outcome: RunOutcome;
  /** Ticks that are done before the run ends; `succeeded` does all. */
  readonly ticks: number;
  /** How far the run's clock is off. */
  readonly skewSeconds: number;
  /** Whether the next run manages to record this one, should it crash. */
  readonly recorded: boolean;
  readonly act?: "pause" | "pause a while" | "resume" | "skip" | "cancel" | "rewind";
}

export interface Plot {
  readonly frozen: readonly number[];
  readonly policy: CatchUpPolicy;
  readonly byTick: boolean;
  readonly queues: boolean;
  readonly turns: readonly Turn[];
}

export const plots: fc.Arbitrary<Plot> = fc.record({
  frozen: fc.array(fc.integer({ min: 0, max: 190 }), { maxLength: 2 }),
  policy: fc.record(
    {
      catchUp: fc.constantFrom("all", "all", "latest", "none"),
      maxTicks: fc.integer({ min: 1, max: 6 }),
      startWithinMs: fc.integer({ min: 3 * minuteMs, max: 40 * minuteMs }),
      startAt: fc.integer({ min: start, max: at(60) }),
    },
    { requiredKeys: ["catchUp"] },
  ) as fc.Arbitrary<CatchUpPolicy>,
  byTick: fc.boolean(),
  queues: fc.boolean(),
  turns: fc.array(
    fc.record(
      {
        delivery: fc.constantFrom("none", "delivered", "delivered", "delivered", "again"),
        lateSeconds: fc.integer({ min: 0, max: 59 }),
        runMinutes: fc.integer({ min: 0, max: 14 }),
        outcome: fc.constantFrom<RunOutcome>(
          "succeeded",
          "succeeded",
          "succeeded",
          "capped",
          "failed",
          "crashed",
          "lease_lost",
          "timed_out",
          "dry_run",
        ),
        ticks: fc.integer({ min: 0, max: 6 }),
        skewSeconds: fc.integer({ min: -60, max: 60 }),
        recorded: fc.boolean(),
        act: fc.constantFrom("pause", "pause a while", "resume", "skip", "cancel", "rewind"),
      },
      {
        requiredKeys: ["delivery", "lateSeconds", "runMinutes", "outcome", "ticks", "skewSeconds", "recorded"],
      },
    ) as fc.Arbitrary<Turn>,
    { minLength: 1, maxLength: 40 },
  ),
});

/** What became of a tick, and by whom. */
interface Truth {
  readonly state: TickState;
  readonly run?: string;
}

export interface Lived {
  readonly job: WatchedJob;
  readonly store: HistoryStore;
  readonly now: number;
  readonly truth: ReadonlyMap<number, Truth>;
}

interface Going {
  readonly id: string;
  readonly fence: number;
  readonly turn: Turn;
  /** By its own clock. */
  readonly startedAt: number;
  readonly endsAt: number;
  readonly plan: TickPlan;
  /** It has died, and nobody knows yet. */
  dead: boolean;
}

export const live = ({ frozen, policy, byTick, queues, turns }: Plot): Lived => {
  const exceptions = calendar(frozen.map((minute) => ({ from: at(minute), to: at(minute + 12) })));
  const schedule: ScheduleWithCalendar = withCalendar(cron("*/5 * * * *"), exceptions);
  const since = start - 1;
  const job: WatchedJob = {
    name: "job",
    schedule,
    timeoutMs: 4 * minuteMs,
    jitterMs: 0,
    skewMs: 10_000,
    dryRun: false,
    alert: { missedAfterMs: 10 * minuteMs } as WatchedJob["alert"],
    catchUp: policy,
  };
  const began = Math.max(since, (policy.startAt ?? 0) - 1);
  const truth = new Map<number, Truth>();
  /** What is remembered of ticks that aren't settled. */
  const tries = new Map<number, Truth>();
  const paused = new Set<number>();
  const held = new Map<number, string | undefined>();
  const records: RunRecord[] = [];
  const acts: ActRecord[] = [];
  const prev: RunEntry[] = [];
  let fence = 1_000;
  let completed: number | undefined;
  let pending: number | undefined;
  let going: Going | undefined;
  let pause: { at: number; until: number } | undefined;
  let activeSince = since;
  let lastDelivered: number | undefined;

  const pausedAt = (time: number) => pause !== undefined && time >= pause.at && time < pause.until;
  const dueIn = (after: number, through: number) => [...schedule.between(after, through)];
  const owedAfter = () => Math.max(since, completed ?? since);

  const settle = (through: number, run: Going, skipped: TickPlan["skipped"], last: number) => {
    const named = new Set([...dueIn(owedAfter(), through), ...(run.plan.range.through === through ? [through] : [])]);
    for (const tick of named) {
      const reason = skipped.find((range) => tick >= range.from && tick <= range.through)?.reason;
      const own = tick === last || run.startedAt < (schedule.next(tick) as number);
      const state =
        reason === "before startAt"
          ? "before"
          : reason === "calendar"
            ? "calendar"
            : reason !== undefined
              ? "skipped"
              : own
                ? "done"
                : "covered";
      truth.set(tick, { state, run: run.id });
    }
    completed = Math.max(completed ?? through, through);
  };

  const settledBy = ({ turn, plan }: Going): number | undefined => {
    if (turn.outcome === "dry_run") return undefined;
    if (turn.outcome === "succeeded" || (turn.outcome === "capped" && !byTick)) return plan.range.through;
    return byTick ? plan.ticks[Math.min(turn.ticks, plan.ticks.length) - 1] : undefined;
  };

  const remember = (through: number, run: string, outcome: RunOutcome | undefined) => {
    const left = outcome === "capped" || outcome === "dry_run";
    for (const tick of [...dueIn(owedAfter(), through), through]) {
      if (tick > (completed ?? since)) tries.set(tick, { state: left ? "owed" : "failed", run });
    }
  };

  const hold = (run: Going, endedAt: number) => {
    for (const tick of dueIn(run.plan.range.through, endedAt - 1)) if (tick >= run.startedAt) held.set(tick, run.id);
  };

  const recordOf = (run: Going, outcome: RunOutcome, endedAt: number, known: number | undefined): RunRecord => {
    const secondHand = outcome === "crashed" || outcome === "cancelled";
    const tick = run.plan.range.through;
    const skipped = run.plan.skipped.filter(({ through }) => through <= (known ?? 0));
    return {
      job: "job",
      id: run.id,
      owner: run.id,
      outcome,
      trigger: "schedule",
      startedAt: run.startedAt,
      endedAt,
      items: 0,
      commits: 1,
      // Nobody knows the fence of a run that died before its first commit.
      ...(outcome === "crashed" && known === undefined ? {} : { fence: run.fence }),
      ticks: secondHand ? { from: tick, through: tick, count: 1 } : run.plan.range,
      ...(known === undefined ? {} : { completed: known }),
      ...(skipped.length === 0 ? {} : { skipped }),
    };
  };

  const end = (run: Going, time: number) => {
    const { outcome } = run.turn;
    const through = settledBy(run);
    if (outcome === "crashed") {
      if (through !== undefined) settle(through, run, run.plan.skipped, run.plan.range.through);
      remember(run.plan.range.through, run.id, undefined);
      run.dead = true;
      return;
    }
    going = undefined;
    hold(run, time);
    let { range, skipped } = run.plan;
    if (outcome === "succeeded" && pending !== undefined && pending > range.through) {
      // It goes round once more for the tick that was queued behind it.
      const more = planTicks(schedule, policy, {
        after: range.through,
        through: pending,
        delivered: [pending],
        now: time,
      });
      settle(range.through, run, skipped, more.range.through);
      range = { from: range.from, through: more.range.through, count: range.count + more.range.count };
      skipped = [...skipped, ...more.skipped];
      const again: Going = { ...run, plan: { ...more, range, skipped } };
      settle(range.through, again, skipped, range.through);
      records.push(recordOf(again, outcome, time, completed));
    } else {
      if (through !== undefined) settle(through, run, skipped, range.through);
      records.push(recordOf(run, outcome, time, completed));
    }
    if (outcome === "succeeded") pending = undefined;
    else remember(range.through, run.id, outcome);
  };

  const pass = (time: number) => {
    if (going !== undefined && !going.dead && going.endsAt <= time) end(going, going.endsAt);
  };

  const deliver = (tick: number, time: number, turn: Turn) => {
    lastDelivered = tick;
    if (completed !== undefined && completed >= tick) return;
    if (pausedAt(time)) return;
    if (going !== undefined && !going.dead) {
      if (queues && going.plan.range.through < tick) {
        pending = Math.max(pending ?? tick, tick);
      }
      return;
    }
    fence += 1;
    if (going?.dead) {
      const known = settledBy(going);
      if (going.turn.recorded) records.push(recordOf(going, "crashed", time, known));
      else prev.push(entryOf(going));
    }
    const plan = planTicks(schedule, policy, {
      after: owedAfter(),
      through: Math.max(tick, pending ?? tick),
      delivered: [tick, ...(pending === undefined ? [] : [pending])],
      now: time,
    });
    const startedAt = time + turn.skewSeconds * 1_000;
    going = {
      id: `run ${fence}`,
      fence,
      turn,
      startedAt,
      endsAt: time + turn.runMinutes * minuteMs,
      plan,
      dead: false,
    };
    pass(time);
  };

  const entryOf = (run: Going): RunEntry => {
    const known = run.dead ? settledBy(run) : undefined;
    const skipped = run.plan.skipped.filter(({ through }) => through <= (known ?? 0));
    return {
      id: run.id,
      owner: run.id,
      tick: run.plan.range.through,
      startedAt: run.startedAt,
      trigger: "schedule",
      seq: 1,
      ...(known === undefined ? {} : { completed: known, fence: run.fence }),
      ...(skipped.length === 0 ? {} : { skipped }),
    };
  };

  const act = (kind: NonNullable<Turn["act"]>, time: number) => {
    const note = (what: Partial<ActRecord> & Pick<ActRecord, "kind">) =>
      acts.push({ id: `act ${acts.length}`, by: "ann", why: "test", at: time, ...what });
    if (kind === "pause" || kind === "pause a while") {
      const until = kind === "pause" ? Number.POSITIVE_INFINITY : time + 11 * minuteMs;
      pause = { at: time, until };
      note({ kind: "pause", ...(kind === "pause" ? {} : { until }) });
    } else if (kind === "resume") {
      if (pause === undefined) return;
      pause = undefined;
      activeSince = time;
      note({ kind: "resume" });
    } else if (kind === "cancel") {
      if (going === undefined) return;
      fence += 1;
      const known = going.dead ? settledBy(going) : undefined;
      records.push(recordOf(going, "cancelled", time, known));
      hold(going, time);
      remember(going.plan.range.through, going.id, "cancelled");
      going = undefined;
      note({ kind: "cancel", fence });
    } else if (kind === "rewind") {
      if (going !== undefined) return;
      fence += 1;
      note({ kind: "rewind", fence });
    } else {
      if (going !== undefined) return;
      const owed = dueIn(Math.max(began, owedAfter()), time).slice(0, 3);
      if (owed.length === 0) return;
      fence += 1;
      for (const tick of owed) truth.set(tick, { state: "skipped" });
      completed = owed.at(-1);
      if (pending !== undefined && pending <= completed!) pending = undefined;
      note({ kind: "skip", fence, ticks: { from: owed[0]!, through: completed!, count: owed.length } });
    }
  };

  for (const [index, turn] of turns.entries()) {
    const tick = at(index * 5);
    pass(tick);
    if (pausedAt(tick)) paused.add(tick);
    const time = tick + turn.lateSeconds * 1_000;
    pass(time);
    const delivered = turn.delivery === "again" ? (lastDelivered ?? tick) : tick;
    if (turn.delivery !== "none") deliver(delivered, time, turn);
    const later = tick + 150_000;
    pass(later);
    if (turn.act !== undefined) act(turn.act, later);
  }
  const now = at(turns.length * 5 - 1);
  pass(now);

  for (const { tick } of schedule.removed(since, now)) truth.set(tick, { state: "calendar" });
  const dead = going?.dead ?? false;
  if (going !== undefined && !dead) hold(going, now + 1);
  const lastResumed = pause !== undefined && pause.until <= now ? Math.max(activeSince, pause.until) : activeSince;
  const named = [...tries.keys(), ...(pending === undefined ? [] : [pending])];
  if (going !== undefined) named.push(going.plan.range.through);
  for (const tick of new Set([...dueIn(since, now), ...named])) {
    if (truth.has(tick) || tick > now) continue;
    // An operator who skips ticks doesn't meet those from before the job began.
    if (tick <= owedAfter()) {
      if (tick > since) truth.set(tick, { state: tick <= began ? "before" : "unrecorded" });
      continue;
    }
    const byRun = going !== undefined && !dead && tick <= going.plan.range.through;
    if (tick <= began) {
      truth.set(tick, { state: "before" });
      continue;
    }
    const mustStart = schedule.next(Math.max(tick, lastResumed) - 1) as number;
    const late = now > mustStart + job.timeoutMs + 10 * minuteMs + job.skewMs;
    const isPending = pending !== undefined && tick <= pending;
    truth.set(
      tick,
      byRun
        ? { state: "running", run: (going as Going).id }
        : tries.has(tick)
          ? tries.get(tick)!
          : paused.has(tick)
            ? { state: "paused" }
            : held.has(tick)
              ? { state: "held", run: held.get(tick) as string }
              : isPending
                ? { state: "held" }
                : { state: late ? "missed" : "owed" },
    );
  }
  const state: ControlState = {
    job: "job",
    fence,
    since,
    activeSince,
    prev,
    recentOwners: [],
    unfinished: 0,
    failedTicks: 0,
    recent: [],
    ...(completed === undefined ? {} : { tick: completed }),
    ...(pending === undefined ? {} : { pending }),
    ...(pause === undefined ? {} : { paused: { by: "ann", why: "test", ...pause } }),
    ...(going === undefined
      ? {}
      : { owner: going.id, run: entryOf(going), leaseUntil: dead ? now - 30 * minuteMs : now + minuteMs }),
  };
  return { job, now, truth, store: storeOf(state, records, acts) };
};

/** What is kept, in pages so small that every history has several. */
const storeOf = (state: ControlState, records: readonly RunRecord[], acts: readonly ActRecord[]): HistoryStore => {
  const key = ({ startedAt, id }: RunRecord) => `run#${new Date(startedAt).toISOString()}#${id}`;
  const ascending = [...records].sort((one, other) => (key(one) < key(other) ? -1 : 1));
  const page = <T>(found: readonly T[], token: (last: T) => string) => {
    const here = found.slice(0, 3);
    return { here, next: here.length < found.length ? { next: token(here.at(-1) as T) } : {} };
  };
  const oldestFirst = async (_: string, { from, after }: { from: number; after?: string }) => {
    const { here, next } = page(
      ascending.filter((record) => record.startedAt >= from && (after === undefined || key(record) > after)),
      key,
    );
    return { runs: here, ...next };
  };
  return {
    read: async (job) => (job === "job" ? state : undefined),
    runs: async (_, { before }) => {
      const { here, next } = page(
        ascending.filter((record) => before === undefined || key(record) < before).reverse(),
        key,
      );
      return { runs: here, ...next };
    },
    runsSince: oldestFirst,
    coverage: oldestFirst,
    acts: async (_, { before }) => {
      const { here, next } = page(
        acts.filter(({ at }) => before === undefined || at < Number(before)).toReversed(),
        ({ at }) => String(at),
      );
      return { acts: here, ...next };
    },
  };
};
