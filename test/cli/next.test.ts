import { describe, expect, it } from "vitest";
import { cronfence, fixture, jobSource, projectOf } from "./command.ts";

const good = fixture("good");
const next = (cwd: string, ...args: readonly string[]) => cronfence(cwd, ["next", ...args]);

describe("cronfence next", () => {
  it("shows ticks in the job's zone and in UTC, with words, jitter, clock changes and what a calendar takes away", async () => {
    const { code, stdout, stderr } = await next(good, "daily-report", "--from", "2026-03-28", "--count", "5");
    expect(stdout.split("\n")).toEqual([
      "daily-report is due at 02:30, Europe/Berlin time, except what its calendar removes (30 2 * * *)",
      expect.stringMatching(/^starts \d+m \d+s after each tick, its place in a jitter of 10m$/),
      "",
      "Europe/Berlin         UTC                   remark",
      "Sat 2026-03-28 02:30  Sat 2026-03-28 01:30",
      "Sun 2026-03-29 03:00  Sun 2026-03-29 01:00  clocks go forward from 02:00 to 03:00: this stands for",
      "                                            what is due in between",
      "Mon 2026-03-30 02:30  Mon 2026-03-30 00:30",
      "Tue 2026-03-31 02:30  Tue 2026-03-31 00:30  left out: stocktaking",
      "Wed 2026-04-01 02:30  Wed 2026-04-01 00:30",
      "Thu 2026-04-02 02:30  Thu 2026-04-02 00:30",
      "",
    ]);
    expect(code).toBe(0);
    expect(stderr).toBe("what a module prints while it is loaded isn't part of the command's output\n");
  });

  it("shows another zone beside them", async () => {
    const args = [
      "daily-report",
      "--from",
      "2026-07-01T00:00:00+02:00",
      "--count",
      "1",
      "--zone",
      "america/los_angeles",
    ];
    const { stdout } = await next(good, ...args);
    expect(stdout).toContain("Europe/Berlin         America/Los_Angeles   UTC\n");
    expect(stdout).toContain("Wed 2026-07-01 02:30  Tue 2026-06-30 17:30  Wed 2026-07-01 00:30\n");
  });

  it("puts removed ticks with one reason together, if no tick lies between them", async () => {
    const { stdout } = await next(good, "daily-report", "--from", "2026-03-26", "--count", "8");
    expect(stdout.match(/^.*stocktaking$/gm)).toEqual([
      "Fri 2026-03-27 02:30  Fri 2026-03-27 01:30  left out: stocktaking",
      "Tue 2026-03-31 02:30  Tue 2026-03-31 00:30  left out: stocktaking",
    ]);
    expect(stdout).toMatch(/Fri 2026-04-03 02:30 .* 2 ticks from here are left out: 2026-04-03..2026-04-04\n/);
    expect(stdout).not.toContain("Sat 2026-04-04");
  });

  it("fits 100 columns with every column there is", async () => {
    const args = [
      "daily-report",
      "--from",
      "2026-03-28",
      "--count",
      "400",
      "--zone",
      "America/Argentina/ComodRivadavia",
    ];
    const { stdout } = await next(good, ...args);
    expect(stdout.split("\n").length).toBeGreaterThan(400);
    expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(100);
  });

  it("is JSON for programs, and nothing else on standard output", async () => {
    const args = ["daily-report", "--from", "2026-03-29", "--count", "2", "--zone", "Asia/Kolkata", "--json"];
    const { code, stdout } = await next(good, ...args);
    expect(JSON.parse(stdout)).toEqual({
      job: "daily-report",
      schedule: "30 2 * * *",
      zone: "Europe/Berlin",
      words: "at 02:30, Europe/Berlin time, except what its calendar removes",
      jitterMs: 600_000,
      startsAfterMs: expect.any(Number),
      ticks: [
        {
          tick: "2026-03-29T01:00:00.000Z",
          local: "2026-03-29T03:00:00+02:00",
          "Asia/Kolkata": "2026-03-29T06:30:00+05:30",
          remark: expect.stringContaining("clocks go forward"),
        },
        {
          tick: "2026-03-30T00:30:00.000Z",
          local: "2026-03-30T02:30:00+02:00",
          "Asia/Kolkata": "2026-03-30T06:00:00+05:30",
          remark: null,
        },
      ],
      removed: [],
    });
    expect(code).toBe(0);
  });

  it("begins with a tick that is due at the very instant that it is told", async () => {
    const args = ["daily-report", "--from", "2026-03-28T02:30:00+01:00", "--count", "1", "--json"];
    const { ticks } = JSON.parse((await next(good, ...args)).stdout) as { ticks: { tick: string }[] };
    expect(ticks.map(({ tick }) => tick)).toEqual(["2026-03-28T01:30:00.000Z"]);
  });

  it("begins now where it isn't told", async () => {
    const before = Date.now();
    const { stdout } = await next(good, "sync-stock", "--json");
    const { ticks } = JSON.parse(stdout) as { ticks: { tick: string }[] };
    expect(ticks).toHaveLength(10);
    expect(Date.parse(ticks[0]!.tick)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(ticks[0]!.tick)).toBeLessThanOrEqual(before + 12 * 3_600_000 + 60_000);
  });
});

describe("cronfence next refuses", () => {
  it("a job that isn't there, naming the nearest one", async () => {
    const { code, stdout, stderr } = await next(good, "dialy-report");
    expect(stderr).toMatch(/job "dialy-report" isn't defined in handlers\/\*.*; did you mean "daily-report"\?\n$/);
    expect([code, stdout]).toEqual([1, ""]);
    const other = await next(good, "something-else");
    expect(other.stderr).toMatch(/; defined are daily-report, rebuild-index, sync-stock\n$/);
  });

  it("a job without a schedule", async () => {
    const { code, stderr } = await next(good, "rebuild-index");
    expect(stderr).toMatch(/job "rebuild-index" has no schedule; it runs only when somebody starts it\n$/);
    expect(code).toBe(1);
  });

  it("a name that two files use, naming both", async () => {
    const cwd = await projectOf({ "handlers/a.ts": jobSource("same"), "handlers/b.ts": jobSource("same") });
    const { code, stdout, stderr } = await next(cwd, "same");
    expect(stderr).toContain('handlers/b.ts: job "same" is defined in handlers/a.ts too; names must be unique');
    expect([code, stdout]).toEqual([1, ""]);
  });

  it.each([
    [
      "an instant that could be meant in any zone",
      ["--from", "2026-01-01T10:00:00"],
      /date .* or an instant with an offset/,
    ],
    ["a day that doesn't exist", ["--from", "2026-02-30"], /date .* or an instant with an offset/],
    ["no ticks", ["--count", "0"], /whole number from 1 to 1000/],
    ["half a tick", ["--count", "1.5"], /whole number from 1 to 1000/],
    ["an unknown zone", ["--zone", "Europe/Berln"], /did you mean "Europe\/Berlin"/],
    ["an unknown option", ["--form", "2026-01-01"], /unknown option '--form'\n\(Did you mean --from\?\)/],
  ])("%s, as wrong usage", async (_, args, says) => {
    const { code, stdout, stderr } = await next(good, "daily-report", ...args);
    expect(stderr).toMatch(says);
    expect(stderr).not.toMatch(/\n\s+at /);
    expect([code, stdout]).toEqual([2, ""]);
  });

  it("to guess which job", async () => {
    const { code, stderr } = await next(good);
    expect(stderr).toMatch(/missing required argument 'job'/);
    expect(code).toBe(2);
  });
});
