/** On a terminal: questions, colour, and progress that leaves nothing behind. Needs `script` of util-linux, which Linux has. */
import { spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { budgetOn, useEngine } from "../fixture.ts";
import { builtCommand } from "./built-command.ts";
import { projectOf } from "./command.ts";
import { environment, hourlySource, hourMs, isoAt, type Operated, operated } from "./operated.ts";

const engine = useEngine("results");

let main: string;
let job: Operated;
let cwd: string;
beforeAll(async () => {
  main = await builtCommand();
  job = await operated(engine);
  cwd = await projectOf({ "handlers/job.ts": hourlySource(job.name) });
});

interface Session {
  readonly code: number;
  /** All that the terminal got, in the order in which it came. */
  readonly shown: string;
}

/** Runs the command in a terminal of its own, and types `answer` when it has asked. */
const onTerminal = (
  args: readonly string[],
  answer: string | (() => Promise<string>) = "",
  more: Record<string, string> = {},
): Promise<Session> =>
  new Promise((resolve, reject) => {
    const line = [process.execPath, main, ...args].map((word) => `'${word}'`).join(" ");
    const child = spawn("script", ["-qec", line, "/dev/null"], {
      cwd,
      env: { PATH: process.env.PATH, HOME: tmpdir(), TERM: "xterm", ...environment(engine.endpoint), ...more },
      stdio: ["pipe", "pipe", "inherit"],
    });
    let shown = "";
    let isAsked = false;
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      shown += text;
      if (isAsked || !/\[y\/N\] |to go on: /.test(shown)) return;
      isAsked = true;
      if (typeof answer === "string") child.stdin.write(answer);
      else answer().then((said) => child.stdin.write(said), reject);
    });
    child.once("close", (code) => resolve({ code: code ?? -1, shown: shown.replaceAll("\r\n", "\n") }));
  });
const paused = async () => (await engine.store.read(job.name, budgetOn(systemClock)))?.paused;
const esc = "\u001b";

describe.skipIf(process.platform !== "linux")("On a terminal", () => {
  it("an act says what it will do and asks, and anything but yes changes nothing", async () => {
    const { code, shown } = await onTerminal(["pause", job.name, "--why", "test"], "no\r");
    expect(shown).toContain(`no new run of ${job.name} starts until somebody resumes it.\n`);
    expect(shown).toContain("Go on? [y/N] ");
    expect(shown).toContain("cronfence: nothing was changed");
    expect(code).toBe(1);
    expect(await paused()).toBeUndefined();
  });

  it("Ctrl-C at the question changes nothing, and ends with status 130", async () => {
    const { code, shown } = await onTerminal(["pause", job.name, "--why", "test"], "\u0003");
    expect(shown).toContain("Go on? [y/N] ");
    expect(code).toBe(130);
    expect(await paused()).toBeUndefined();
  });

  it("yes does it; what can't be taken back wants a word", async () => {
    const { code, shown } = await onTerminal(["pause", job.name, "--why", "test"], "y\r");
    expect(shown).toContain(`${job.name} is paused until somebody resumes it`);
    expect(code).toBe(0);
    expect(await paused()).toMatchObject({ why: "test" });
    const restored = await onTerminal(["table", "restored", "--why", "a backup"], "yes\r");
    expect(restored.shown).toContain("Type control-table to go on: ");
    expect(restored.shown).toContain("nothing was changed");
  });

  it("an act is for what was seen: it is refused where another run was granted the lease while it asked", async () => {
    const { name } = await operated(engine);
    const meanwhile = async () => {
      const now = Date.now();
      const run = { id: "a-new-run", startedAt: now, trigger: "manual" as const };
      await engine.store.acquire(
        { job: name, owner: "new", run, now, ttlMs: 60_000, skewMs: 0 },
        budgetOn(systemClock),
      );
      return "y\r";
    };
    const { code, shown } = await onTerminal(["pause", name, "--cancel", "--why", "test"], meanwhile);
    expect(shown).toMatch(/cronfence: job "\S+": pause refused, and nothing was changed: /);
    expect(code).toBe(1);
    expect(await engine.store.read(name, budgetOn(systemClock))).toMatchObject({ owner: "new" });
    expect((await engine.store.read(name, budgetOn(systemClock)))?.paused).toBeUndefined();
  });

  it("outcomes have colours, unless NO_COLOR is set", async () => {
    const runs = ["runs", job.name];
    expect((await onTerminal(runs)).shown).toContain(`${esc}[32msucceeded${esc}[39m`);
    expect((await onTerminal(runs, "", { NO_COLOR: "1" })).shown).not.toContain(esc);
  });

  it("progress is shown on a line of its own, and nothing is left of it", async () => {
    const args = ["backfill", job.name, "--from", isoAt(job.first - 2 * hourMs), "--to", isoAt(job.first)];
    const backfill = [...args, "--here", "--why", "test", "--yes"];
    expect(await onTerminal(backfill)).toMatchObject({
      code: 1,
      shown: expect.stringContaining("0 of 2 ticks are known to be done: no run could start (paused); the same"),
    });
    await onTerminal(["resume", job.name, "--why", "test", "--yes"]);
    const { code, shown } = await onTerminal(backfill);
    const at = shown.indexOf("0 of 2 ticks");
    expect(shown.indexOf(`\r${esc}[K`, at)).toBeGreaterThan(at);
    expect(shown.trimEnd().endsWith(`2 ticks of ${job.name} were done after all, in 1 run`)).toBe(true);
    expect(code).toBe(0);
  });
});
