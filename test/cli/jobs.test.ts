import { readdir } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { cronfence, fixture, jobSource, projectOf } from "./command.ts";

const good = fixture("good");
const jobs = (cwd: string, ...args: readonly string[]) => cronfence(cwd, ["jobs", ...args]);
const names = ({ stdout }: { stdout: string }) =>
  (JSON.parse(stdout) as { jobs: { name: string }[] }).jobs.map(({ name }) => name);

describe("cronfence jobs", () => {
  it("lists every job of every module, in TypeScript or JavaScript, under whatever name it is exported", async () => {
    const { code, stdout } = await jobs(good);
    const time = "(Sun|Mon|Tue|Wed|Thu|Fri|Sat) \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d";
    const lines = [
      "^job +schedule +is due +shape +timeout +next tick \\(UTC\\)$",
      `^daily-report +30 2 \\* \\* \\* +at 02:30, Europe/Berlin time, .*tick +5m +${time}$`,
      "^rebuild-index +when somebody starts it +run +15m$",
      `^sync-stock +12 hours +every 12 hours, counted .*run +10m +${time}$`,
    ];
    for (const line of lines) expect(stdout).toMatch(new RegExp(line, "m"));
    expect(stdout.match(/^\S/gm)).toHaveLength(4);
    expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(100);
    expect(code).toBe(0);
  });

  it("is JSON for programs", async () => {
    const { code, stdout } = await jobs(good, "--json");
    const listed = JSON.parse(stdout) as { jobs: Record<string, unknown>[] };
    expect(listed).toEqual({
      jobs: [
        {
          name: "daily-report",
          file: "handlers/daily-report.ts",
          schedule: "30 2 * * *",
          zone: "Europe/Berlin",
          words: "at 02:30, Europe/Berlin time, except what its calendar removes",
          shape: "tick",
          timeoutMs: 300_000,
          jitterMs: 600_000,
          dryRun: false,
          nextTick: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:00\.000Z$/),
        },
        expect.objectContaining({ name: "rebuild-index", schedule: null, words: null, nextTick: null }),
        expect.objectContaining({ name: "sync-stock", shape: "run", zone: "UTC", schedule: "12 hours" }),
      ],
      problems: [],
    });
    expect(code).toBe(0);
  });

  it("breaks names and expressions that are longer than their columns, and loses nothing of them", async () => {
    const name = "a-job-with-a-name-as-long-as-a-name-may-be-and-not-a-letter-more";
    const schedule = `schedule: cron("${Array.from({ length: 40 }, (_, index) => index + 5).join()} 6 * * *")`;
    const cwd = await projectOf({ "handlers/long.ts": jobSource(name, `${schedule}, timeout: "10s"`) });
    const { stdout } = await jobs(cwd);
    expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(100);
    const first = stdout
      .split("\n")
      .slice(1)
      .map((line) => line.split(" ")[0]);
    expect(first.join("")).toBe(name);
    expect(stdout).toMatch(/UTC/);
  });
});

