/** `cronfence/operate` as somebody who builds a tool of their own uses it: real runs on the local engine, and acts on them. */
import { cron, defineJob, type Job, type JobOptions, runJob } from "cronfence";
import {
  approvePlan,
  cancelRun,
  dropParked,
  explainTick,
  findRun,
  jobStatuses,
  type LedgerEntry,
  listActs,
  listRuns,
  moveJob,
  pauseJob,
  readLedger,
  releaseEffect,
  resumeJob,
  retryParked,
  rewindJob,
  skipTick,
} from "cronfence/operate";
import { settableClock } from "cronfence/testing";
import { describe, expect, it } from "vitest";
import { budgetOn, freshName, silentLog, useEngine } from "../fixture.ts";

const fixture = useEngine("results");
const minute = 60_000;
const start = Date.parse("2026-03-01T12:00:00Z");
const ann = { by: "ann", why: "a test" };
const iso = (instant: number) => new Date(instant).toISOString();

const open = (
  more: Partial<JobOptions> & { fails?: () => boolean; during?: (tick: number) => Promise<unknown> } = {},
) => {
  const { fails = () => false, during, ...options } = more;
  const clock = settableClock(start);
  const name = freshName();
  const define = (called: string): Job =>
    defineJob(
      {
        schedule: cron("*/5 * * * *"),
        timeout: "4m",
        ...options,
        name: called,
        tick: async (tick) => {
          await during?.(tick.at.getTime());
          if (fails()) throw new TypeError("no connection");
          return [{ Put: { TableName: "results", Item: { id: tick.id } } }];
        },
      },
      { clock },
    );
  const job = define(name);
  const deps = { store: fixture.store, clock, random: () => 0 };
  /** Delivers the tick so many minutes after the start, at its time or when the clock has passed it. */
  const deliver = async (minutes: number, of: Job = job) => {
    const tick = start + minutes * minute;
    if (clock.now() < tick) clock.set(tick);
    return runJob(of, { kind: "schedule", tick }, { ...deps, log: silentLog });
  };
  const ledger = async (of: Job = job) => {
    const entries: LedgerEntry[] = [];
    for await (const entry of readLedger(of, { from: start, to: clock.now() }, deps)) entries.push(entry);
    return entries.map(({ tick, state }) => `+${(tick - start) / minute} ${state}`);
  };
  return { clock, name, job, define, deps, deliver, ledger };
};

const all = async <T>(found: AsyncIterable<T>): Promise<T[]> => {
  const list: T[] = [];
  for await (const each of found) list.push(each);
  return list;
};

