/** What went wrong for others, by the numbers of the list of cases: each as the watchdog sees it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { defineJob, type Job, systemClock } from "cronfence";
import { afterEach, describe, expect, it } from "vitest";
import { job as watchdogJob, jobs as watchedJobs } from "../../handlers/watchdog.ts";
import { loadJobModules } from "../../src/local/job-modules.ts";
import { budgetOn, controlTable, freshName, useEngine } from "../fixture.ts";
import { hour, minute, openScene } from "./scene.ts";

const fixture = useEngine();
const pids: number[] = [];
afterEach(() => {
  for (const pid of pids.splice(0)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It is gone already.
    }
  }
});

/** Runs the job in a process of its own; what it printed, until it said which run it is. */
const startProcess = async (name: string, how: "exit" | "hang") => {
  const script = fileURLToPath(new URL("exiting-job.ts", import.meta.url));
  const child = spawn(process.execPath, ["--import", import.meta.resolve("tsx"), script, name, how], {
    env: {
      ...process.env,
      AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
      AWS_ENDPOINT_URL_DYNAMODB: fixture.endpoint,
      AWS_REGION: "local",
      AWS_ACCESS_KEY_ID: "local",
      AWS_SECRET_ACCESS_KEY: "local",
      CRONFENCE_TABLE: controlTable,
      TSX_TSCONFIG_PATH: fileURLToPath(new URL("../../tsconfig.json", import.meta.url)),
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  pids.push(child.pid as number);
  const lines: string[] = [];
  let run = "";
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    run = /^run (\S+)$/.exec(line)?.[1] ?? run;
    if (run !== "" && how === "hang") break;
  }
  const end = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  return { run, lines, end };
};

/** The process's job, for the watchdog. */
const jobNamed = (name: string): Job => defineJob({ name, timeout: "5m", run: () => {} });

describe("case 26: metrics lost with the process", () => {
  it("that ends in the handler: the run is known from the control item, and the watchdog says that it died", async () => {
    const name = freshName();
    const { run, lines } = await startProcess(name, "exit");
    expect(lines.filter((line) => line.includes("_aws"))).toEqual([]);
    const left = await fixture.store.read(name, budgetOn(systemClock));
    expect(left?.run).toMatchObject({ id: run, seq: 1, items: 7 });
    const scene = openScene(fixture, (left?.leaseUntil ?? 0) + 10_000);
    expect((await scene.watch([jobNamed(name)])).report).toMatchObject({ suspects: 0 });
    scene.clock.advance(1);
    const { report } = await scene.watch([jobNamed(name)]);
    expect(report?.findings).toMatchObject([{ kind: "suspect", suspect: { kind: "dead", run } }]);
    expect(scene.log.lines.find(({ watched }) => watched === name)).toMatchObject({
      level: "warn",
      message: "a run seems to have died or to hang",
      suspect: { run },
    });
    // Nobody but a run under a higher fence says that it crashed.
    expect((await fixture.store.runs(name, { limit: 5 }, budgetOn(systemClock))).runs).toEqual([]);
  });

  it("that is killed while the handler hangs: the same", async () => {
    const name = freshName();
    const { run, end } = await startProcess(name, "hang");
    await end();
    const left = await fixture.store.read(name, budgetOn(systemClock));
    const scene = openScene(fixture, (left?.leaseUntil ?? 0) + 10_001);
    const { report } = await scene.watch([jobNamed(name)]);
    expect(report?.findings).toMatchObject([{ kind: "suspect", suspect: { kind: "dead", run } }]);
  });
});

describe("case 27: new starts hide a hung run", () => {
  it("three starts, one finish: each run that never finished is reported by its id as long as it isn't on record", async () => {
    const scene = openScene(fixture);
    const job = scene.job();
    const begin = (id: string, startedAt: number) =>
      fixture.store.acquire(
        {
          job: job.name,
          owner: `owner of ${id}`,
          run: { id, startedAt, trigger: "schedule" },
          now: startedAt,
          ttlMs: 30_000,
          skewMs: 10_000,
        },
        budgetOn(scene.clock),
      );
    const suspects = async () =>
      (await scene.watch([job])).report?.findings.flatMap((finding) =>
        finding.kind === "suspect" ? [[finding.suspect.kind, finding.suspect.run]] : [],
      );
    await begin("first", scene.clock.now());
    expect(await suspects()).toEqual([]);
    scene.clock.advance(2 * minute);
    expect(await suspects()).toEqual([["dead", "first"]]);
    await begin("second", scene.clock.now());
    expect(await suspects()).toEqual([["replaced", "first"]]);
    scene.clock.advance(2 * minute);
    await begin("third", scene.clock.now());
    expect(await suspects()).toEqual([
      ["replaced", "first"],
      ["replaced", "second"],
    ]);
    scene.clock.advance(2 * minute);
    // The one that finishes records the others, and is the only one that may.
    expect(await scene.run(job)).toMatchObject({ outcome: "succeeded" });
    expect(await suspects()).toEqual([]);
    const { runs } = await fixture.store.runs(job.name, { limit: 9 }, budgetOn(scene.clock));
    expect(runs.map(({ id, outcome }) => [id, outcome])).toEqual(
      expect.arrayContaining([
        ["first", "crashed"],
        ["second", "crashed"],
        ["third", "crashed"],
      ]),
    );
  });

  it("a run that holds its lease longer than its timeout allows is reported while it does", async () => {
    const scene = openScene(fixture);
    const job = scene.job();
    const startedAt = scene.clock.now();
    const leaseOf = { job: job.name, owner: "o", now: startedAt, ttlMs: hour, skewMs: 10_000 };
    await fixture.store.acquire(
      { ...leaseOf, run: { id: "hanging", startedAt, trigger: "schedule" } },
      budgetOn(scene.clock),
    );
    scene.clock.advance(80_000);
    expect((await scene.watch([job])).report).toMatchObject({ suspects: 0 });
    scene.clock.advance(1);
    expect((await scene.watch([job])).report?.findings).toMatchObject([
      { kind: "suspect", suspect: { kind: "hung", run: "hanging" } },
    ]);
  });
});

describe("case 10: a killed run whose lock is tried for once a minute, without waiting", () => {
  it("is suspected until the first try after ttl and skew wins and records it", async () => {
    const scene = openScene(fixture);
    const job = scene.job({ ttl: "60s" });
    const startedAt = scene.clock.now();
    await fixture.store.acquire(
      {
        job: job.name,
        owner: "killed",
        run: { id: "killed", startedAt, trigger: "schedule" },
        now: startedAt,
        ttlMs: 60_000,
        skewMs: 10_000,
      },
      budgetOn(scene.clock),
    );
    const outcomes: unknown[] = [];
    for (let tries = 0; tries < 3; tries += 1) {
      const suspects = (await scene.watch([job])).report?.suspects;
      outcomes.push([suspects, (await scene.run(job)).outcome]);
      scene.clock.advance(minute);
    }
    expect(outcomes).toEqual([
      [0, "held"],
      [0, "held"],
      [1, "succeeded"],
    ]);
    expect((await scene.watch([job])).report?.suspects).toBe(0);
    const { runs } = await fixture.store.runs(job.name, { limit: 9 }, budgetOn(scene.clock));
    expect(runs.map(({ id, outcome }) => [id, outcome])).toContainEqual(["killed", "crashed"]);
  });
});

describe("case 28: the platform's cron silently stopped", () => {
  it("is told by the watchdog, which has a trigger of its own, while nothing of the job says anything", async () => {
    const scene = openScene(fixture);
    const job = scene.job();
    scene.clock.set("2026-03-01T01:00:05Z");
    await scene.run(job, Date.parse("2026-03-01T01:00:00Z"));
    const said = scene.log.lines.length;
    const overdue: unknown[] = [];
    for (let looks = 0; looks < 16; looks += 1) {
      scene.clock.advance(5 * minute);
      await scene.watch([job]);
      overdue.push((scene.metrics.of(job.name)?.Overdue as number) > 0);
    }
    // An hour for the tick, and its jitter, timeout and slack: the fifteenth look is the first one after that.
    expect(overdue.indexOf(true)).toBe(14);
    expect(scene.log.lines.slice(said).filter(({ job: of }) => of === job.name)).toEqual([]);
  });
});

describe("The handler of this repository", () => {
  it("looks at every job that has one", async () => {
    const modules = await loadJobModules(fileURLToPath(new URL("../../handlers", import.meta.url)));
    const names = modules.map(({ job }) => job.name);
    expect([watchdogJob.name, ...watchedJobs.map(({ name }) => name)].sort()).toEqual(names.sort());
  });
});