describe("jobs are looked for", () => {
  it("in the files and folders that are named, more than one if need be, and not in tests and declarations", async () => {
    const cwd = await projectOf({
      "src/one.ts": jobSource("one"),
      // Two names for one job.
      "src/deep/two.mts": `${jobSource("two")}export default job;\n`,
      "src/deep/three.cjs": 'const { defineJob } = require("cronfence");\nexports.job = undefined;\n',
      "src/one.test.ts": jobSource("of-a-test"),
      "src/one.d.ts": "export declare const job: unknown;\n",
      "other/four.js": jobSource("four"),
      "other/node_modules/a/five.js": jobSource("of-a-package"),
      "src/notes.md": "# no code\n",
    });
    expect(names(await jobs(cwd, "--jobs", "src/one.ts", "--json"))).toEqual(["one"]);
    expect(names(await jobs(cwd, "--jobs", "src", "--jobs", "other/**/*.js", "--json"))).toEqual([
      "four",
      "two",
      "one",
    ]);
  });

  it("nowhere, with advice, where no file is", async () => {
    const { code, stdout, stderr } = await jobs(await projectOf({}));
    expect(stderr).toBe(
      "cronfence: no file matches handlers/*.{ts,mts,js,mjs}; say where jobs are defined with --jobs GLOB\n",
    );
    expect([code, stdout]).toEqual([1, ""]);
  });

  it("in modules that import what lies beside them, in whatever way, and nothing is left behind", async () => {
    const cwd = await projectOf({
      "package.json": '{ "type": "module", "dependencies": {} }',
      "node_modules/zones/package.json": '{ "name": "zones", "main": "index.js" }',
      "node_modules/zones/index.js": 'module.exports.zone = "Asia/Tokyo";\n',
      "handlers/places.ts": `
        import { readFileSync } from "node:fs";
        import { cron, defineJob } from "cronfence";
        import { zone } from "zones";
        import names from "../data/names.json";
        import { schedule } from "../lib/schedule";
        const beside = readFileSync(new URL("beside.txt", import.meta.url), "utf8").trim();
        const { late } = await import("../lib/late.ts");
        export const job = defineJob({
          name: [beside, ...names, late, schedule, import.meta.dirname === undefined ? "" : "dirname"].join("-"),
          schedule: cron("17 6 * * *", { zone }),
          timeout: "1m",
          run: () => {},
        });`,
      "handlers/beside.txt": "beside\n",
      "data/names.json": '["json"]',
      "lib/schedule.ts": 'export enum Kind { Daily = "daily" }\nexport const schedule: string = Kind.Daily;\n',
      "lib/late.ts": 'export const late = import.meta.url.endsWith("lib/late.ts") ? "late" : import.meta.url;\n',
    });
    const ended = await jobs(cwd, "--json");
    expect(ended.stderr).toBe("");
    expect(names(ended)).toEqual(["beside-json-late-daily-dirname"]);
    expect(ended.stdout).toContain('"zone": "Asia/Tokyo"');
    expect(await readdir(`${cwd}/node_modules`)).toEqual(["zones"]);
    expect((await readdir(cwd)).sort()).toEqual(["data", "handlers", "lib", "node_modules", "package.json"]);
  });
});