describe("reading", () => {
  it("the status of jobs says what is done, overdue, running, paused, and due next; also of one that never ran", async () => {
    const seen: unknown[] = [];
    const here = open({
      during: async (tick) => {
        if (tick === start + 5 * minute) seen.push(...(await jobStatuses([here.job], here.deps)));
      },
    });
    const never = open();
    await here.deliver(0);
    await here.deliver(5);
    here.clock.set(start + 30 * minute);
    await pauseJob(here.name, ann, here.deps);
    const [status, other] = await jobStatuses([here.job, never.job], here.deps);
    expect(seen).toMatchObject([{ running: { tick: start + 5 * minute, expired: false }, lastTick: start }]);
    expect(status).toMatchObject({
      job: here.name,
      lastTick: start + 5 * minute,
      overdueMs: 0,
      failures: 0,
      paused: ann,
      nextTick: start + 35 * minute,
    });
    expect(status).not.toHaveProperty("running");
    await resumeJob(here.name, ann, here.deps);
    here.clock.set(start + 60 * minute);
    expect(await jobStatuses([here.job], here.deps)).toMatchObject([{ overdueTick: start + 10 * minute }]);
    expect(other).toEqual({ job: never.name, overdueMs: 0, failures: 0, nextTick: start + 35 * minute });
  });

  it("what the control item says is shown also where it can't be judged", async () => {
    const here = open();
    await here.deliver(0);
    await here.deliver(60);
    here.clock.set(start + 6 * minute);
    await pauseJob(here.name, ann, here.deps);
    expect(await jobStatuses([here.job], here.deps)).toMatchObject([
      {
        problem: expect.stringContaining("lies in the future"),
        lastTick: start + 60 * minute,
        lastSuccessAt: expect.any(Number),
        paused: ann,
      },
    ]);
  });

  it("runs are listed newest first, by outcome and before an instant, as many as are asked for", async () => {
    let fails = false;
    const here = open({ fails: () => fails });
    for (const minutes of [0, 5, 10, 15]) {
      fails = minutes === 5 || minutes === 10;
      await here.deliver(minutes);
    }
    const list = (filter: Parameters<typeof listRuns>[1]) => all(listRuns(here.name, filter, here.deps));
    expect((await list({})).map(({ outcome }) => outcome)).toEqual(["succeeded", "failed", "failed", "succeeded"]);
    expect(await list({ limit: 2 })).toHaveLength(2);
    const failed = await list({ outcome: ["failed", "timed_out"], limit: 1 });
    expect(failed.map(({ ticks }) => ticks?.through)).toEqual([start + 10 * minute]);
    expect(await list({ before: start + 10 * minute })).toHaveLength(2);
  });

  it("a run is found by its id or a beginning that only it has, on record or going", async () => {
    let going = "";
    const here = open({
      during: async () => {
        going = (await jobStatuses([here.job], here.deps))[0]?.running?.id ?? "";
        found.push(await findRun([here.name], going.slice(0, 13), here.deps));
      },
    });
    const found: unknown[] = [];
    const report = await here.deliver(0);
    expect(report.run).toBe(going);
    expect(found).toMatchObject([[{ job: here.name, holdsLease: true, going: { id: going } }]]);
    const other = open();
    await other.deliver(0);
    const names = [other.name, here.name];
    expect(await findRun(names, going, here.deps)).toMatchObject([{ record: { id: going, outcome: "succeeded" } }]);
    expect(await findRun(names, going.slice(0, 13), here.deps)).toHaveLength(1);
    expect(await findRun(names, "no such run", here.deps)).toEqual([]);
    expect(await findRun(names, "", here.deps)).toEqual([]);
    await here.deliver(5);
    const ids = (await all(listRuns(here.name, {}, here.deps))).map(({ id }) => id);
    const shared = ids[0]?.[0] === ids[1]?.[0] ? ids[0]?.[0] : undefined;
    if (shared !== undefined) expect(await findRun([here.name], shared, here.deps)).toHaveLength(2);
  });
});

describe("a tick that a backfill has done after all", () => {
  it("is explained as that, whatever the job is called by now", async () => {
    const { name, define, job, deps, deliver } = open({ catchUp: "latest" } as Partial<JobOptions>);
    await deliver(0);
    await deliver(15);
    const skipped = start + 5 * minute;
    const trigger = { kind: "manual" as const, backfill: [skipped] };
    const { run } = await runJob(job, trigger, { ...deps, log: silentLog });
    const said = `Run ${run} did it after all at ${iso(start + 15 * minute)}: a backfill.`;
    const other = await explainTick(job, skipped + 5 * minute, deps);
    expect([other.entry.state, other.sentences.join().includes("backfill")]).toEqual(["skipped", false]);
    expect((await explainTick(job, skipped, deps)).sentences.at(-1)).toBe(said);
    const moved = freshName();
    await moveJob(name, moved, ann, deps);
    expect((await explainTick(define(moved), skipped, deps)).sentences.at(-1)).toBe(said);
  });
});

