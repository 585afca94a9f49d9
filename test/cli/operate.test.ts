/** What a person on call asks and does, on a job with a history: processes in a project's folder, on a control table. */
import { userInfo } from "node:os";
import { cron, defineJob, type Job, runJob } from "cronfence";
import { dumpTable, settableClock } from "cronfence/testing";
import { beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { budgetOn, controlTable, freshName, silentLog, useEngine } from "../fixture.ts";
import { cronfence, type Ended, projectOf } from "./command.ts";
import { environment, hourlySource, hourMs, isoAt, type Operated, operated } from "./operated.ts";

const engine = useEngine("results");

let job: Operated;
let cwd: string;
beforeAll(async () => {
  job = await operated(engine);
  cwd = await projectOf({ "handlers/job.ts": hourlySource(job.name) });
});
const run = (...args: readonly string[]): Promise<Ended> => cronfence(cwd, args, environment(engine.endpoint));
const state = (name = job.name) => engine.store.read(name, budgetOn(systemClock));
const acts = async (name: string) =>
  (await dumpTable(engine.client, controlTable)).filter(
    ({ pk, sk }) => pk === `job#${name}` && String(sk).startsWith("act#"),
  );
const expectSentence = ({ code, stdout, stderr }: Ended, says: RegExp, status = 1) => {
  expect(stderr).toMatch(says);
  expect(stderr).not.toMatch(/\n\s+at |\[object|undefined/);
  expect(stdout).toBe("");
  expect(code).toBe(status);
};
const fits = (text: string) => Math.max(...text.split("\n").map((line) => line.length)) <= 100;
/** A run that holds the lease, and won't end. */
const holding = async (name: string, id = "their-run") => {
  const now = Date.now();
  const granted = await engine.store.acquire(
    { job: name, owner: id, run: { id, startedAt: now, trigger: "manual" }, now, ttlMs: 60_000, skewMs: 0 },
    budgetOn(systemClock),
  );
  expect(granted.kind).toBe("acquired");
};

describe("cronfence status", () => {
  it("shows what somebody must look at, and ends with status 1 for it", async () => {
    const { code, stdout, stderr } = await run("status");
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^job +last success \(UTC\) +next tick \(UTC\) +now$/m);
    expect(stdout).toMatch(new RegExp(`^${job.name} +\\w{3} \\d{4}-\\d\\d-\\d\\d \\d\\d:00 .* overdue for \\dh`, "m"));
    expect(fits(stdout)).toBe(true);
    expect(code).toBe(1);
  });

  it("is well with a job that has never run, and names the nearest of one that isn't there", async () => {
    const other = await projectOf({ "handlers/job.ts": hourlySource("brand-new") });
    const fresh = await cronfence(other, ["status"], environment(engine.endpoint));
    expect(fresh.stdout).toMatch(/brand-new +never .* has never run/);
    expect(fresh.code).toBe(0);
    expectSentence(await run("status", `${job.name}x`), new RegExp(`did you mean "${job.name}"`));
  });
});

describe("cronfence runs", () => {
  it("lists runs, newest first, and pages through all of them", async () => {
    const { code, stdout, stderr } = await run("runs", job.name);
    expect([code, stderr]).toEqual([0, ""]);
    const rows = stdout.trim().split("\n");
    expect(rows[0]).toMatch(/^started \(UTC\) +run +outcome +took +ticks +items +version +error$/);
    expect(rows.slice(1).map((row) => /[0-9a-f]{8} +(\w+)/.exec(row)?.[1])).toEqual([
      "succeeded",
      "failed",
      "succeeded",
    ]);
    expect(stdout).toContain("the supplier is closed");
    expect(fits(stdout)).toBe(true);
  });

  it("lists those that ended so, or that there are none", async () => {
    const failed = await run("runs", job.name, "--outcome", "failed", "--json");
    expect(JSON.parse(failed.stdout).runs.map(({ id }: { id: string }) => id)).toEqual([job.runs[1]]);
    const crashed = await run("runs", job.name, "--outcome", "crashed");
    expect(crashed).toEqual({ code: 0, stdout: `no run of ${job.name} is on record as crashed\n`, stderr: "" });
    expectSentence(await run("runs", job.name, "--outcome", "broken"), /Allowed choices are succeeded, capped/, 2);
    expectSentence(await run("runs", `${job.name}x`), new RegExp(`isn't known .*did you mean "${job.name}"`));
  });
});

describe("cronfence show", () => {
  it("shows a run whole by the beginning of its id", async () => {
    const { code, stdout, stderr } = await run("show", job.runs[1]!.slice(0, 8));
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain(`run            ${job.runs[1]}\n`);
    expect(stdout).toContain("error          Error: the supplier is closed\n");
    expect(stdout).toContain(`ticks          ${isoAt(job.first + hourMs)}\n`);
    expect(stdout).toMatch(/^version {8}v1$/m);
  });

  it("shows where a run stands that goes", async () => {
    const other = await operated(engine);
    await holding(other.name, "a-run-that-goes");
    const { stdout } = await run("show", "a-run", "--job", other.name);
    expect(stdout).toMatch(/outcome +none yet: it holds the lease/);
  });

  it("says that there is no such run", async () => {
    expectSentence(await run("show", "ffff"), /no run of \S+ has an id that begins with ffff/);
  });
});

describe("cronfence ledger", () => {
  const span = () => ["--from", isoAt(job.first), "--to", isoAt(job.first + 4 * hourMs)];

  it("accounts for every tick, neighbours of one cause together, and ends with status 1 where some are missed", async () => {
    const { code, stdout, stderr } = await run("ledger", job.name, ...span());
    expect(stderr).toBe("");
    const [headings, ...rows] = stdout.trim().split("\n");
    expect(headings).toMatch(/^tick \(UTC\) +last +ticks +state +run$/);
    expect(rows.map((row) => /(done|covered|missed)/.exec(row)?.[1]).filter(Boolean)).toEqual([
      "done",
      "covered",
      "done",
      "missed",
      "done",
    ]);
    expect(rows.at(-1)).toBe(`5 ticks of ${job.name}: 2 done, 1 covered, 2 missed`);
    expect(fits(stdout)).toBe(true);
    expect(code).toBe(1);
  });

  it("shows only the states that are asked for, and counts all", async () => {
    const { stdout } = await run("ledger", job.name, ...span(), "--state", "covered", "--json");
    const { ticks, counts } = JSON.parse(stdout);
    expect(ticks).toEqual([{ tick: isoAt(job.first + hourMs), state: "covered", run: job.runs[2] }]);
    expect(counts).toMatchObject({ all: 5, done: 2, covered: 1, missed: 2, failed: 0 });
  });
});

describe("120 ticks with nothing to do, of which 3 were missed,", () => {
  it("are all in the ledger, each with its reason", async () => {
    const name = freshName();
    const minutes = 60_000;
    const first = Math.floor(Date.now() / (10 * minutes)) * 10 * minutes - (119 + 6) * 10 * minutes;
    const clock = settableClock(first - minutes);
    const schedule = cron("*/10 * * * *");
    const idle = defineJob({ name, schedule, timeout: "1m", alert: { missedAfter: "5m" }, tick: () => [] }) as Job;
    await engine.store.create(name, clock.now(), budgetOn(clock));
    const ticks = Array.from({ length: 120 }, (_, index) => first + index * 10 * minutes);
    for (const tick of ticks.slice(0, -3)) {
      clock.set(tick + 1_000);
      await runJob(idle, { kind: "schedule", tick }, { store: engine.store, clock, log: silentLog });
    }
    const own = await projectOf({
      "handlers/job.ts": hourlySource(name).replace("0 * * * *", "*/10 * * * *"),
    });
    const args = ["ledger", name, "--from", isoAt(first), "--to", isoAt(ticks.at(-1) as number), "--json"];
    const { code, stdout } = await cronfence(own, args, environment(engine.endpoint));
    const { ticks: entries, counts } = JSON.parse(stdout) as {
      ticks: { tick: string; state: string }[];
      counts: object;
    };
    expect(entries.map(({ tick }) => tick)).toEqual(ticks.map(isoAt));
    expect(entries.map(({ state: is }) => is)).toEqual([...Array(117).fill("done"), ...Array(3).fill("missed")]);
    expect(counts).toMatchObject({ all: 120, done: 117, missed: 3 });
    expect(code).toBe(1);
  });
});

describe("cronfence why", () => {
  it("explains a tick in sentences", async () => {
    const { code, stdout, stderr } = await run("why", job.name, isoAt(job.first + hourMs));
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout.replace(/\s+/g, " ")).toMatch(/^covered - Tick .* was done by run .*the supplier is closed/);
    expect(fits(stdout)).toBe(true);
  });

  it("says which instants are ticks", async () => {
    expectSentence(
      await run("why", job.name, isoAt(job.first + 60_000)),
      new RegExp(`must be one that the job's schedule has, such as ${isoAt(job.first)}`),
    );
  });
});

