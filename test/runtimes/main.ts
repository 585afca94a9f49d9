/**
 * Runs the tests on each Node.js that cronfence supports, with middy 6, and those that use middy with middy 7 too.
 *
 *   npm run test:runtimes                          everything, on all of them: some ten minutes for each
 *   npm run test:runtimes -- test/control          only these files
 *   npm run test:runtimes -- --node 24 --results d only this one; vitest's own results go to folder d
 *
 * A Node.js that isn't at hand is fetched from npm into a folder outside the project. Prints one line for each runtime;
 * the status is 0 only if none failed. One that can't be had is skipped with a line that says so, and counts as failed if
 * `--node` asked for it, unless with `--optional`.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { globSync } from "tinyglobby";
import { findNode } from "./node-binary.ts";

const root = path.join(import.meta.dirname, "../..");
const supported = ["20", "22", "24"];

const { values, positionals: filters } = parseArgs({
  options: { node: { type: "string", multiple: true }, results: { type: "string" }, optional: { type: "boolean" } },
  allowPositionals: true,
});
const unknown = values.node?.filter((version) => !supported.includes(version)) ?? [];
if (unknown.length > 0) {
  console.error(`--node is ${unknown.join(", ")}, and must be one of ${supported.join(", ")}`);
  process.exit(2);
}

interface Result {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly success: boolean;
  readonly testResults: readonly { readonly name: string; readonly status: string; readonly message: string }[];
}

/** Whether the tests pass. `files` empty: all of them. */
const passes = (node: string, version: string, middy: "6" | "7", files: readonly string[], folder: string): boolean => {
  const file = path.join(folder, `node-${version}-middy-${middy}.json`);
  rmSync(file, { force: true });
  const { stdout, stderr } = spawnSync(
    node,
    ["node_modules/vitest/vitest.mjs", "run", "--reporter=json", `--outputFile=${file}`, ...files],
    {
      cwd: root,
      encoding: "utf8",
      maxBuffer: 2 ** 30,
      // What the tests start as "node" is this one too.
      env: {
        ...process.env,
        PATH: `${path.dirname(node)}${path.delimiter}${process.env.PATH}`,
        CRONFENCE_MIDDY: middy,
      },
    },
  );
  const title = `node ${version}, middy ${middy}`;
  let result: Result;
  try {
    result = JSON.parse(readFileSync(file, "utf8"));
  } catch {
    console.log(`${title}: vitest left no result\n${stdout}${stderr}`);
    return false;
  }
  const broken = result.testResults.filter(({ status }) => status === "failed");
  console.log(`${title}: ${result.numPassedTests} passed, ${result.numFailedTests} failed`);
  for (const { name, message } of broken) console.log(`  ${path.relative(root, name)} ${message.slice(0, 2_000)}`);
  return result.success;
};

/** The test files that use middy, of those that the filters name. */
const middyFiles = (): readonly string[] =>
  globSync("test/**/*.test.ts", { cwd: root }).filter(
    (file) =>
      readFileSync(path.join(root, file), "utf8").includes('"@middy/core"') &&
      (filters.length === 0 || filters.some((filter) => file.includes(filter))),
  );

const folder = values.results === undefined ? mkdtempSync(path.join(tmpdir(), "cronfence-runtimes-")) : values.results;
mkdirSync(folder, { recursive: true });
let failed = false;
for (const version of values.node ?? supported) {
  const found = findNode(version);
  if (found.node === undefined) {
    console.log(`node ${version}: skipped, ${found.why}`);
    failed ||= values.node !== undefined && !values.optional;
    continue;
  }
  failed = !passes(found.node, version, "6", filters, folder) || failed;
  const files = middyFiles();
  // middy 7 is for Node.js 22 and later.
  if (files.length > 0 && version !== "20") failed = !passes(found.node, version, "7", files, folder) || failed;
}
if (values.results === undefined) rmSync(folder, { recursive: true, force: true });
process.exitCode = failed ? 1 : 0;
