/**
 * Checks the protocol's model (protocol.pml) with spin: no assertion can fail, and each condition that docs/protocol.md
 * names has a counterexample when it is left out. Its tables say what is run, and are compared with the code and the model,
 * so that none of the three drifts silently.
 */
import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const run = promisify(execFile);
const root = path.join(import.meta.dirname, "../..");
const model = path.join(import.meta.dirname, "protocol.pml");
const source = readFileSync(model, "utf8");
const document = readFileSync(path.join(root, "docs/protocol.md"), "utf8");

/** Every name that the model gives a number. */
const numbers = new Map([...source.matchAll(/^#define ([A-Z_]+) (\d+)$/gm)].map(([, name, number]) => [name, number]));
const leftOut = [...numbers.keys()].filter((name) => name?.startsWith("NO_"));

/** The rows of the table under a heading. */
const rowsOf = (heading: string): string[][] => {
  const section = document.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? "";
  return section
    .split("\n")
    .filter((line) => line.startsWith("| ") && !line.startsWith("| ---"))
    .slice(1)
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
};

const unquoted = (cell = "") => cell.replace(/^`|`$/g, "");

const guards = rowsOf("Guards").map(([name, file, condition, , needs]) => ({
  name: unquoted(name),
  file: unquoted(file),
  condition: unquoted(condition),
  needs: needs ?? "",
}));
const scenes = rowsOf("What was checked").map(([name]) => ({ name: name ?? "" }));

/** What the verifier is told by words such as "3 attempts, 1 copy, an operator, `FORGETFUL`". */
const settingsOf = (words: string, without?: string) => ({
  WITHOUT: numbers.get(without ?? "") ?? "0",
  SCENE: numbers.get(/`([A-Z_]+)`/.exec(words)?.[1] ?? "") ?? "0",
  ATTEMPTS: /(\d) attempts/.exec(words)?.[1] ?? "2",
  COPIES: /(\d) cop/.exec(words)?.[1] ?? "0",
  OPERATOR: /an operator/.test(words) ? "1" : "0",
});

describe("each condition of the protocol", () => {
  it.each(guards)("that the document calls $name stands in the code", ({ file, condition }) => {
    expect(condition).not.toBe("");
    expect(readFileSync(path.join(root, file), "utf8")).toContain(condition);
  });

  it("that the model can leave out is in the document, and none else", () => {
    expect([...new Set(guards.map(({ name }) => name))].sort()).toEqual([...leftOut].sort());
  });
});

const compiler = ["gcc", "cc", "clang"].find((name) => spawnSync(name, ["--version"]).status === 0);
const isInstalled = compiler !== undefined && spawnSync("spin", ["-V"]).status === 0;
if (!isInstalled) {
  console.warn(
    "the protocol's model isn't checked: spin or a C compiler is missing (Debian: apt-get install spin gcc)",
  );
}

describe.skipIf(!isInstalled)("the model of the protocol", () => {
  let folder = "";
  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), "cronfence-model-"));
    await run("spin", ["-a", model], { cwd: folder });
    const flags = ["-O1", "-w", "-DSAFETY", "-DNOFAIR", "-DCOLLAPSE"];
    await run(compiler as string, [...flags, "-o", "pan", "pan.c"], { cwd: folder });
  }, 120_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** How many errors an exhaustive search finds; it ends at the first. */
  const errorsOf = async (settings: Record<string, string>): Promise<number> => {
    const own = mkdtempSync(path.join(folder, "run-"));
    const { stdout } = await run("../pan", ["-m2000", "-n", "-w20"], {
      cwd: own,
      env: { ...process.env, ...settings },
    });
    expect(stdout).not.toContain("max search depth too small");
    expect(stdout).not.toContain("out of memory");
    return Number(/errors: (\d+)/.exec(stdout)?.[1]);
  };

  it.concurrent.each(scenes)(
    "breaks no promise with $name",
    async ({ name }) => {
      expect(await errorsOf(settingsOf(name))).toBe(0);
    },
    240_000,
  );

  it.concurrent.each(guards.filter(({ needs }) => !needs.startsWith("none")))(
    "breaks one without $name (needs $needs)",
    async ({ name, needs }) => {
      expect(await errorsOf(settingsOf(needs, name))).toBe(1);
    },
    240_000,
  );
});