describe("acts", () => {
  it("without a name or a reason are refused before anything is asked", async () => {
    const { name, job, deps } = open();
    const nobody = { by: " ", why: "" };
    const each: (() => Promise<unknown>)[] = [
      () => pauseJob(name, nobody, deps),
      () => resumeJob(name, nobody, deps),
      () => cancelRun(name, nobody, deps),
      () => rewindJob(name, { ...nobody, watermark: null }, deps),
      () => skipTick(job, start, nobody, deps),
      () => moveJob(name, "other", nobody, deps),
      () => approvePlan(name, { ...nobody, max: 1, until: start + 1 }, deps),
      () => releaseEffect(name, "key", "done", nobody, deps),
      () => dropParked(name, "key", nobody, deps),
      () => retryParked(job, "all", nobody, deps),
    ];
    for (const act of each) {
      await expect(act()).rejects.toMatchObject({
        code: "INVALID_OPTIONS",
        problems: ['by is " ", and must say who does it', 'why is "", and must say why'],
      });
    }
    expect(
      await fixture.store.read(name, { clock: deps.clock, random: () => 0, until: start + minute }),
    ).toBeUndefined();
  });

  it("refuse what no type would let through, before anything is asked or written", async () => {
    const { name, job, deps } = open();
    // biome-ignore lint/suspicious/noExplicitAny: as a caller in JavaScript
    const any = (value: unknown) => value as any;
    const until = start + minute;
    const each: [string, () => Promise<unknown>][] = [
      ["by is undefined", () => pauseJob(name, any(undefined), deps)],
      ["job is undefined", () => pauseJob(any(undefined), ann, deps)],
      ["job is NaN", () => resumeJob(any(Number.NaN), ann, deps)],
      ['job is ""', () => cancelRun("", ann, deps)],
      ['cancel is "no"', () => pauseJob(name, { ...ann, cancel: any("no") }, deps)],
      ["until is Infinity", () => pauseJob(name, { ...ann, until: Number.POSITIVE_INFINITY }, deps)],
      ["until is 9000000000000000", () => pauseJob(name, { ...ann, until: 9e15 }, deps)],
      ["until is NaN", () => approvePlan(name, { ...ann, max: 1, until: Number.NaN }, deps)],
      ["max is 10", () => approvePlan(name, { ...ann, max: any(10n), until }, deps)],
      ["the new name is undefined", () => moveJob(name, any(undefined), ann, deps)],
      ['the verdict is "Done"', () => releaseEffect(name, "key", any("Done"), ann, deps)],
      ["key is NaN", () => dropParked(name, any(Number.NaN), ann, deps)],
      ["keys is undefined", () => retryParked(job, any(undefined), ann, deps)],
      ["keys is []", () => retryParked(job, [], ann, deps)],
      ["tick is NaN", () => skipTick(job, Number.NaN, ann, deps)],
      ["through is 1", () => skipTick(job, start, { ...ann, through: any(1) }, deps)],
      ["before is Infinity", () => listRuns(name, { before: Number.POSITIVE_INFINITY }, deps).next()],
      ["from is -9000000000000000", async () => readLedger(job, { from: -9e15, to: start }, deps)],
    ];
    for (const [problem, act] of each) {
      await expect(act(), problem).rejects.toMatchObject({
        code: "INVALID_OPTIONS",
        message: expect.stringContaining(problem),
      });
    }
    expect(await fixture.store.read(name, { clock: deps.clock, random: () => 0, until })).toBeUndefined();
  });

  it("with impossible values say which, and what is allowed", async () => {
    const { name, deps } = open();
    await expect(pauseJob(name, { ...ann, until: start, fence: 1.5 }, deps)).rejects.toMatchObject({
      problems: [expect.stringContaining("fence is 1.5"), expect.stringContaining(`until is ${start}`)],
    });
    await expect(moveJob(name, "no such name", ann, deps)).rejects.toThrow("at most 64 letters");
    await expect(moveJob(name, name, ann, deps)).rejects.toThrow("must be another one");
    await expect(rewindJob(name, { ...ann, watermark: Number.NaN }, deps)).rejects.toThrow("watermark can't be kept");
    await expect(approvePlan(name, { ...ann, max: 0, until: start }, deps)).rejects.toMatchObject({
      problems: [expect.stringContaining("max is 0"), expect.stringContaining(`until is ${start}`)],
    });
  });

  it("are kept for good, and are listed newest first", async () => {
    const here = open();
    await here.deliver(0);
    await pauseJob(here.name, { ...ann, until: start + 60 * minute }, here.deps);
    here.clock.advance(1_000);
    await rewindJob(here.name, { ...ann, watermark: "w" }, here.deps);
    const acts = await all(listActs(here.name, {}, here.deps));
    expect(acts).toMatchObject([
      { kind: "rewind", ...ann, to: '"w"' },
      { kind: "pause", ...ann, until: start + 60 * minute },
    ]);
    expect(await all(listActs(here.name, { limit: 1 }, here.deps))).toEqual(acts.slice(0, 1));
  });
});

