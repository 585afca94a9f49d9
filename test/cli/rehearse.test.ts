import { describe, expect, it } from "vitest";
import { cronfence, fixture, jobSource, projectOf } from "./command.ts";

const rehearsed = fixture("rehearsed");
const rehearse = (cwd: string, ...args: readonly string[]) => cronfence(cwd, ["rehearse", ...args]);

describe("cronfence rehearse", () => {
  const span = ["--from", "2026-03-20", "--to", "2026-04-10"];
  const outage = ["--outage", "2026-04-01..2026-04-03"];

  it("runs the job's code on tables of its module's making, and accounts for every tick", async () => {
    const { code, stdout, stderr } = await rehearse(
      rehearsed,
      "count-stock",
      ...span,
      ...outage,
      "--duplicates",
      "50%",
    );
    expect(stderr).toBe("");
    const lines = [
      /^count-stock from 2026-03-20T00:00:00\.000Z to 2026-04-10T00:00:00\.000Z, seed 1: 21 ticks$/,
      /^21 +done$/,
      /^0 +doubled \(must be 0\)$/,
      /^0 +left out for good$/,
      /^0 +still owed at the end$/,
      /^ticks +not done by .* what became of them +first \(Europe\/Berlin\) +last$/,
      /^1 +EventBridge .* done by a later run +Sun 2026-03-29 03:00$/,
      /^2 +nothing was delivered .* done by a later run +Wed 2026-04-01 02:30 +Thu 2026-04-02 02:30$/,
      /^deliveries: \d\d, of them \d+ second ones and 0 tries after a failure$/,
      /^runs: 18 succeeded$/,
      /^no run: \d+ (duplicate|held)/,
      /^took \d+/,
    ];
    for (const line of lines) expect(stdout).toMatch(new RegExp(line, "m"));
    expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(100);
    expect(code).toBe(0);
  });

  it("is JSON for programs, the same for the same seed", async () => {
    const args = ["count-stock", ...span, ...outage, "--seed", "7", "--duplicates", "0.3", "--json"];
    const [one, other] = await Promise.all([rehearse(rehearsed, ...args), rehearse(rehearsed, ...args)]);
    const read = ({ stdout }: { stdout: string }) => {
      const { wallMs, attempts, ...rest } = JSON.parse(stdout) as Record<string, unknown>;
      return rest;
    };
    expect(read(one)).toEqual({
      job: "count-stock",
      from: "2026-03-20T00:00:00.000Z",
      to: "2026-04-10T00:00:00.000Z",
      seed: 7,
      ok: true,
      ticks: {
        all: 21,
        done: 21,
        owed: 0,
        doubled: 0,
        unaccounted: 0,
        skipped: { calendar: 0, "before startAt": 0, startWithin: 0, catchUp: 0 },
      },
      leftOut: [
        {
          why: "clock change",
          became: "done by a later run",
          count: 1,
          first: "2026-03-29T01:00:00.000Z",
          last: "2026-03-29T01:00:00.000Z",
        },
        expect.objectContaining({ why: "outage", became: "done by a later run", count: 2 }),
      ],
      deliveries: { all: expect.any(Number), duplicates: expect.any(Number), retries: 0 },
      runs: { succeeded: 18 },
      errors: [],
    });
    expect(read(one)).toEqual(read(other));
  });

  it("fails when a tick is without a state, and gives a client of the job's own the local DynamoDB", async () => {
    const args = ["forgetful", "--from", "2026-01-01", "--to", "2026-01-01T06:00:00Z", "--duplicates", "0", "--log"];
    const { code, stdout, stderr } = await rehearse(rehearsed, ...args);
    expect(stdout).toMatch(/^1 +done$/m);
    expect(stdout).toMatch(/^5 +without any record \(must be 0\)$/m);
    expect(stderr).toMatch(/forgetful: forgot what it had done/);
    expect(code).toBe(1);
  });

  it("says what made runs fail, and that there was no table where the module names none", async () => {
    const source = jobSource("failing", "").replace("run: () => {}", 'run: () => { throw new Error("no idea"); }');
    const cwd = await projectOf({ "handlers/failing.ts": source });
    const { code, stdout } = await rehearse(
      cwd,
      "failing",
      "--from",
      "2026-01-01",
      "--to",
      "2026-01-03",
      "--duplicates",
      "0",
    );
    expect(stdout).toMatch(/^2 +still owed at the end$/m);
    expect(stdout).toMatch(/^failed 6 times, first for tick 2026-01-01T06:17:00\.000Z: no idea$/m);
    expect(stdout).toMatch(/exports no `local`/);
    // Nothing was doubled, and every tick has a state.
    expect(code).toBe(0);
  });

  it("leaves AWS alone: credentials of the environment aren't used", async () => {
    const source = jobSource("peeking").replace(
      "run: () => {}",
      'run: () => { throw new Error([process.env.AWS_ACCESS_KEY_ID, process.env.AWS_PROFILE].join("/")); }',
    );
    const cwd = await projectOf({ "handlers/peeking.ts": source });
    const args = ["rehearse", "peeking", "--from", "2026-01-01", "--to", "2026-01-02"];
    const env = { AWS_ACCESS_KEY_ID: "real", AWS_SECRET_ACCESS_KEY: "real", AWS_PROFILE: "production" };
    expect((await cronfence(cwd, args, env)).stdout).toMatch(/: local\/$/m);
  });

  it("goes on beside a module that can't be loaded, and fails for it", async () => {
    const cwd = await projectOf({
      "handlers/a.ts": jobSource("well"),
      "handlers/b.ts": "throw new Error('broken');\n",
    });
    const { code, stdout, stderr } = await rehearse(cwd, "well", "--from", "2026-01-01", "--to", "2026-01-03");
    expect(stdout).toMatch(/^2 +done$/m);
    expect([code, stderr]).toEqual([1, "cronfence: handlers/b.ts: broken\n"]);
  });
});

