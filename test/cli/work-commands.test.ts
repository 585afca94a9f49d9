/** The commands about a job's work, as people run them: processes in a project's folder, on a control table. */
import { userInfo } from "node:os";
import { type DynamoStore, defineJob, dynamoStore, type Job, runJob } from "cronfence";
import { fromAsyncIterable } from "cronfence/sources";
import { dumpTable, settableClock } from "cronfence/testing";
import { beforeAll, describe, expect, it } from "vitest";
import { budgetOn, controlTable, freshName, silentLog, useEngine } from "../fixture.ts";
import { cronfence, type Ended, projectOf } from "./command.ts";

const engine = useEngine("results");
const clock = settableClock();
let store: DynamoStore;
let env: Record<string, string>;
beforeAll(() => {
  store = dynamoStore({ client: engine.client, table: controlTable });
  env = {
    AWS_ENDPOINT_URL_DYNAMODB: engine.endpoint,
    CRONFENCE_TABLE: controlTable,
    AWS_REGION: "local",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
  };
});

/** A job over the items a, b, c…, of which those in `broken` fail. */
const jobSource = (name: string, broken: string) => `
import { defineJob } from "cronfence";
import { fromAsyncIterable } from "cronfence/sources";
export const job = defineJob({
  name: "${name}",
  timeout: "1m",
  onItemError: "park",
  maxAttempts: 1,
  source: fromAsyncIterable({ name: "letters", items: (after) => [..."abcde"].filter((id) => id > (after ?? "")), cursor: (id) => id }),
  process: (id) => {
    if ("${broken}".includes(id)) throw new Error(id + " is broken, and will be for as long as nobody puts it right, which may take its time");
    return [{ Put: { TableName: "results", Item: { id: "${name}/" + id } } }];
  },
});
`;

const parkedJob = async (broken: string): Promise<string> => {
  const name = freshName();
  const job = defineJob({
    name,
    timeout: "1m",
    onItemError: "park",
    maxAttempts: 1,
    source: fromAsyncIterable<string>({ name: "letters", items: () => [..."abcde"], cursor: (id) => id }),
    process: (id: string) => {
      if (broken.includes(id)) throw new Error(`${id} is broken`);
      return [];
    },
  }) as Job;
  await runJob(job, { kind: "manual" }, { store, clock, log: silentLog });
  return name;
};
const run = (args: readonly string[], cwd = "/", more: Record<string, string> = {}) =>
  cronfence(cwd, args, { ...env, ...more });
const keysOf = async (name: string) =>
  (await store.parked(name, { limit: 100 }, budgetOn(clock))).items.map(({ key }) => key);
const acts = async (name: string) =>
  (await dumpTable(engine.client, controlTable)).filter(
    ({ pk, sk }) => pk === `job#${name}` && String(sk).startsWith("act#"),
  );
const rowsOf = async (name: string) =>
  (await dumpTable(engine.client, "results")).map(({ id }) => String(id)).filter((id) => id.startsWith(`${name}/`));