describe("skipping a tick", () => {
  it("settles it, and the ledger says by whom and why", async () => {
    let fails = false;
    const here = open({ fails: () => fails });
    await here.deliver(0);
    fails = true;
    await here.deliver(5);
    expect(await here.ledger()).toEqual(["+0 done", "+5 failed"]);
    const skipped = await skipTick(here.job, start + 5 * minute, ann, here.deps);
    expect(skipped).toEqual({ ticks: { from: start + 5 * minute, through: start + 5 * minute, count: 1 } });
    fails = false;
    expect(await here.deliver(5)).toMatchObject({ outcome: "duplicate" });
    await here.deliver(10);
    expect(await here.ledger()).toEqual(["+0 done", "+5 skipped", "+10 done"]);
    const { sentences } = await explainTick(here.job, start + 5 * minute, here.deps);
    expect(sentences.join("\n")).toMatch(
      /was skipped by ann \(a test\) at 2026-03-01T12:05.*failed at.*no connection/s,
    );
  });

  it("is refused while older ones are owed, names them, and skips them too when it is told to", async () => {
    const here = open();
    await here.deliver(0);
    here.clock.set(start + 21 * minute);
    const skip = (through?: boolean) =>
      skipTick(here.job, start + 15 * minute, { ...ann, ...(through ? { through } : {}) }, here.deps);
    await expect(skip()).rejects.toThrow(`2 older ticks are owed too, the first of them ${iso(start + 5 * minute)}`);
    expect((await skip(true)).ticks).toMatchObject({ count: 3 });
    await here.deliver(20);
    expect(await here.ledger()).toEqual(["+0 done", "+5 skipped", "+10 skipped", "+15 skipped", "+20 done"]);
  });

  it("is refused for what isn't owed: done, from before the job began, in the future, no tick at all", async () => {
    const here = open();
    await expect(skipTick(here.job, start, ann, here.deps)).rejects.toThrow("never run");
    await here.deliver(0);
    here.clock.set(start + 6 * minute);
    const skip = (minutes: number) => skipTick(here.job, start + minutes * minute, ann, here.deps);
    await expect(skip(0)).rejects.toThrow("settled already");
    await expect(skip(-5)).rejects.toThrow("settled already");
    await expect(skip(10)).rejects.toThrow(`such as ${iso(start + 5 * minute)}`);
    await expect(skip(4)).rejects.toThrow("must be one that the job's schedule has");
    expect(await all(listActs(here.name, {}, here.deps))).toEqual([]);
  });
});