describe("An act", () => {
  it("isn't done unless it is meant: it says what it would do, and ends with status 2", async () => {
    for (const args of [
      ["pause", job.name],
      ["cancel", job.name],
      ["rewind", job.name, "--to", "7"],
      ["skip", job.name, isoAt(job.first + 3 * hourMs)],
      ["move", job.name, `${job.name}-2`],
    ]) {
      const before = await state();
      expectSentence(
        await run(...args, "--why", "test"),
        new RegExp(`${job.name}.*; say that this is meant with --yes`),
        2,
      );
      expect(await state()).toEqual(before);
    }
    expect(await acts(job.name)).toEqual([]);
  });

  it.each([["pause"], ["resume"], ["cancel"]])("wants a reason: %s", async (act) => {
    expectSentence(await run(act, job.name, "--yes"), /--why/, 2);
  });

  it("is for a job that there is: pause makes none by a wrong name", async () => {
    const ended = await run("pause", `${job.name}x`, "--why", "test", "--yes");
    expectSentence(ended, new RegExp(`did you mean "${job.name}"`));
    expect(await state(`${job.name}x`)).toBeUndefined();
  });
});

describe("cronfence pause and resume", () => {
  it("keep runs from starting, until then, and record who and why", async () => {
    const { name } = await operated(engine);
    const paused = await run("pause", name, "--until", "2h", "--why", "stocktaking", "--by", "ann", "--yes");
    expect(paused).toMatchObject({ code: 0, stderr: "" });
    expect(paused.stdout).toMatch(new RegExp(`^${name} is paused until \\d{4}-.*Z\n$`));
    const pause = (await state(name))?.paused;
    expect(pause).toMatchObject({ by: "ann", why: "stocktaking" });
    expect(Math.abs((pause?.until ?? 0) - Date.now() - 2 * hourMs)).toBeLessThan(60_000);
    const resumed = await run("resume", name, "--why", "counted", "--yes");
    expect(resumed).toMatchObject({ code: 0, stdout: expect.stringContaining(`runs of ${name} may start again`) });
    expect((await state(name))?.paused).toBeUndefined();
    expect(await acts(name)).toMatchObject([
      { kind: "pause", by: "ann", why: "stocktaking" },
      { kind: "resume", by: userInfo().username, why: "counted" },
    ]);
    expectSentence(
      await run("pause", name, "--until", "2020-01-01", "--why", "x", "--yes"),
      /It must be an instant to come, or a duration/,
      2,
    );
  });

  it("fence out the run that goes, where that is said", async () => {
    const { name } = await operated(engine);
    await holding(name);
    expectSentence(await run("pause", name, "--why", "x"), /run their-run goes on to its end; say/, 2);
    const { stdout } = await run("pause", name, "--cancel", "--why", "x", "--yes");
    expect(stdout).toBe(`${name} is paused until somebody resumes it; run their-run was cancelled\n`);
    expect((await state(name))?.owner).toBeUndefined();
  });
});

