/** `cronfence run` as people use it: a process, a stub of Lambda that runs our handler, and a control table. */
import { cron, defineJob, type Job, type Run } from "cronfence";
import { lambdaHandler } from "cronfence/lambda";
import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { budgetOn, controlTable, freshName, silentLog, useEngine } from "../fixture.ts";
import { gate } from "../gate.ts";
import { cronfence, type Ended, jobSource, projectOf, started } from "./command.ts";
import { hourlySource, hourMs, operated } from "./operated.ts";
import { useStubLambda } from "./stub-lambda.ts";

const engine = useEngine("results");
const lambda = useStubLambda();
afterEach(() => engine.proxy.reset());

/** A job whose function is `shop-dev-NAME`, in whatever version; it is known in the table. */
const deployed = async (work: (run: Run) => unknown = () => {}, version = "v1") => {
  const name = freshName();
  await engine.store.create(name, Date.now() - 60_000, budgetOn(systemClock));
  const deploy = (as: string) =>
    lambda.functions.set(`shop-dev-${name}`, (event, context) =>
      lambdaHandler(defineJob({ name, timeout: "1m", run: async (run) => void (await work(run)) }) as Job, {
        store: engine.store,
        log: silentLog,
        version: as,
      })(event, context),
    );
  deploy(version);
  const records = async () => (await engine.store.runs(name, { limit: 20 }, budgetOn(systemClock))).runs;
  return { name, deploy, records };
};

const env = () => ({
  AWS_ENDPOINT_URL_DYNAMODB: engine.endpoint,
  AWS_ENDPOINT_URL_LAMBDA: lambda.endpoint,
  CRONFENCE_TABLE: controlTable,
  AWS_REGION: "local",
  AWS_ACCESS_KEY_ID: "local",
  AWS_SECRET_ACCESS_KEY: "local",
  CRONFENCE_FUNCTION_NAME: "shop-dev-{job}",
});
const run = (args: readonly string[], more: Record<string, string> = {}, cwd = "/"): Promise<Ended> =>
  cronfence(cwd, ["run", ...args], { ...env(), ...more });