it("every tick is accounted for where there was nothing to do, where nobody came, and where it was left out (case 30)", async () => {
  const { clock, deps, name } = open();
  const options = { name, schedule: cron("* * * * *"), timeout: "50s", exact: true } as const;
  const job = defineJob({ ...options, startWithin: "2m", tick: () => [] }, { clock });
  const missed = [40, 41, 42];
  for (let minutes = 0; minutes < 120; minutes += 1) {
    if (missed.includes(minutes)) continue;
    const tick = start + minutes * minute;
    clock.set(tick);
    await runJob(job, { kind: "schedule", tick }, { ...deps, log: silentLog });
  }
  clock.set(start + 140 * minute);
  const ledger = readLedger(job, { from: start, to: clock.now() }, deps);
  const entries = await all(ledger);
  // Two of the missed ticks could still be done by the run after them, and for one it was too late.
  const states = entries.slice(39, 44).map(({ state, reason }) => reason ?? state);
  expect(states).toEqual(["done", "startWithin", "covered", "covered", "done"]);
  expect(ledger.counts).toMatchObject({ all: 141, done: 117, covered: 2, skipped: 1, missed: 9, owed: 12 });
});

describe("a moved job", () => {
  it("goes on under its new name with its ledger whole, and its old name says where it is", async () => {
    const here = open();
    await here.deliver(0);
    await here.deliver(5);
    const to = freshName();
    const moved = here.define(to);
    await moveJob(here.name, to, ann, here.deps);
    await expect(here.deliver(10)).rejects.toMatchObject({ code: "JOB_MOVED", to });
    expect(await here.deliver(5, moved)).toMatchObject({ outcome: "duplicate" });
    expect(await here.deliver(10, moved)).toMatchObject({ outcome: "succeeded" });
    expect(await here.ledger(moved)).toEqual(["+0 done", "+5 done", "+10 done"]);
    expect(await all(listRuns(to, {}, here.deps))).toHaveLength(3);
    expect((await all(listActs(to, {}, here.deps))).map(({ kind }) => kind)).toEqual(["move", "move"]);
    expect(await jobStatuses([here.job], here.deps)).toMatchObject([{ movedTo: to }]);
    const { sentences, upcoming } = await explainTick(here.job, start + 10 * minute, here.deps);
    expect(upcoming).toMatchObject([{ kind: "nothing" }]);
    expect(sentences.at(-1)).toContain(`the job was moved to "${to}" by ann (a test)`);
  });
});