describe("cronfence cancel", () => {
  it("fences out the run that holds the lease, and changes nothing where none does", async () => {
    const { name } = await operated(engine);
    const none = await run("cancel", name, "--why", "x", "--yes");
    expect(none).toEqual({ code: 0, stdout: `no run of ${name} holds the lease; nothing was changed\n`, stderr: "" });
    await holding(name);
    const fence = (await state(name))?.fence as number;
    const ended = await run("cancel", name, "--why", "wrong shop", "--yes", "--json");
    expect(JSON.parse(ended.stdout)).toMatchObject({ job: name, cancelled: "their-run", why: "wrong shop" });
    expect((await state(name))?.fence).toBe(fence + 1);
    expect(await acts(name)).toMatchObject([{ kind: "cancel", run: "their-run" }]);
  });
});

describe("cronfence rewind", () => {
  it("sets the watermark while nobody holds the lease", async () => {
    const { name } = await operated(engine);
    const ended = await run("rewind", name, "--to", '{"id":7}', "--why", "wrong prices", "--yes");
    expect(ended.stdout).toMatch(new RegExp(`^the watermark of ${name} is set to {"id":7}; to do the work now: npx`));
    expect((await state(name))?.watermark).toEqual({ id: 7 });
    await holding(name);
    expectSentence(await run("rewind", name, "--to", "null", "--why", "x", "--yes"), /their-run/);
    expect((await state(name))?.watermark).toEqual({ id: 7 });
    expectSentence(
      await run("rewind", name, "--to", "abc", "--why", "x"),
      /It must be JSON; a text is in quotes: '"abc"'/,
      2,
    );
  });
});

