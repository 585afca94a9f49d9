/** `npm start` as its user runs it: a process, its output and its status. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { createTable, dumpTable, startEngine } from "cronfence/testing";
import { afterEach, describe, expect, it } from "vitest";
import { isGone, until } from "../testing/processes.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started.splice(0)) child.kill("SIGKILL");
});

const startDrill = (options: { env?: Record<string, string>; node?: readonly string[] } = {}) => {
  const child = spawn(process.execPath, [...(options.node ?? []), "--import", "tsx", "test/drills/main-job.ts"], {
    cwd: root,
    // As a user has it: nothing that quiets the SDK.
    env: { ...process.env, AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: undefined, ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  started.push(child);
  let output = "";
  let errors = "";
  child.stdout.setEncoding("utf8").on("data", (text) => (output += text));
  child.stderr.setEncoding("utf8").on("data", (text) => (errors += text));
  const ended = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  /** Resolves when it has said so. */
  const said = (text: string) =>
    new Promise<void>((resolve, reject) => {
      const look = () => {
        if (output.includes(text)) resolve();
      };
      child.stdout.on("data", look);
      child.once("close", () => reject(new Error(`ended without saying "${text}": ${output}${errors}`)));
      look();
    });
  return { child, ended, said, output: () => output, errors: () => errors };
};

/** The checks table, as check and figures by row. */
const checksIn = (output: string): Map<string, string> => {
  const checks = new Map<string, string>();
  let name = "";
  let figures = "";
  for (const line of output.slice(output.indexOf("\nChecks\n")).split("\n")) {
    const [, mark, check, figure] = line.split("│").map((cell) => cell.trim());
    if (check !== undefined && figure !== undefined) {
      name = [name, mark, check].filter(Boolean).join(" ");
      figures = [figures, figure].filter(Boolean).join(" ");
    } else {
      if (name !== "") checks.set(name, figures);
      name = figures = "";
    }
  }
  return checks;
};