const expectSentence = ({ code, stdout, stderr }: Ended, says: RegExp, status = 1) => {
  expect(stderr).toMatch(says);
  expect(stderr).not.toMatch(/\n\s+at |\[object|undefined/);
  expect(stdout).toBe("");
  expect(code).toBe(status);
};

describe("cronfence run, in the job's function,", () => {
  it("starts one run, however slow it is, and follows it to its end", async () => {
    const held = gate();
    const { name, records } = await deployed(async (work) => {
      await work.commit([]);
      await held.pass();
    });
    // Slow is a run that is looked at five times before it ends.
    let looks = 0;
    engine.proxy.when(({ operation }) => operation === "GetItem" && ++looks === 5, { before: () => held.open() });
    const args = [name, "--wait", "--why", "after the outage", "--by", "ann"];
    const { code, stdout, stderr } = await run(args, { AWS_ENDPOINT_URL_DYNAMODB: engine.proxy.endpoint });
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^run [0-9a-f-]{36} succeeded after \d.*s: 0 items in 1 commit, version v1\n$/);
    expect(code).toBe(0);
    expect(lambda.invocations).toMatchObject([{ kind: "Event" }]);
    expect(await records()).toMatchObject([{ outcome: "succeeded", reason: "started by ann: after the outage" }]);
  });

  it("isn't started again where the acknowledgement is lost, and says so", async () => {
    const { name, records } = await deployed();
    lambda.next = "lost reply";
    expectSentence(await run([name, "--wait"]), /it isn't known whether Lambda took the event .*wasn't sent again/);
    await lambda.idle();
    expect(lambda.invocations).toHaveLength(1);
    expect(await records()).toHaveLength(1);
  });

  it("doesn't wait unless it is told to: the request id is that of the record", async () => {
    const { name, records } = await deployed();
    const { code, stdout } = await run([name, "--json"]);
    expect(code).toBe(0);
    const { requestId, outcome } = JSON.parse(stdout);
    expect(outcome).toBeNull();
    await lambda.idle();
    expect(await records()).toMatchObject([{ requestId }]);
  });

  it("ends with status 1, and the error, where the run fails", async () => {
    const { name } = await deployed(() => {
      throw new Error("the supplier is closed");
    });
    expectSentence(await run([name, "--wait"]), /run \S+ ended as failed after .*\nError: the supplier is closed\n$/);
    const { code, stdout } = await run([name, "--wait", "--json"]);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      outcome: "failed",
      run: { error: { message: "the supplier is closed" } },
    });
  });

  it("does a tick, once: the second time it is done already", async () => {
    const { name, records } = await deployed();
    const tick = new Date(Math.floor(Date.now() / 60_000) * 60_000).toISOString();
    expect(await run([name, "--tick", tick, "--wait"])).toMatchObject({ code: 0 });
    const again = await run([name, "--tick", tick, "--wait"]);
    expect(again).toEqual({
      code: 0,
      stdout: `tick ${tick} of ${name} is done already; nothing was started\n`,
      stderr: "",
    });
    expect(lambda.invocations).toHaveLength(1);
    expect(await records()).toHaveLength(1);
  });

  it("says what a dry run would do, and leaves no trace", async () => {
    const { name, records } = await deployed((work) => work.commit([{ Delete: { TableName: "x", Key: { id: "1" } } }]));
    const { code, stdout } = await run([name, "--dry-run"]);
    expect(stdout).toMatch(/^dry run: 1 write would have been made in .*, and none was \(version v1\)\n$/);
    expect(code).toBe(0);
    expect(await records()).toEqual([]);
  });

  it("starts nothing that would come to nothing", async () => {
    const { name } = await deployed();
    await engine.store.pause(name, { by: "ann", why: "stocktaking", at: Date.now() }, budgetOn(systemClock));
    expectSentence(
      await run([name, "--wait"]),
      /run refused.*the job is paused by ann \(stocktaking\); resume it first/,
    );
    const held = await deployed();
    const now = Date.now();
    const lease = { ttlMs: 60_000, skewMs: 0, now, owner: "someone" };
    await engine.store.acquire(
      { job: held.name, ...lease, run: { id: "their-run", startedAt: now, trigger: "manual" } },
      budgetOn(systemClock),
    );
    expectSentence(
      await run([held.name, "--wait"]),
      /run their-run holds the lease until .*; wait for its end, or cancel/,
    );
    expect(lambda.invocations).toEqual([]);
  });

  it("gives up when it is told to, and says what it knows", async () => {
    const held = gate();
    const { name } = await deployed(() => held.pass());
    expectSentence(
      await run([name, "--wait", "--timeout", "1s"]),
      /run \S+ still goes on; see it with: npx cronfence show/,
    );
    held.open();
  });
});

describe("cronfence run --wait-for", () => {
  it("waits until the version answers, and no other runs it", async () => {
    const { name, deploy, records } = await deployed(undefined, "old");
    const old = lambda.functions.get(`shop-dev-${name}`);
    lambda.functions.set(`shop-dev-${name}`, async (event, context) => {
      const answer = await old?.(event, context);
      deploy("new");
      return answer;
    });
    const { code, stdout, stderr } = await run([name, "--wait-for", "new"]);
    expect(stderr).toBe(`shop-dev-${name} answers as version new\n`);
    expect(stdout).toMatch(/succeeded after .*, version new\n$/);
    expect(code).toBe(0);
    expect(lambda.invocations.filter(({ kind }) => kind === "Event")).toMatchObject([{ event: { version: "new" } }]);
    expect(await records()).toMatchObject([{ version: "new" }]);
  });

  it("runs nothing where the version doesn't show", async () => {
    const { name, records } = await deployed(undefined, "old");
    expectSentence(
      await run([name, "--wait-for", "new", "--timeout", "700ms"]),
      /function \S+ answers as version old, and not as new; nothing was run/,
    );
    expect(await records()).toEqual([]);
  });

  it("runs nothing in another job's function", async () => {
    const { name } = await deployed();
    const other = await deployed();
    expectSentence(
      await run([name, "--wait-for", "v1", "--function", `shop-dev-${other.name}`]),
      new RegExp(`function shop-dev-${other.name} isn't job "${name}" but "${other.name}"; nothing was run`),
    );
  });
});