describe("why a tick", () => {
  const explain = async (here: ReturnType<typeof open>, minutes: number) => {
    const explained = await explainTick(here.job, start + minutes * minute, here.deps);
    return { ...explained, text: explained.sentences.join("\n") };
  };

  it("is done: by which run, under which fence, when", async () => {
    const here = open();
    const { run, fence } = await here.deliver(0);
    const { entry, text, evidence, upcoming } = await explain(here, 0);
    expect(entry).toEqual({ tick: start, state: "done", run });
    expect(text).toContain(`Tick ${iso(start)} was done by run ${run}.`);
    expect(text).toContain(
      `started by the schedule at ${iso(start)}, held the lease under fence ${fence}, and ended as succeeded`,
    );
    expect([evidence.runs.length, upcoming]).toEqual([1, []]);
  });

  it("was done late: the runs that tried before, with their errors, oldest first", async () => {
    let fails = false;
    const here = open({ fails: () => fails });
    await here.deliver(0);
    fails = true;
    await here.deliver(5);
    await here.deliver(10);
    fails = false;
    const { run } = await here.deliver(15);
    const { entry, text, evidence } = await explain(here, 5);
    expect(entry).toMatchObject({ state: "covered", run });
    expect(evidence.runs.map(({ outcome }) => outcome)).toEqual(["failed", "failed", "succeeded"]);
    expect(text.match(/ended as failed at .*: TypeError: no connection/g)).toHaveLength(2);
  });

  it("isn't done after a failure: what tries it next, and when", async () => {
    let fails = false;
    const here = open({ fails: () => fails });
    await here.deliver(0);
    fails = true;
    await here.deliver(5);
    const { entry, text, upcoming } = await explain(here, 5);
    expect(entry).toMatchObject({ state: "failed", outcome: "failed" });
    expect(upcoming.map(({ kind }) => kind)).toEqual(["retry", "delivery", "alarm", "heal"]);
    expect(upcoming.find(({ kind }) => kind === "delivery")).toMatchObject({ at: start + 10 * minute });
    expect(text).toContain(`The next run is due at ${iso(start + 10 * minute)}, and covers it.`);
  });

  it("by which the job became known is done by the next run, as any other", async () => {
    let fails = true;
    const here = open({ fails: () => fails });
    await here.deliver(0);
    const { entry, text } = await explain(here, 0);
    expect(entry.state).toBe("failed");
    expect(text).toContain(`The next run is due at ${iso(start + 5 * minute)}, and covers it.`);
    fails = false;
    await here.deliver(5);
    expect((await explain(here, 0)).entry.state).toBe("covered");
  });

  it("that is delivered from before the job was known isn't done by a later run", async () => {
    const here = open({ fails: () => true });
    await here.deps.store.create(here.name, start, budgetOn(here.clock));
    await here.deliver(0);
    const { entry, text, upcoming } = await explain(here, 0);
    expect(entry.state).toBe("failed");
    expect(upcoming.map(({ kind }) => kind)).toEqual(["retry", "nothing"]);
    expect(text).toContain("Start a run for it by hand.");
  });

  it("will be left out by the job's policy", async () => {
    let fails = false;
    const here = open({ catchUp: "none", fails: () => fails } as never);
    await here.deliver(0);
    fails = true;
    await here.deliver(5);
    const { text } = await explain(here, 5);
    expect(text).toContain("and will leave it out (catchUp).");
  });

  it("waits for a pause to end", async () => {
    const here = open();
    await here.deliver(0);
    await pauseJob(here.name, ann, here.deps);
    expect(await here.deliver(5)).toMatchObject({ outcome: "paused" });
    const { entry, text, upcoming, evidence } = await explain(here, 5);
    expect(entry).toMatchObject({ state: "paused", ...ann });
    expect(upcoming).toMatchObject([{ kind: "nothing" }]);
    expect(text).toContain("Nothing will start before somebody resumes the job, which ann paused");
    expect(evidence.acts).toMatchObject([{ kind: "pause" }]);
    await resumeJob(here.name, ann, here.deps);
    expect((await explain(here, 5)).upcoming.map(({ kind }) => kind)).toEqual(["delivery", "alarm", "heal"]);
  });

  it("is missed: nobody started it, and a watchdog would have", async () => {
    const here = open();
    await here.deliver(0);
    here.clock.set(start + 62 * minute);
    const { entry, text } = await explain(here, 5);
    expect(entry).toEqual({ tick: start + 5 * minute, state: "missed" });
    expect(text).toMatch(/no run has tried it.*The next run is due at .*and covers it.*would have started it by now/s);
  });

  it("is being done, and is queued behind: by whom, and how long they may take", async () => {
    const seen: Awaited<ReturnType<typeof explain>>[] = [];
    const here = open({
      ttl: "10m",
      during: async (tick) => {
        if (tick !== start) return;
        seen.push(await explain(here, 0));
        await here.deliver(5);
        seen.push(await explain(here, 5));
      },
    });
    // It starts late, and so has more time than there is to the next tick.
    here.clock.set(start + 3 * minute);
    await here.deliver(0);
    expect(seen.map(({ entry }) => entry.state)).toEqual(["running", "held"]);
    expect(seen[0]?.evidence.holder).toMatchObject({ tick: start });
    expect(seen[0]?.text).toContain(`has until ${iso(start + 7 * minute)} (its timeout)`);
    expect(seen[1]?.text).toContain("has been asked to do it too before it ends");
  });

  it("can't be said of what is no tick, or hasn't come", async () => {
    const here = open();
    await here.deliver(0);
    await expect(explain(here, 3)).rejects.toThrow("hasn't come yet");
    here.clock.set(start + 10 * minute);
    await expect(explain(here, 3)).rejects.toThrow(`such as ${iso(start)} or ${iso(start + 5 * minute)}`);
  });
});