describe("npm start", () => {
  it("ends with status 0, says what happens, and shows each check with its figures", async () => {
    const { ended, output, errors } = startDrill();
    expect([await ended, errors()]).toEqual([[0, null], ""]);
    const text = output();

    expect(text).toMatch(/10,000 carts are written; processes A, B and C are up/);
    expect(text).toMatch(/A gets SIGSTOP after 9 commits \(441 carts\)/);
    expect(text).toMatch(/A gets SIGCONT, sends its commit under fence \d+, and is refused: lease_lost/);
    expect(text).toMatch(/C gets SIGKILL after 13 commits \(637 carts\)/);
    expect(text).toMatch(/it covers 3 ticks/);

    const runs = text.slice(text.indexOf("Runs on record"), text.indexOf("\nChecks\n"));
    const rows = [...runs.matchAll(/│ (\d+) │ (\w+) +│ +([\d,]+) │ +([\d,]+) │ ([\w-]{8}) │ ([ABC]) /g)];
    expect(rows.map(([, , outcome, items, commits]) => [outcome, items, commits])).toEqual([
      ["succeeded", "2,000", "41"],
      ["lease_lost", "441", "9"],
      ["succeeded", "1,559", "32"],
      ["crashed", "637", "13"],
      ["succeeded", "1,363", "28"],
      ["succeeded", "4,000", "82"],
    ]);
    const fences = rows.map(([, fence]) => Number(fence));
    expect(fences).toEqual(fences.map((_, index) => (fences[0] as number) + index));
    expect(new Set(rows.map(([, , , , , owner]) => owner)).size).toBe(6);

    const told = "(held|duplicate) with 0 commits";
    const worked = "succeeded with 41 commits";
    const instant = "\\d\\d:\\d\\d:\\d\\d\\.\\d{3}";
    const succession = new RegExp(
      `^\\d+ (try|tries) held; lease until ${instant} \\+ 200 ms skew, granted at ${instant}$`,
    );
    const expected: [string, RegExp][] = [
      [
        "Double trigger: one process works, the other is told so",
        new RegExp(`^(${worked}, ${told}|${told}, ${worked})$`),
      ],
      ["Double trigger: every cart due was expired", /^(0 \+ 2,000|2,000 \+ 0) = 2,000 expired, 2,000 due$/],
      ["Stopped holder: a successor is held until the lease is over, then granted", succession],
      ["Stopped holder: continued, it is refused", /^it reports lease_lost, on record as lease_lost$/],
      [
        "Stopped holder: its late commit changes nothing",
        /^9 commits before the stop, 9 on record; 441 carts, 441 audit rows; seq 3 of fence (\d+) before, 3 of \1 after$/,
      ],
      ["Stopped holder: its successor does the rest", /^441 \+ 1,559 = 2,000 expired, 2,000 due$/],
      ["Killed process: a successor is held until the lease is over, then granted", succession],
      [
        "Killed process: on record as crashed, with what it committed",
        /^crashed; 13 commits before, 13 on record; 637 carts before, 637 on record$/,
      ],
      ["Killed process: the next run starts exactly after its last commit", /^left at (\S+-00636), resumed at \1$/],
      ["Killed process: its successor does the rest", /^637 \+ 1,363 = 2,000 expired, 2,000 due$/],
      ["Missed ticks: the next run covers them all", /^3 ticks due \((\S+), \S+, (\S+)\), 3 on record \(\1 to \2\)$/],
      ["Missed ticks: the next run does everything due", /^4,000 expired, 4,000 due$/],
      ["Exactly once: no cart is left", /^0 of 10,000 still open$/],
      [
        "Exactly once: an audit row for every cart, and each cart expired one time",
        /^10,000 rows, 10,000 carts; times from 1 to 1$/,
      ],
      [
        "Exactly once: the runs' records add up to the carts",
        /^2,000 \+ 441 \+ 1,559 \+ 637 \+ 1,363 \+ 4,000 = 10,000 on record, 10,000 carts$/,
      ],
      ["Exactly once: every run wrote as many audit rows as its record says", /^6 runs, 0 of which differ$/],
    ];
    const checks = checksIn(text);
    for (const [name, figures] of expected) expect(checks.get(`✓ ${name}`), name).toMatch(figures);
    expect(text.trimEnd().split("\n").at(-1)).toBe(`All ${expected.length} checks hold.`);
  }, 120_000);

  it("refuses a server that has tables of its names, and leaves them alone", async () => {
    const engine = await startEngine({}, {});
    await createTable(engine.endpoint, { name: "carts", key: { hash: "id" } });
    const { ended, errors } = startDrill({ env: { DYNAMODB_ENDPOINT: engine.endpoint } });
    expect(await ended).toEqual([1, null]);
    expect(errors()).toBe(`The drill broke off: the drill makes its own tables, and ${engine.endpoint} has carts\n`);
    expect(await dumpTable(engine.endpoint, "carts")).toEqual([]);
    await engine.stop();
  });

  it("ends its processes and the engine on Ctrl-C, even a process that is stopped", async () => {
    const { child, ended, said, output } = startDrill();
    await said("A gets SIGSTOP");
    const pids = /are up \(([\d, ]+)\)/.exec(output())?.[1]?.split(", ").map(Number) ?? [];
    const endpoint = /is up at (http:\S+)/.exec(output())?.[1] ?? "";
    expect(pids.map(isGone)).toEqual([false, false, false]);
    child.kill("SIGINT");
    expect(await ended).toEqual([130, null]);
    for (const pid of pids) await until(`process ${pid} gone`, () => isGone(pid));
    await expect(fetch(endpoint)).rejects.toThrow();
  }, 90_000);

  it("ends the processes with it when it is killed itself", async () => {
    const { child, ended, said, output } = startDrill();
    await said("A gets SIGSTOP");
    const pids = /are up \(([\d, ]+)\)/.exec(output())?.[1]?.split(", ").map(Number) ?? [];
    child.kill("SIGKILL");
    expect(await ended).toEqual([null, "SIGKILL"]);
    for (const pid of pids) await until(`process ${pid} gone`, () => isGone(pid));
  }, 90_000);

  it.each([
    [
      "there is no engine for the platform",
      { node: ["--import", "data:text/javascript,Object.defineProperty(process, 'arch', { value: 'riscv64' })"] },
      /no embedded engine is published for \S+-riscv64 .*set DYNAMODB_ENDPOINT/,
    ],
    [
      "nothing answers at the endpoint it is given",
      { env: { DYNAMODB_ENDPOINT: "http://127.0.0.1:9" } },
      /nothing answers at DYNAMODB_ENDPOINT=http:\/\/127\.0\.0\.1:9/,
    ],
  ])("says what to do, without a stack, when %s", async (_, options, advice) => {
    const { ended, output, errors } = startDrill(options);
    expect(await ended).toEqual([1, null]);
    expect(output()).toBe("");
    expect(errors()).toMatch(advice);
    expect(errors().trim().split("\n")).toHaveLength(1);
  });
});
