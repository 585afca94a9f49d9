import { staleZone } from "cronfence/schedule";
import { describe, expect, it } from "vitest";
import { cronfence, fixture, jobSource, projectOf } from "./command.ts";

const check = (cwd: string, ...args: readonly string[]) => cronfence(cwd, ["check", ...args]);

/** As this runtime has it: newer ones know the new rules. */
const stale = staleZone("America/Vancouver");

describe("cronfence check", () => {
  it("has nothing to say of jobs that are well", async () => {
    const cwd = await projectOf({ "handlers/a.ts": jobSource("well") });
    const { code, stdout, stderr } = await check(cwd);
    expect(stdout).toMatch(/^well: \d custom metrics .*, \d alarms\n1 job, 0 errors, 0 warnings\n$/);
    expect([code, stderr]).toEqual([0, ""]);
  });

  it("warns of a time of day that clocks skip, and succeeds", async () => {
    const { code, stdout } = await check(fixture("good"));
    expect(stdout).toMatch(/^warning +daily-report +02:30 in Europe\/Berlin doesn't exist on \d{4}-03-\d\d: it runs/m);
    expect(stdout).toMatch(/\n3 jobs, 0 errors, 1 warning\n$/);
    expect(code).toBe(0);
  });

  it("warns of what is seldom meant, and of zones that this runtime has wrong, and succeeds", async () => {
    const { code, stdout } = await check(fixture("warned"), "--json");
    const {
      findings,
      costs: _,
      ...counts
    } = JSON.parse(stdout) as { costs: unknown; findings: { job: string; message: string }[] };
    expect(counts).toEqual({ jobs: 2, errors: 0, warnings: stale === undefined ? 2 : 4 });
    const file = "handlers/jobs.ts";
    const severity = "warning";
    const gap = /02:30 in America\/Vancouver doesn't exist on/;
    expect(findings).toEqual([
      // With the new rules there is no such hour any more.
      ...(stale === undefined ? [] : [{ severity, file, job: "in-the-gap", message: expect.stringMatching(gap) }]),
      { severity, file, job: "in-the-gap", message: expect.stringMatching(/ttl \+ skew is 65000 ms/) },
      ...(stale === undefined ? [] : [{ severity, file, job: "in-the-gap", message: stale }]),
      { severity, file, job: "on-the-hour", message: expect.stringMatching(/starts at minute 0/) },
    ]);
    expect(code).toBe(0);
  });

  it("finds everything that is wrong, in all files at once, and fails", async () => {
    const cwd = await projectOf({
      "handlers/a.ts": jobSource("refused", 'schedule: cron("*/5 * * * *"), timeout: "6m"'),
      "handlers/b.ts": jobSource("also-refused", 'timout: "1m", maxTicks: 3'),
      "handlers/c.ts": "export const job = ;\n",
      "handlers/d.ts": jobSource("same", 'schedule: cron("0 6 * * *")'),
      "handlers/e.ts": jobSource("same"),
    });
    const { code, stdout, stderr } = await check(cwd);
    expect(stderr).toBe("");
    expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(100);
    const flat = stdout.replace(/\s+/g, " ");
    expect(flat).toContain(
      'error handlers/a.ts job "refused": a timeout of 6m must be shorter than the shortest interval',
    );
    expect(flat).toContain('error handlers/b.ts job "also-refused": timout is not an option; did you mean timeout?');
    expect(flat).toContain('error handlers/b.ts job "also-refused": maxTicks is for jobs with a tick function');
    expect(flat).toContain('error handlers/c.ts line 1, column 20: Unexpected ";"');
    expect(flat).toContain('error handlers/e.ts job "same" is defined in handlers/d.ts too; names must be unique');
    expect(flat).toContain("warning same it starts at minute 0");
    expect(stdout).toMatch(/\n2 jobs, 5 errors, 1 warning\n$/);
    expect(code).toBe(1);

    const json = await check(cwd, "--json");
    const {
      findings,
      costs: _,
      ...counts
    } = JSON.parse(json.stdout) as { costs: unknown; findings: { severity: string; job: string | null }[] };
    expect(counts).toEqual({ jobs: 2, errors: 5, warnings: 1 });
    expect(findings.map(({ severity, job }) => [severity, job])).toEqual([
      ...Array(5).fill(["error", null]),
      ["warning", "same"],
    ]);
    expect(json.code).toBe(1);
  });

  it("fails where no job is defined", async () => {
    const cwd = await projectOf({ "handlers/a.ts": "export const handler = () => {};\n" });
    const { code, stdout } = await check(cwd);
    expect(stdout).toMatch(/error +handlers\/\*.*no job is defined there/);
    expect(code).toBe(1);
  });

  it("takes no argument", async () => {
    const { code, stderr } = await check(fixture("good"), "daily-report");
    expect(stderr).toMatch(/too many arguments/);
    expect(code).toBe(2);
  });
});