const expectSentence = ({ code, stdout, stderr }: Ended, says: RegExp, status = 1) => {
  expect(stderr).toMatch(says);
  expect(stderr).not.toMatch(/\n\s+at |\[object|undefined/);
  expect(stdout).toBe("");
  expect(code).toBe(status);
};

describe("cronfence parked", () => {
  it("lists a job's parked items with their errors", async () => {
    const name = await parkedJob("bd");
    const { code, stdout, stderr } = await run(["parked", name]);
    expect(stderr).toBe("");
    expect(stdout.split("\n")).toEqual([
      expect.stringMatching(/^key +parked \(UTC\) +tries +error$/),
      expect.stringMatching(/^b +Thu 2026-01-01 00:00 +1 +b is broken$/),
      expect.stringMatching(/^d +Thu 2026-01-01 00:00 +1 +d is broken$/),
      "",
    ]);
    expect(code).toBe(0);
  });

  it("is JSON for programs, with the items themselves", async () => {
    const name = await parkedJob("b");
    const { stdout } = await run(["parked", name, "--json"]);
    expect(JSON.parse(stdout)).toEqual({
      job: name,
      items: [
        {
          key: "b",
          cursor: "b",
          item: "b",
          attempts: 1,
          error: { name: "Error", message: "b is broken" },
          at: "2026-01-01T00:00:00.000Z",
          run: expect.any(String),
        },
      ],
      more: false,
    });
  });

  it("says that there are more than it shows", async () => {
    const name = await parkedJob("abc");
    expect((await run(["parked", name, "--limit", "2"])).stdout).toContain("\nand more: see them with --limit 20");
    expect((await run(["parked", name, "--limit", "3"])).stdout).not.toContain("and more");
  });

  it("says that there are none, and that a job isn't known", async () => {
    const name = await parkedJob("");
    expect(await run(["parked", name])).toEqual({ code: 0, stdout: `no item of ${name} is parked\n`, stderr: "" });
    expectSentence(
      await run(["parked", "no-such-job"]),
      /^cronfence: job "no-such-job" isn't known in table control-table/,
    );
  });

  it("takes table and endpoint as options, and says what is wrong with them", async () => {
    const name = await parkedJob("b");
    const where = ["--table", controlTable, "--endpoint", engine.endpoint];
    const without = { AWS_ENDPOINT_URL_DYNAMODB: "", CRONFENCE_TABLE: "" };
    expect(await run(["parked", name, ...where], "/", without)).toMatchObject({ code: 0 });
    expectSentence(await run(["parked", name, "--endpoint", "here"]), /--endpoint is "here", and must be a URL/);
    expectSentence(await run(["parked", name, "--table", "another-table"]), /another-table/);
  });
});

describe("cronfence retry", () => {
  const project = async (name: string, broken = "") => projectOf({ "handlers/letters.ts": jobSource(name, broken) });

  it("does the named items in this process, and they aren't parked any more", async () => {
    const name = await parkedJob("bcd");
    const ended = await run(
      ["retry", name, "b", "d", "--by", "ann", "--why", "put right", "--yes"],
      await project(name),
    );
    expect(ended).toEqual({ code: 0, stdout: `2 parked items of ${name} were done\n`, stderr: "" });
    expect(await keysOf(name)).toEqual(["c"]);
    expect(await rowsOf(name)).toEqual([`${name}/b`, `${name}/d`]);
    expect((await store.runs(name, { limit: 1 }, budgetOn(clock))).runs).toMatchObject([
      { trigger: "manual", reason: "retry of parked items by ann: put right", outcome: "succeeded", items: 2 },
    ]);
  });

  it("does all of them with --all", async () => {
    const name = await parkedJob("abcde");
    expect(await run(["retry", name, "--all", "--yes"], await project(name))).toMatchObject({ code: 0, stderr: "" });
    expect(await keysOf(name)).toEqual([]);
  });

  it("does the others where one fails again, names it, and ends with status 1", async () => {
    const name = await parkedJob("bc");
    const { code, stdout, stderr } = await run(["retry", name, "--all", "--yes"], await project(name, "b"));
    expect(code).toBe(1);
    expect(stdout).toBe(`1 parked item of ${name} was done\n`);
    expect(stderr).toMatch(/a parked item failed again, and stays parked \(.*parked b/);
    expect(stderr).toMatch(/\ncronfence: .*1 parked item failed again; the last: b is broken/);
    expect(await keysOf(name)).toEqual(["b"]);
  });

  it("writes nothing with --dry-run", async () => {
    const name = await parkedJob("b");
    const ended = await run(["retry", name, "b", "--dry-run"], await project(name));
    expect(ended).toMatchObject({ code: 0, stdout: "dry run: 2 writes would have been made, and none was\n" });
    expect(await keysOf(name)).toEqual(["b"]);
    expect(await rowsOf(name)).toEqual([]);
  });

  it("waits for nobody: it says who holds the lease", async () => {
    const name = await parkedJob("b");
    const { acquire } = store;
    const now = Date.now();
    const held = await acquire(
      {
        job: name,
        owner: "someone",
        run: { id: "their-run", startedAt: now, trigger: "manual" },
        now,
        ttlMs: 60_000,
        skewMs: 0,
      },
      { clock: { now: () => now, after: () => () => {} }, until: now + 1_000, random: () => 0 },
    );
    expect(held.kind).toBe("acquired");
    expectSentence(
      await run(["retry", name, "b", "--yes"], await project(name)),
      new RegExp(`^cronfence: job "${name}": run their-run holds the lease until \\d{4}-.*; try again then\\n$`),
    );
    expect(await keysOf(name)).toEqual(["b"]);
  });

  it("is JSON for programs", async () => {
    const name = await parkedJob("b");
    const { stdout, code } = await run(["retry", name, "b", "--json", "--yes"], await project(name));
    expect(JSON.parse(stdout)).toMatchObject({ job: name, outcome: "succeeded", items: 1 });
    expect(code).toBe(0);
  });

  it.each([
    ["neither keys nor --all", [], /say which items: their keys, or --all/],
    ["both", ["b", "--all"], /either keys or --all says which items, and both are given/],
  ])("is wrong usage with %s", async (_, args, says) => {
    expectSentence(await run(["retry", "letters", ...args]), says, 2);
  });

  it("fails for a job that isn't defined here, naming the nearest", async () => {
    const name = await parkedJob("b");
    expectSentence(await run(["retry", `${name}x`, "b"], await project(name)), new RegExp(`did you mean "${name}"`));
  });
});

describe("cronfence drop", () => {
  it("gives an item up, and records who did it and why", async () => {
    const name = await parkedJob("bc");
    const ended = await run(["drop", name, "b", "--why", "a test order", "--yes"]);
    expect(ended).toEqual({ code: 0, stdout: `b of ${name} was dropped\n`, stderr: "" });
    expect(await keysOf(name)).toEqual(["c"]);
    expect(await acts(name)).toMatchObject([{ kind: "drop", key: "b", by: userInfo().username, why: "a test order" }]);
    expectSentence(
      await run(["drop", name, "b", "--why", "again", "--yes"]),
      /^cronfence: job ".*": no item is parked under "b"/,
    );
  });

  it.each([[["drop", "letters", "b"]], [["drop", "letters", "b", "--why", " "]]])(
    "wants a reason (%j)",
    async (args) => {
      expectSentence(await run(args), /--why/, 2);
    },
  );
});

describe("cronfence approve", () => {
  const tripped = async () => {
    const name = freshName();
    const items = Array.from({ length: 20 }, (_, at) => `s${at}`);
    const job = defineJob({
      name,
      timeout: "1m",
      destructive: { max: 10 },
      source: fromAsyncIterable<string>({ name: "sessions", items: () => items, cursor: (id) => id }),
      process: () => [],
    }) as Job;
    const go = (at = clock.now()) =>
      runJob(job, { kind: "manual" }, { store, clock: settableClock(at), log: silentLog });
    expect(await go()).toMatchObject({ outcome: "guard_tripped" });
    return { name, go };
  };

  it("lets one run do what the guard stopped, until the time that it names", async () => {
    const { name, go } = await tripped();
    const ended = await run([
      "approve",
      name,
      "--max",
      "20",
      "--for",
      "24h",
      "--why",
      "the sale is over",
      "--by",
      "ann",
      "--yes",
    ]);
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    expect(ended.stdout).toMatch(
      new RegExp(
        `^${name} may do the plan that its guard stopped \\([0-9a-f]{12}…, at most 20 items\\) once, until .*Z\\n$`,
      ),
    );
    const until = (await store.read(name, budgetOn(clock)))?.approval?.until as number;
    expect(Math.abs(until - Date.now() - 86_400_000)).toBeLessThan(600_000);
    expect(await acts(name)).toMatchObject([{ kind: "approve", by: "ann", why: "the sale is over", planned: 20 }]);
    expect(await go(Date.now())).toMatchObject({ outcome: "succeeded", items: 20 });
  });

  it("is refused for less than the plan, and where no guard has tripped", async () => {
    const { name } = await tripped();
    const approve = (job: string) => run(["approve", job, "--max", "19", "--for", "24h", "--why", "test", "--yes"]);
    expectSentence(
      await approve(name),
      /the plan that tripped the guard is of 20 items, more than the 19 to be approved/,
    );
    expectSentence(await approve(await parkedJob("")), /its guard hasn't tripped, so there is nothing to approve/);
  });

  it.each([
    ["--max", ["--max", "0", "--for", "1h", "--why", "x"], /whole number from 1/],
    ["--max", ["--for", "1h", "--why", "x"], /--max/],
    ["--for", ["--max", "5", "--for", "24", "--why", "x"], /It must be a duration, such as 24h or 30m/],
    ["--for", ["--max", "5", "--for", "soon", "--why", "x"], /It must be a duration/],
    ["--why", ["--max", "5", "--for", "1h"], /--why/],
  ])("is wrong usage with a bad %s (%j)", async (_, args, says) => {
    expectSentence(await run(["approve", "letters", ...args]), says, 2);
  });
});

describe("cronfence release", () => {
  const unknown = async () => {
    const name = freshName();
    let calls = 0;
    const job = defineJob({
      name,
      timeout: "1m",
      run: (run) =>
        run.once("payment", () => {
          calls += 1;
          if (calls === 1) throw new Error("nobody knows");
        }),
    });
    const go = () => runJob(job, { kind: "manual" }, { store, clock, log: silentLog });
    expect(await go()).toMatchObject({ outcome: "failed" });
    expect(await go()).toMatchObject({ outcome: "failed", error: { code: "EFFECT_UNKNOWN" } });
    return { name, go, calls: () => calls };
  };

  it.each([
    ["--done", 1, /on record as done, and isn't called again/],
    ["--not-done", 2, /on record as not done, and is called again/],
  ])("%s: the next run goes on by it", async (verdict, calls, says) => {
    const here = await unknown();
    const ended = await run(["release", here.name, "payment", verdict, "--why", "seen at the bank", "--yes"]);
    expect(ended).toMatchObject({ code: 0, stderr: "", stdout: expect.stringMatching(says) });
    expect(await acts(here.name)).toMatchObject([{ kind: "release", key: "payment", why: "seen at the bank" }]);
    expect(await here.go()).toMatchObject({ outcome: "succeeded" });
    expect(here.calls()).toBe(calls);
    expectSentence(
      await run(["release", here.name, "payment", verdict, "--why", "again", "--yes"]),
      /no effect "payment" is open/,
    );
  });

  it.each([
    ["no verdict", [], /say what became of it: --done or --not-done/],
    ["two verdicts", ["--done", "--not-done"], /cannot be used with/],
  ])("is wrong usage with %s", async (_, args, says) => {
    expectSentence(await run(["release", "letters", "payment", ...args, "--why", "x"]), says, 2);
  });
});

describe("cronfence table restored", () => {
  it("raises every fence and takes leases away, once it is meant", async () => {
    const name = await parkedJob("");
    const before = (await store.read(name, budgetOn(clock)))?.fence as number;
    expectSentence(
      await run(["table", "restored", "--why", "a backup"]),
      /every run of table control-table .*; say that this is meant with --yes/,
      2,
    );
    expect((await store.read(name, budgetOn(clock)))?.fence).toBe(before);
    const { code, stdout } = await run(["table", "restored", "--why", "a backup", "--by", "ann", "--yes"]);
    expect(code).toBe(0);
    expect(stdout).toContain(`job ${name}: its fence is raised, and its lease taken away\n`);
    expect(stdout).toMatch(/schedules may be enabled again\n$/);
    const fence = (await store.read(name, budgetOn(clock)))?.fence;
    expect(fence).toBeGreaterThan(Date.now() / 1_000 - 600);
    const { acts } = await store.acts(name, { limit: 1 }, budgetOn(clock));
    expect(acts).toEqual([expect.objectContaining({ kind: "restored", by: "ann", why: "a backup", fence })]);
  });
});

it.each(["parked", "retry", "drop", "approve", "release", "table restored"])(
  "cronfence %s --help gives an example",
  async (name) => {
    const { code, stdout } = await run([...name.split(" "), "--help"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`Example:\\n  npx cronfence ${name} `));
  },
);