describe("cronfence rehearse refuses", () => {
  it.each([
    [
      "a job that isn't there",
      ["count-stok", "--from", "2026-01-01", "--to", "2026-01-02"],
      1,
      /did you mean "count-stock"/,
    ],
    [
      "time that runs backward",
      ["count-stock", "--from", "2026-01-02", "--to", "2026-01-01"],
      1,
      /from must be earlier than to/,
    ],
    [
      "an end that isn't given",
      ["count-stock", "--from", "2026-01-02"],
      2,
      /required option '--to <instant>' not specified/,
    ],
    ["an outage without an end", ["count-stock", "--outage", "2026-01-02"], 2, /FROM\.\.TO|It must be a date/],
    ["an outage that ends first", ["count-stock", "--outage", "2026-01-02..2026-01-01"], 2, /It must be FROM\.\.TO/],
    ["more than all ticks twice", ["count-stock", "--duplicates", "120%"], 2, /It must be a share, such as 5%/],
    ["a seed that is none", ["count-stock", "--seed", "x"], 2, /It must be a whole number/],
  ])("%s", async (_, args, status, says) => {
    const { code, stdout, stderr } = await rehearse(rehearsed, ...args);
    expect(stderr).toMatch(says);
    expect(stderr).not.toMatch(/\n\s+at /);
    expect([code, stdout]).toEqual([status, ""]);
  });

  it("to run without an engine, with the engine's own advice", async () => {
    const env = { DYNAMODB_ENDPOINT: "not a url" };
    const args = ["rehearse", "count-stock", "--from", "2026-01-01", "--to", "2026-01-02"];
    const { code, stderr } = await cronfence(rehearsed, args, env);
    expect(stderr).toMatch(/^cronfence: DYNAMODB_ENDPOINT: "not a url" isn't a URL/);
    expect(code).toBe(1);
  });
});