describe("What would be passed over is wrong usage:", () => {
  const span = ["--from", "2026-01-01", "--to", "2026-01-02", "--why", "x", "--yes"];
  it.each([
    ["a local file for a run in the cloud", ["run", "j", "--local", "a.db"], /--local is for a run in this process/],
    ["the same for a backfill", ["backfill", "j", ...span, "--local", "a.db"], /--local is for a run in this process/],
    ["a stage for a run in this process", ["run", "j", "--here", "--stage", "prod"], /'--stage <stage>'/],
    ["a stage for a backfill in this process", ["backfill", "j", ...span, "--here", "--stage", "prod"], /'--stage/],
    ["how long to wait, where nobody waits", ["run", "j", "--timeout", "5m"], /--timeout is for what is waited for/],
    ["how many runs, where all are wanted", ["runs", "j", "--all", "--limit", "5"], /'--all' cannot be used with/],
  ])("%s", async (_what, args, says) => {
    expectSentence(await cronfence("/", args, env()), says, 2);
    expect(lambda.invocations).toEqual([]);
  });
});

describe("cronfence backfill, in the job's function,", () => {
  it("hands the ticks over, and follows each run", async () => {
    const { name } = await operated(engine);
    const cwd = await projectOf({ "handlers/job.ts": hourlySource(name) });
    const job = defineJob({ name, schedule: cron("0 * * * *"), exact: true, timeout: "1m", tick: () => [] }) as Job;
    const handler = lambdaHandler(job, { store: engine.store, log: silentLog });
    lambda.functions.set(`shop-dev-${name}`, handler as (event: unknown, context: object) => Promise<unknown>);
    const span = ["--from", new Date(Date.now() - 9 * hourMs).toISOString(), "--to", new Date().toISOString()];
    const args = ["backfill", name, ...span, "--why", "new", "--yes", "--json"];
    const { code, stdout } = await cronfence(cwd, args, env());
    const { done, ticks, runs } = JSON.parse(stdout);
    expect([code, done]).toEqual([0, ticks.length]);
    expect(runs).toMatchObject([{ outcome: "succeeded" }]);
    expect(lambda.invocations).toMatchObject([{ kind: "Event", event: { backfill: ticks } }]);
  });
});

describe("cronfence run --here", () => {
  const stock = `
import { defineJob } from "cronfence";
export const local = { tables: [{ name: "stock", key: { hash: "id" } }], seed: () => ({ stock: [{ id: "a", on: 3 }] }) };
export const job = defineJob({
  name: "count-stock",
  timeout: "1m",
  run: async (run) => {
    await run.commit([{ Update: { TableName: "stock", Key: { id: "a" }, UpdateExpression: "SET seen = :run", ExpressionAttributeValues: { ":run": run.id }, ConditionExpression: "attribute_exists(id)" } }]);
  },
});
export const slow = defineJob({ name: "slow", timeout: "1m", run: (run) => new Promise((resolve) => { process.stderr.write("at work\\n"); run.signal.addEventListener("abort", resolve); }) });
export const broken = defineJob({ name: "broken", timeout: "1m", run: () => { throw new Error("the shelf is gone"); } });
`;
  const hourly = `
import { cron, defineJob } from "cronfence";
export const job = defineJob({ name: "hourly", schedule: cron("0 * * * *"), timeout: "1m", tick: () => [] });
`;
  const here = (cwd: string, ...args: readonly string[]) => cronfence(cwd, ["run", ...args, "--here"]);

  it("runs in this process on a file, making the tables that it lacks, and keeps what was done", async () => {
    const cwd = await projectOf({ "handlers/stock.ts": stock });
    const first = await here(cwd, "count-stock", "--local", "data/db", "--table", "jobs");
    expect(first.stderr).toBe("made control table jobs\nmade table stock\n");
    expect(first.stdout).toMatch(/^run \S+ succeeded after .*: 1 item in 1 commit\n$/);
    expect(first.code).toBe(0);
    const again = await here(cwd, "count-stock", "--local", "data/db", "--table", "jobs", "--json");
    expect(again.stderr).toBe("");
    expect(JSON.parse(again.stdout)).toMatchObject({ job: "count-stock", outcome: "succeeded", items: 1 });
    const dry = await here(cwd, "count-stock", "--local", "data/db", "--table", "jobs", "--dry-run");
    expect(dry).toMatchObject({ code: 0, stdout: expect.stringMatching(/^dry run: 1 write would have been made/) });
    const broken = await here(cwd, "broken", "--local", "data/db", "--table", "jobs");
    expect(broken).toMatchObject({ code: 1, stdout: "" });
    expect(broken.stderr).toMatch(/run \S+ ended as failed after .*\nError: the shelf is gone\n$/);
  });

  it("refuses a tick of the future, before anything is made: all until then would count as done", async () => {
    const cwd = await projectOf({ "handlers/hourly.ts": hourly });
    const { code, stderr } = await here(cwd, "hourly", "--local", "data/db", "--tick", "2999-01-01T00:00:00Z");
    expect(code).toBe(1);
    expect(stderr).toBe("cronfence: start of a run: tick is 2999-01-01T00:00:00.000Z, and must be one that has come\n");
  });

  it("says that a run of a job of ticks does none of them where none is named", async () => {
    const cwd = await projectOf({ "handlers/hourly.ts": hourly });
    const without = await here(cwd, "hourly", "--local", "data/db");
    expect(without.stderr).toContain("a run without --tick does no tick of this job");
    const named = await here(cwd, "hourly", "--local", "data/db", "--tick", "2026-01-01T00:00:00Z");
    expect(named.stderr).toBe("");
    expect(named.code).toBe(0);
    const beside = await here(cwd, "hourly", "--local", "data/db", "--tick", "2026-01-01T01:01:00Z");
    expect(beside.stderr).toBe(
      "today's schedule has no tick at 2026-01-01T01:01:00.000Z; the one before is 2026-01-01T01:00:00.000Z\n",
    );
  });

  it("ends on Ctrl-C with status 130, the run recorded as interrupted", async () => {
    const cwd = await projectOf({ "handlers/stock.ts": stock });
    const { name } = { name: "slow" };
    const child = await started(cwd, ["run", name, "--here", "--endpoint", engine.endpoint], env());
    await child.said(/at work/);
    child.kill("SIGINT");
    const { code, stderr, stdout } = await child.ended;
    expect(stderr).toMatch(/cronfence: run \S+ ended as interrupted after/);
    expect([code, stdout]).toEqual([130, ""]);
    const { runs } = await engine.store.runs(name, { limit: 5 }, budgetOn(systemClock));
    expect(runs).toMatchObject([{ outcome: "interrupted" }]);
  });

  it("refuses a folder in a file's place", async () => {
    const { code, stderr } = await cronfence("/", ["parked", "slow", "--local", "/"]);
    expect([code, stderr]).toEqual([
      1,
      'cronfence: control table: --local is "/", and must be a file, such as /dynamodb.db\n',
    ]);
  });

  it("refuses a file that isn't there for everything else", async () => {
    const { code, stderr } = await cronfence("/", ["parked", "slow", "--local", "/nowhere/at/all"]);
    expect(stderr).toMatch(
      /--local is "\/nowhere\/at\/all", and there is no such file; npx cronfence table create --local/,
    );
    expect(code).toBe(1);
  });
});

describe("cronfence run says in one sentence that", () => {
  it.each([
    ["refused", /function \S+ wasn't invoked: these credentials may not lambda:InvokeFunction on arn:f\n$/],
    ["throttled", /throttles these requests/],
  ] as const)("Lambda has %s it", async (next, says) => {
    const { name } = await deployed();
    lambda.next = next;
    expectSentence(await run([name]), says);
  });

  it("there is no such function, or that nothing says which it is", async () => {
    const { name } = await deployed();
    expectSentence(await run([name, "--function", "nobody"]), /function nobody doesn't exist .*--function/);
    expectSentence(await run([name], { CRONFENCE_FUNCTION_NAME: "" }), /it isn't known which function runs job/);
    const cwd = await projectOf({ "serverless.yml": "service: shop # ours\nplugins: [cronfence/serverless]\n" });
    expect(await run([name], { CRONFENCE_FUNCTION_NAME: "" }, cwd)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`shop-dev-${name} was asked for a run`),
    });
  });

  it("the job isn't known, naming the nearest", async () => {
    const cwd = await projectOf({ "handlers/a.ts": jobSource("expire-carts") });
    expectSentence(await run(["expire-crats"], {}, cwd), /isn't known in table \S+: .*did you mean "expire-carts"\?/);
  });
});
