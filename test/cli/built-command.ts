/**
 * The `cronfence` command as it is built, file by file, for tests that start it often: without a loader it starts in a third
 * of the time. Built once for each state of src/, in a folder among node_modules, where it finds its packages.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { transform } from "esbuild";

const root = fileURLToPath(new URL("../../", import.meta.url));
const cache = join(root, "node_modules/.cache/cronfence-command");

/** The path of the command's main module. */
export const builtCommand = async (): Promise<string> => {
  const { bin } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as { bin: { cronfence: string } };
  const files = await sources();
  const hash = createHash("sha256");
  for (const { file, text } of files) hash.update(`${file}\n${text}\n`);
  hash.update(await readFile(join(root, "package.json")));
  const folder = join(cache, hash.digest("hex").slice(0, 16));
  const main = join(folder, bin.cronfence);
  if (!existsSync(main)) await build(files, folder, dirname(dirname(bin.cronfence)));
  return main;
};

interface Source {
  /** From src/. */
  readonly file: string;
  readonly text: string;
}

const sources = async (): Promise<readonly Source[]> => {
  const names = await readdir(join(root, "src"), { recursive: true });
  const files = names.filter((name) => name.endsWith(".ts")).sort();
  return Promise.all(files.map(async (file) => ({ file, text: await readFile(join(root, "src", file), "utf8") })));
};

const build = async (files: readonly Source[], folder: string, out: string): Promise<void> => {
  const building = `${folder}-${process.pid}`;
  await Promise.all(
    files.map(async ({ file, text }) => {
      const { code } = await transform(text, { loader: "ts", format: "esm", target: "node20", sourcefile: file });
      const path = join(building, out, file.replace(/\.ts$/, ".js"));
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, code.replace(/((?:from|import)\s*\(?\s*"\.[^"]*)\.ts"/g, '$1.js"'));
    }),
  );
  await copyFile(join(root, "package.json"), join(building, "package.json"));
  // Another test file may have been first.
  await rename(building, folder).catch(() => rm(building, { recursive: true, force: true }));
  await removeOld(folder);
};

const removeOld = async (current: string): Promise<void> => {
  for (const name of await readdir(cache)) {
    const folder = join(cache, name);
    const { mtimeMs } = await stat(folder).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }));
    if (folder !== current && Date.now() - mtimeMs > 3_600_000) await rm(folder, { recursive: true, force: true });
  }
};