describe("a module that can't be loaded", () => {
  const broken: Record<string, string> = {
    "handlers/a-good.ts": jobSource("good"),
    "handlers/b-syntax.ts": 'import { cron } from "cronfence";\nexport const job = cron("* * * * *"\n',
    "handlers/c-throws.ts": 'throw new Error("no connection\\nto anything");\n',
    "handlers/d-refused.ts": jobSource("refused", "timeot: 1, ttl: false"),
    "handlers/e-missing.ts": `import "no-such-package";\n${jobSource("missing")}`,
    "handlers/f-gone.ts": `import "./no-such-file.ts";\n${jobSource("gone")}`,
    "handlers/g-export.ts": `import { nothing } from "cronfence/lambda";\n${jobSource("unexported")}export { nothing };\n`,
    "handlers/h-local.ts": `${jobSource("bad-local")}export const local = { tables: "stock" };\n`,
    "handlers/i-schedule.ts": 'import { cron } from "cronfence";\nexport const when = cron("0 0 30 2 *");\n',
    "handlers/z-good.ts": jobSource("good-too"),
  };

  it("is reported by its file in one sentence each, and hides no other", async () => {
    const cwd = await projectOf(broken);
    const { code, stdout, stderr } = await jobs(cwd);
    expect(stderr.split("\n")).toEqual([
      expect.stringMatching(
        /^cronfence: handlers\/b-syntax\.ts: line 3, column 1: Expected "\)" but found end of file$/,
      ),
      "cronfence: handlers/c-throws.ts: no connection; to anything",
      expect.stringMatching(
        /^cronfence: handlers\/d-refused\.ts: job "refused": timeot is not an option; did you mean timeout\?$/,
      ),
      expect.stringMatching(/^cronfence: handlers\/d-refused\.ts: job "refused": ttl is false, and must be a duration/),
      expect.stringMatching(
        /^cronfence: handlers\/e-missing\.ts: Cannot find package 'no-such-package' imported from .*handlers\/e-missing\.ts$/,
      ),
      expect.stringMatching(
        /^cronfence: handlers\/f-gone\.ts: line 1, column 8: Could not resolve "\.\/no-such-file\.ts"$/,
      ),
      expect.stringMatching(/^cronfence: handlers\/g-export\.ts: .*does not provide an export named 'nothing'$/),
      expect.stringMatching(/^cronfence: handlers\/h-local\.ts: its export `local` must be/),
      expect.stringMatching(/^cronfence: handlers\/i-schedule\.ts: schedule "0 0 30 2 \*" at character 5: never fires/),
      "",
    ]);
    expect(stdout).toMatch(/^good +17 6/m);
    expect(stdout).toMatch(/^good-too +17 6/m);
    expect(code).toBe(1);

    const { problems } = JSON.parse((await jobs(cwd, "--json")).stdout) as { problems: { file: string }[] };
    expect(problems).toHaveLength(9);
    expect(problems[0]).toMatchObject({ file: "handlers/b-syntax.ts", message: expect.stringContaining("Expected") });
  });

  it("shows where its error came from, in its own lines, only when asked", async () => {
    const cwd = await projectOf({
      "handlers/slow.ts": "\n\nsetTimeout(() => {\n  throw new Error('later');\n});\nawait new Promise(() => {});\n",
    });
    const plain = await jobs(cwd);
    expect(plain).toEqual({ code: 1, stdout: "", stderr: "cronfence: later\n" });
    const traced = await jobs(cwd, "--debug");
    expect(traced.stderr).toMatch(/^cronfence: later\nError: later\n +at .*handlers\/slow\.ts:4:/);
    const throwing = await projectOf({ "handlers/at-once.ts": '\nthrow new Error("at once");\n' });
    const at = /Error: at once\n +at .*handlers\/at-once\.ts:2:/;
    expect((await jobs(throwing, "--debug")).stderr).toMatch(at);
    expect((await cronfence(throwing, ["check", "--debug"])).stderr).toMatch(at);
  });

  it("is as bad as a name that is used twice", async () => {
    const cwd = await projectOf({ "handlers/a.ts": jobSource("same"), "handlers/b.mjs": jobSource("same") });
    const { code, stderr } = await jobs(cwd);
    expect(stderr).toBe(
      'cronfence: handlers/b.mjs: job "same" is defined in handlers/a.ts too; names must be unique\n',
    );
    expect(code).toBe(1);
  });
});

describe("each command", () => {
  it.each(["jobs", "next", "check", "rehearse"])("%s has help with an example", async (command) => {
    const { code, stdout, stderr } = await cronfence(good, [command, "--help"]);
    expect(stdout).toMatch(new RegExp(`^Usage: cronfence ${command} [\\s\\S]*Example:\\n  npx cronfence ${command} `));
    expect([code, stderr]).toEqual([0, ""]);
  });

  it("is listed with the meaning of exit statuses", async () => {
    const { code, stdout } = await cronfence(good, ["--help"]);
    expect(stdout).toMatch(/Exit status: 0 .* 1 .* 2 /);
    expect(code).toBe(0);
    expect((await cronfence(good, ["jbos"])).code).toBe(2);
  });

  it("ends when its reader does", async () => {
    const { execFile } = await import("node:child_process");
    const main = new URL("../../src/cli/main.ts", import.meta.url).pathname;
    const stderr = await new Promise<string>((resolve) => {
      const args = [
        process.execPath,
        "--import",
        import.meta.resolve("tsx"),
        main,
        "next",
        "sync-stock",
        "--count",
        "1000",
      ];
      const pipe = `"$@" | head -1`;
      execFile("/bin/sh", ["-c", pipe, "sh", ...args], { cwd: good }, (_, __, said) => resolve(said));
    });
    expect(stderr).not.toMatch(/EPIPE|\n\s+at /);
  });
});
