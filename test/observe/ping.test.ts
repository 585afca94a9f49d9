/** Pings to an outside dead man's switch: what is sent when, and that nothing of it touches the run. */
import { defineJob, type Job, type JobOptions, type Run, type RunDeps, runJob } from "cronfence";
import { type SettableClock, settableClock } from "cronfence/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { budgetOn, freshName, useEngine } from "../fixture.ts";
import { recordedLog } from "../recorded-log.ts";
import { type PingServer, startPingServer } from "./ping-server.ts";

const fixture = useEngine("rows");
let server: PingServer;
beforeAll(async () => {
  server = await startPingServer();
});
beforeEach(() => {
  server.pings.length = 0;
  server.answer();
});
afterAll(() => server.stop());

const urls = () => ({
  start: `${server.url}/secret-id/start`,
  success: `${server.url}/secret-id`,
  fail: `${server.url}/secret-id/fail`,
});
const tick = Date.parse("2026-03-01T06:00:00Z");

const define = (more: Partial<JobOptions> & { run?: (run: Run) => unknown } = {}): Job =>
  defineJob({ name: freshName(), timeout: "5m", ping: urls(), run: () => {}, ...more });

const scene = (start: number = tick) => {
  const clock = settableClock(start);
  const log = recordedLog();
  const run = (job: Job, more: Partial<RunDeps> = {}, trigger: object = {}) =>
    runJob(job, { kind: "schedule", tick, ...trigger }, { store: fixture.store, clock, log: log.log, ...more });
  return { clock, log, run };
};

const complaints = ({ lines }: ReturnType<typeof recordedLog>) =>
  lines.filter(({ observer }) => observer === "ping").map(({ level, error }) => [level, error.message]);

describe("A run pings", () => {
  it("at its start and at its success, with its id", async () => {
    const { run } = scene();
    const report = await run(define());
    expect(server.pings).toEqual([`/secret-id/start?rid=${report.run}`, `/secret-id?rid=${report.run}`]);
  });

  it("at its failure", async () => {
    const { run } = scene();
    const report = await run(
      define({
        run: () => {
          throw new Error("broken");
        },
      }),
    );
    expect(report.outcome).toBe("failed");
    expect(server.pings).toEqual([`/secret-id/start?rid=${report.run}`, `/secret-id/fail?rid=${report.run}`]);
  });

  it("only where it was given a URL for it", async () => {
    const { run } = scene();
    const { success } = urls();
    await run(define({ ping: { success } }));
    expect(server.pings).toHaveLength(1);
  });

  it("with its id, job and tick where the URL has room for them, as Cronitor and Sentry want them", async () => {
    const { run } = scene();
    const start = `${server.url}/p/key/{job}?state=run&series={run}`;
    const success = `${server.url}/cron/{job}/?check_in_id={run}&status=ok&tick={tick}`;
    const job = define({ ping: { start, success } });
    const { run: id } = await run(job);
    expect(server.pings).toEqual([
      `/p/key/${job.name}?state=run&series=${id}`,
      `/cron/${job.name}/?check_in_id=${id}&status=ok&tick=2026-03-01T06%3A00%3A00.000Z`,
    ]);
  });

  it("at its start while the work goes on, and at its end only after that", async () => {
    const { run } = scene();
    const order: string[] = [];
    server.answer("hang", 200, 200);
    const { clock } = scene();
    const job = define({
      run: async () => {
        await server.came(1);
        order.push("worked");
        clock.advance(2_000);
        await server.came(2);
        order.push("tried again");
      },
    });
    const { run: id } = await run(job, { clock });
    expect(order).toEqual(["worked", "tried again"]);
    expect(server.pings).toEqual([`/secret-id/start?rid=${id}`, `/secret-id/start?rid=${id}`, `/secret-id?rid=${id}`]);
  });
});

describe("No ping comes", () => {
  it("from an attempt that never becomes a run", async () => {
    const { run } = scene();
    const job = define();
    await run(job);
    server.pings.length = 0;
    expect((await run(job)).outcome).toBe("duplicate");
    expect(server.pings).toEqual([]);
  });

  it("from a dry run, whether the job is configured so or a person asks for one", async () => {
    const { run } = scene();
    expect((await run(define({ dryRun: true }))).outcome).toBe("dry_run");
    expect((await run(define(), {}, { dryRun: true })).outcome).toBe("dry_run");
    expect(server.pings).toEqual([]);
  });

  it("at the end of a run that was replaced, whose successor's success mustn't be taken back", async () => {
    const { clock, run } = scene();
    const job = define({
      run: async (current) => {
        const successor = { id: "successor", startedAt: tick, trigger: "schedule" } as const;
        const lease = { owner: "other", now: tick, ttlMs: 30_000, skewMs: 10_000, takeover: { fence: current.fence } };
        await fixture.store.acquire({ job: job.name, run: successor, ...lease }, budgetOn(clock));
        await current.commit([]);
      },
    });
    expect((await run(job)).outcome).toBe("lease_lost");
    expect(server.pings.map((ping) => ping.split("?")[0])).toEqual(["/secret-id/start"]);
  });

  it("at the end of a run that a person cancelled", async () => {
    const { clock, run } = scene();
    const job = define({
      run: () => fixture.store.cancel(job.name, { by: "ann", why: "test" }, tick, budgetOn(clock)),
    });
    expect((await run(job)).outcome).toBe("cancelled");
    expect(server.pings.map((ping) => ping.split("?")[0])).toEqual(["/secret-id/start"]);
  });
});

