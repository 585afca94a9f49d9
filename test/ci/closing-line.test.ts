/** The last line of .ci/run, from results that vitest itself wrote for small projects. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
let folder = "";

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "cronfence-ci-"));
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const node = (...args: string[]) => {
  const { status, stdout } = spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8" });
  return { status, lines: stdout.trim().split("\n") };
};

/** Runs a test file, and gives the last line and the status that follow from it. */
const closingOf = (tests: string | undefined) => {
  const file = join(folder, "only.test.js");
  const result = join(folder, "result.json");
  rmSync(file, { force: true });
  if (tests !== undefined) writeFileSync(file, `import { expect, test } from "vitest";\n${tests}`);
  node(
    join(root, "node_modules/vitest/vitest.mjs"),
    "run",
    "--root",
    folder,
    "--reporter=json",
    `--outputFile=${result}`,
  );
  const { status, lines } = node(join(root, ".ci/closing-line.mjs"), result);
  return { status, last: lines.at(-1), lines };
};

it("counts what passed and what was skipped", () => {
  const closing = closingOf(`test("a", () => {}); test("b", () => {}); test.skip("c", () => {}); test.todo("d");`);
  expect(closing).toMatchObject({ status: 0, last: "2 passed, 0 failed, 2 skipped" });
});

it("fails when a test failed", () => {
  const closing = closingOf(`test("a", () => {}); test("b", () => expect(1).toBe(2));`);
  expect(closing).toMatchObject({ status: 1, last: "1 passed, 1 failed" });
});

it("counts a file that can't be loaded as failed", () => {
  const closing = closingOf(`import "./nowhere.js"; test("a", () => {});`);
  expect(closing).toMatchObject({ status: 1, last: "0 passed, 1 failed" });
});

it("fails when no test ran", () => {
  expect(closingOf(undefined)).toMatchObject({ status: 1, last: "0 passed, 0 failed" });
  expect(closingOf(`test.skip("a", () => {});`)).toMatchObject({ status: 1, last: "0 passed, 0 failed, 1 skipped" });
});

it("fails when vitest left no result", () => {
  const { status, lines } = node(join(root, ".ci/closing-line.mjs"), join(folder, "nothing.json"));
  expect({ status, last: lines.at(-1) }).toEqual({ status: 1, last: "0 passed, 0 failed" });
});

it("adds up the results of several runs, and fails when one of them failed", () => {
  const write = (name: string, passed: number, failed: number) => {
    const file = join(folder, name);
    const result = { success: failed === 0, testResults: [], numPassedTests: passed, numFailedTests: failed };
    writeFileSync(file, JSON.stringify(result));
    return file;
  };
  const closing = (...files: string[]) => {
    const { status, lines } = node(join(root, ".ci/closing-line.mjs"), ...files);
    return { status, last: lines.at(-1) };
  };
  const good = write("good.json", 3, 0);
  expect(closing(good, write("other.json", 4, 0))).toEqual({ status: 0, last: "7 passed, 0 failed" });
  expect(closing(good, write("bad.json", 1, 2))).toEqual({ status: 1, last: "4 passed, 2 failed" });
  expect(closing(good, write("empty.json", 0, 0))).toEqual({ status: 1, last: "3 passed, 0 failed" });
});
