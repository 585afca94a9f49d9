import { execFile } from "node:child_process";
import { mkdir, readFile, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { builtCommand } from "./built-command.ts";
import { cronfence, projectOf } from "./command.ts";

const own = JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8"));

const files = [
  "serverless.yml",
  "package.json",
  "tsconfig.json",
  "handlers/greet.ts",
  "test/greet.test.ts",
  ".gitignore",
];

describe("cronfence init", () => {
  it("makes a service whose test passes, and says what to do next", async () => {
    const cwd = await projectOf({});
    const { code, stdout, stderr } = await cronfence(cwd, ["init", "shop-jobs"]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toBe(
      `${files.map((file) => `made shop-jobs/${file}\n`).join("")}\nNext:\n` +
        "  cd shop-jobs && npm install && npm test\n  npx osls deploy --stage dev\n",
    );
    const folder = join(cwd, "shop-jobs");
    const read = (file: string) => readFile(join(folder, file), "utf8");
    expect(parse(await read("serverless.yml"))).toMatchObject({
      service: "shop-jobs",
      plugins: ["cronfence/serverless"],
    });
    expect(JSON.parse(await read("package.json"))).toMatchObject({
      name: "shop-jobs",
      dependencies: { cronfence: expect.stringMatching(/^\^\d/) },
      // As here: a lock file is else made of versions that nobody has tried, and of such as npm ci can't install.
      overrides: own.overrides,
    });
    expect(await ownTest(folder)).toContain("greet: ");
    const check = await cronfence(folder, ["check", "--json"]);
    expect(JSON.parse(check.stdout)).toMatchObject({ jobs: 1, errors: 0, warnings: 0 });
  });

  it("overwrites nothing, and says what it kept", async () => {
    const cwd = await projectOf({ "package.json": '{ "name": "mine" }\n', "handlers/greet.ts": "export {};\n" });
    const { code, stdout } = await cronfence(cwd, ["init", "--name", "shop"]);
    expect(code).toBe(0);
    expect(stdout).toContain("kept package.json, which was there\nkept handlers/greet.ts, which was there\n");
    // Its package.json needn't have a script for tests.
    expect(stdout).toMatch(
      /\nNext:\n {2}npm install cronfence && npm install --save-dev osls .* && npx vitest run test\/greet\.test\.ts\n {2}npx osls/,
    );
    expect(await readFile(join(cwd, "package.json"), "utf8")).toBe('{ "name": "mine" }\n');
    expect(await readFile(join(cwd, "handlers/greet.ts"), "utf8")).toBe("export {};\n");
    const again = await cronfence(cwd, ["init", "--name", "shop", "--json"]);
    expect(JSON.parse(again.stdout)).toMatchObject({ service: "shop", made: [], kept: files });
  });

  it("refuses a name that no service can have", async () => {
    const { code, stderr } = await cronfence(await projectOf({}), ["init", "--name", "a b"]);
    expect(stderr).toMatch(/the service's name is "a b", and must be a letter and/);
    expect(code).toBe(2);
  });
});

/** What its `vitest run` says, with our packages and the built command's copy of the library. */
const ownTest = async (folder: string): Promise<string> => {
  const packages = fileURLToPath(new URL("../../node_modules", import.meta.url));
  const library = dirname(dirname(dirname(dirname(await builtCommand()))));
  await mkdir(join(folder, "node_modules"));
  await symlink(library, join(folder, "node_modules/cronfence"));
  await symlink(join(packages, "vitest"), join(folder, "node_modules/vitest"));
  return new Promise((resolve, reject) => {
    const args = [join(packages, "vitest/vitest.mjs"), "run", "--reporter=verbose"];
    execFile(process.execPath, args, { cwd: folder }, (error, stdout, stderr) =>
      error === null ? resolve(stdout) : reject(new Error(`${stdout}${stderr}`)),
    );
  });
};