describe("A run whose end couldn't be recorded", () => {
  it("pings a failure, since nobody knows better", async () => {
    const { run } = scene();
    const store = fixture.faulty();
    fixture.proxy.when("TransactWriteItems", { error: "AccessDeniedException" });
    await expect(run(define(), { store })).rejects.toThrow();
    fixture.proxy.reset();
    expect(server.pings.map((ping) => ping.split("?")[0])).toEqual(["/secret-id/start", "/secret-id/fail"]);
  });
});

describe("A ping that fails", () => {
  it.each([
    [500, 503],
    ["reset", "reset"],
    [429, 500],
  ] as const)(
    "with %s and then %s is tried once more and then given up, and the run is what it was",
    async (...answers) => {
      const { run, log } = scene();
      server.answer(...answers);
      const report = await run(define({ ping: { success: `${server.url}/secret-id` } }));
      expect(report.outcome).toBe("succeeded");
      expect(server.pings).toHaveLength(2);
      expect(complaints(log)).toEqual([
        ["warn", expect.stringContaining(`the success ping to ${server.host} failed: `)],
      ]);
      expect(log.text()).not.toContain("secret-id");
    },
  );

  it("and succeeds at the second try is nothing to speak of", async () => {
    const { run, log } = scene();
    server.answer(500, 200);
    await run(define({ ping: { success: `${server.url}/secret-id` } }));
    expect(server.pings).toHaveLength(2);
    expect(complaints(log)).toEqual([]);
  });

  it("because its URL is wrong isn't tried again", async () => {
    const { run, log } = scene();
    server.answer(404);
    await run(define({ ping: { success: `${server.url}/secret-id` } }));
    expect(server.pings).toHaveLength(1);
    expect(complaints(log)).toEqual([["warn", expect.stringContaining("status 404")]]);
  });

  it("because nobody answers is given up after two short tries", async () => {
    const { run, log, clock } = scene();
    server.answer("hang", "hang");
    const running = run(define({ ping: { success: `${server.url}/secret-id` } }));
    await server.came(1);
    clock.advance(2_000);
    await server.came(2);
    await advanceUntil(clock, running, 500);
    expect((await running).outcome).toBe("succeeded");
    expect(complaints(log)).toEqual([["warn", expect.stringContaining("no answer within 2000 ms")]]);
  });

  it("because nothing listens there says so by a code, without its URL", async () => {
    const { run, log } = scene();
    const gone = await startPingServer();
    await gone.stop();
    await run(define({ ping: { fail: `${gone.url}/secret-id`, success: `${gone.url}/secret-id` } }));
    expect(complaints(log)).toEqual([["warn", `the success ping to ${gone.host} failed: ECONNREFUSED`]]);
  });

  it("never holds up an invocation that is almost over", async () => {
    const { run, log, clock } = scene();
    server.answer("hang", "hang");
    const endsAt = clock.now() + 60_000;
    let left = 60_000;
    const job = define({
      ping: { success: `${server.url}/secret-id` },
      run: () => {
        left = 600;
      },
    });
    const running = run(job, { remainingMs: () => Math.min(left, endsAt - clock.now()) });
    await server.came(1);
    clock.advance(500);
    expect((await running).outcome).toBe("succeeded");
    expect(log.lines.find(({ message }) => message === "observers of runs weren't done in time")).toMatchObject({
      level: "warn",
      limitMs: 500,
    });
  });
});

/** Lets time go on in steps until `done` settles. */
const advanceUntil = async (clock: SettableClock, done: Promise<unknown>, stepMs: number): Promise<void> => {
  let settled = false;
  done.finally(() => {
    settled = true;
  });
  while (!settled) await clock.advanceAsync(stepMs);
};

describe("A URL", () => {
  it("that can't be asked for is refused when the job is defined, as is a kind of ping that doesn't exist", () => {
    expect(() => define({ ping: { start: "hc-ping.com/x" } })).toThrow(
      'ping.start is "hc-ping.com/x", and must be an object with start, success and fail, each an http or https URL',
    );
    expect(() => define({ ping: { fail: "ftp://host/x" } })).toThrow("ping.fail");
    expect(() => define({ ping: { failure: "https://host/x" } as never })).toThrow(
      "ping.failure is not an option; known are start, success, fail",
    );
  });
});
