/** What `npm run dev` finds in a directory of jobs. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { loadJobModules } from "../../src/local/job-modules.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "jobs-"));
});
afterEach(() => rm(directory, { recursive: true }));

const write = (file: string, text: string) => writeFile(join(directory, file), text);
/** As far as it is looked at. */
const job = (name: string) => `export const job = { name: "${name}", ttlMs: 30000, work: { shape: "run" } };`;

it("loads this project's own jobs, with what they need on the local engine", async () => {
  const modules = await loadJobModules(resolve("handlers"));
  const carts = modules.find(({ job }) => job.name === "expire-carts");
  expect(carts?.file).toBe(join("handlers", "expire-carts.ts"));
  expect(carts?.local.tables.map(({ name }) => name)).toEqual(["carts", "cart-audit"]);
  expect(carts?.local.seed?.(0).carts?.length).toBeGreaterThan(0);
});

it("loads the modules that export a job, by the order of their names, and passes the others over", async () => {
  await write("b.mjs", job("second"));
  await write("a.mjs", `${job("first")} export const local = { tables: [{ name: "t", key: { hash: "id" } }] };`);
  await write("shared.mjs", "export const rate = 3;");
  await write("a.test.mts", "throw new Error('a test was loaded')");
  await write("types.d.ts", "export {}");
  await write("notes.md", "# notes");
  const modules = await loadJobModules(directory);
  expect(modules.map(({ job, local }) => [job.name, local.tables.length])).toEqual([
    ["first", 1],
    ["second", 0],
  ]);
});

it.each([
  ["throws", "throw new Error('no settings');", /bad\.mjs can't be imported: no settings/],
  [
    "exports a job that defineJob didn't make",
    "export const job = { name: 'x' };",
    /`job` isn't what defineJob returns/,
  ],
  ["exports a wrong `local`", `${job("x")} export const local = { tables: "carts" };`, /`local` must be \{ tables/],
  ["exports a job whose name is taken", job("good"), /good\.mjs: job "good" is defined in \S*bad\.mjs too/],
])("names the file and the fault of a module that %s", async (_, text, fault) => {
  await write("bad.mjs", text);
  await write("good.mjs", job("good"));
  const loading = loadJobModules(directory);
  await expect(loading).rejects.toMatchObject({ code: "JOB_MODULE", message: expect.stringMatching(fault) });
  await expect(loading).rejects.toThrow(/(bad|good)\.mjs/);
});

it("says so when there is no such directory", async () => {
  await expect(loadJobModules(join(directory, "nowhere"))).rejects.toMatchObject({ code: "JOB_MODULE" });
});
