/** Bundles of small projects, as esbuild makes and describes them. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { build } from "esbuild";
import { afterAll, expect, it } from "vitest";
import { NeverBundleError, refuseBundled } from "../../infra/never-bundle.ts";

const folders: string[] = [];
afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

const metafileOf = async (files: Readonly<Record<string, string>>, entry = "handlers/purge.ts", splitting = false) => {
  const folder = await mkdtemp(join(tmpdir(), "cronfence-bundle-"));
  folders.push(folder);
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), text);
  }
  const { metafile } = await build({
    absWorkingDir: folder,
    entryPoints: [entry],
    outdir: "out",
    bundle: true,
    splitting,
    metafile: true,
    write: false,
    platform: "node",
    format: "esm",
    logLevel: "silent",
  });
  return metafile;
};
const refusal = (
  metafile: Awaited<ReturnType<typeof metafileOf>>,
  ...globs: string[]
): NeverBundleError | undefined => {
  try {
    refuseBundled("purge", metafile, globs);
    return undefined;
  } catch (error) {
    return error as NeverBundleError;
  }
};

const project = {
  "handlers/purge.ts": 'import { db } from "../src/db.ts"; export const handler = () => db();',
  "src/db.ts": 'import { log } from "./log.ts"; import "./setup.ts"; export const db = () => log("db");',
  "src/log.ts": "export const log = (text: string) => console.log(text);",
  "src/setup.ts": 'import "./migrate.ts";',
  "src/migrate.ts": 'console.log("migrating"); export interface Migration { readonly id: string }',
};

it("a bundle with such a module is refused, with the job, the module and the way that leads to it", async () => {
  const error = refusal(await metafileOf(project), "src/migrate.ts");
  expect(error).toBeInstanceOf(NeverBundleError);
  expect(error?.message).toBe(
    'job "purge": its bundle contains src/migrate.ts (neverBundle: "src/migrate.ts"), imported by ' +
      "handlers/purge.ts → src/db.ts → src/setup.ts → src/migrate.ts",
  );
  expect(error).toMatchObject({ code: "NEVER_BUNDLE", job: "purge" });
});

it.each([["src/mig*.ts"], ["./src/migrate.ts"], ["**/migrate.{ts,js}"], ["src/**/migrate.ts"]])(
  "%s names it too",
  async (glob) => {
    expect(refusal(await metafileOf(project), glob)?.modules.map(({ module }) => module)).toEqual(["src/migrate.ts"]);
  },
);

it("the shortest way is named where there are several, also through a cycle", async () => {
  const metafile = await metafileOf({
    ...project,
    "src/log.ts": 'import "./migrate.ts"; import "./db.ts"; export const log = (text: string) => console.log(text);',
  });
  expect(refusal(metafile, "src/migrate.ts")?.modules[0]?.chain).toEqual([
    "handlers/purge.ts",
    "src/db.ts",
    "src/log.ts",
    "src/migrate.ts",
  ]);
});

it("every such module is named at once", async () => {
  const error = refusal(await metafileOf(project), "src/migrate.ts", "src/l*.ts");
  expect(error?.modules.map(({ module, rule }) => [module, rule])).toEqual([
    ["src/log.ts", "src/l*.ts"],
    ["src/migrate.ts", "src/migrate.ts"],
  ]);
});

it("one that is loaded only when used is in the bundle as well", async () => {
  const files = { ...project, "src/setup.ts": 'export const later = () => import("./migrate.ts"); later();' };
  for (const splitting of [false, true]) {
    const error = refusal(await metafileOf(files, "handlers/purge.ts", splitting), "src/migrate.ts");
    expect(error?.modules[0]?.chain.at(-2)).toBe("src/setup.ts");
  }
});

it.each([
  ["that isn't imported", { "src/setup.ts": "export {};" }],
  [
    "that is imported for its types alone",
    { "src/setup.ts": 'import type { Migration } from "./migrate.ts"; export type M = Migration;' },
  ],
  ["that has nothing but types", { "src/migrate.ts": "export interface Migration { readonly id: string }" }],
  [
    "of which nothing is used",
    {
      "src/setup.ts": 'import { migrate } from "./migrate.ts"; export const unused = () => migrate();',
      "src/migrate.ts": 'export const migrate = () => console.log("migrating");',
    },
  ],
])("a bundle is fine with a module %s", async (_, files) => {
  expect(refusal(await metafileOf({ ...project, ...files }), "src/migrate.ts")).toBeUndefined();
});

it("a module that esbuild lists though nothing is left of it isn't in the bundle", async () => {
  const metafile = await metafileOf(project);
  for (const { inputs } of Object.values(metafile.outputs)) inputs["src/migrate.ts"] = { bytesInOutput: 0 };
  expect(refusal(metafile, "src/migrate.ts")).toBeUndefined();
});

it("without rules everything may be there", async () => {
  expect(refusal(await metafileOf(project))).toBeUndefined();
});