describe("cronfence skip", () => {
  it("settles ticks without doing them, the older ones only where that is said", async () => {
    const { name, first } = await operated(engine);
    const own = await projectOf({ "handlers/job.ts": hourlySource(name) });
    const skip = (...args: readonly string[]) =>
      cronfence(own, ["skip", name, ...args, "--why", "closed", "--yes"], environment(engine.endpoint));
    const fourth = isoAt(first + 4 * hourMs);
    expectSentence(await skip(fourth), /1 older tick is owed too/);
    const ended = await skip(fourth, "--through");
    expect(ended.stdout).toBe(
      `2 ticks, from ${isoAt(first + 3 * hourMs)} through ${fourth}, of ${name} are settled without being done\n`,
    );
    expect((await state(name))?.tick).toBe(first + 4 * hourMs);
    expectSentence(await skip(fourth), /is settled already/);
    expectSentence(await skip("yesterday"), /It must be a date/, 2);
  });
});

describe("cronfence move", () => {
  it("keeps watermark and fence under the new name, where the older runs are still shown", async () => {
    const { name, runs } = await operated(engine);
    const before = await state(name);
    const to = `${name}-new`;
    const ended = await run("move", name, to, "--why", "renamed", "--yes");
    expect(ended.stdout).toBe(`${name} is called ${to} now; deploy its definition under that name\n`);
    expect((await state(to))?.tick).toBe(before?.tick);
    const listed = await run("runs", to, "--json");
    expect(JSON.parse(listed.stdout).runs.map(({ id }: { id: string }) => id)).toEqual(runs.toReversed());
    expectSentence(await run("run", name, "--function", "none"), new RegExp(`the job was moved to "${to}"`));
    expectSentence(await run("move", to, "not a name", "--why", "x", "--yes"), /new name is "not a name"/);
  });
});

describe("cronfence backfill", () => {
  const rows = async (name: string) =>
    (await dumpTable(engine.client, "results")).map(({ id }) => String(id)).filter((id) => id.startsWith(`${name}/`));

  it("does ticks that are settled without having been done, each once, and says what it leaves alone", async () => {
    const { name, first } = await operated(engine);
    const own = await projectOf({ "handlers/job.ts": hourlySource(name) });
    const span = ["--from", isoAt(first - 3 * hourMs), "--to", isoAt(first + 4 * hourMs)];
    const backfill = (...args: readonly string[]) =>
      cronfence(own, ["backfill", name, ...span, "--here", "--why", "new", ...args], environment(engine.endpoint));
    const before = await rows(name);

    const asked = await backfill();
    expect(asked.code).toBe(2);
    expect(asked.stderr).toMatch(/3 ticks of \S+, from .* are done after all, in this process; say that this is meant/);
    expect(asked.stderr).toContain("3 ticks of that time were done by runs");
    expect(asked.stderr).toContain(`2 ticks are still owed; to do them: npx cronfence run ${name} --tick `);
    expect(await rows(name)).toEqual(before);

    const ended = await backfill("--yes");
    expect(ended).toMatchObject({ code: 0, stdout: `3 ticks of ${name} were done after all, in 1 run\n` });
    expect((await rows(name)).length).toBe(before.length + 3);
    expect((await state(name))?.tick).toBe(first + 2 * hourMs);

    const again = await backfill("--yes", "--json");
    expect(JSON.parse(again.stdout)).toMatchObject({ ticks: [], done: 0, runs: [], leftOut: { done: 3, already: 3 } });
    expect(again.code).toBe(0);
  });

  it("is for jobs with a tick function", async () => {
    const own = await projectOf({
      "handlers/job.ts": hourlySource("by-watermark").replace(/ {2}tick: .*\n/, "  run: () => {},\n"),
    });
    const args = ["backfill", "by-watermark", "--from", "2026-01-01", "--to", "2026-01-02", "--why", "x", "--yes"];
    expectSentence(
      await cronfence(own, args, environment(engine.endpoint)),
      /it has no tick function, and works by its watermark: rewind that, and run it/,
    );
  });
});
