/** Functions' zips: each job's bundle and nothing else, the same bytes for the same modules. */
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import type { Plan, PlannedFunction } from "./plan.ts";
import { zip } from "./zip.ts";

/** A function's zip, or why it couldn't be made. */
export type Made =
  | { readonly key: string; readonly artifact: string }
  | { readonly key: string; readonly problem: string };

/**
 * Bundles each function into a folder of its own below .build, and zips it into the CLI's folder .serverless.
 * @param root the folder of serverless.yml
 */
export const makeArtifacts = async (
  root: string,
  functions: readonly PlannedFunction[],
  options: Plan["options"],
): Promise<readonly Made[]> => {
  const { bundleHandler } = await import("../bundle.ts");
  const { external, neverBundle } = options;
  const made: Made[] = [];
  for (const { key, module, cloudWatch } of functions) {
    try {
      const folder = join(root, ".build", key);
      await bundleHandler(await fileOf(module), folder, { job: key, external, neverBundle, cloudWatch });
      const artifact = join(root, ".serverless", `${key}.zip`);
      await mkdir(dirname(artifact), { recursive: true });
      await writeFile(artifact, zip(await filesIn(folder)));
      made.push({ key, artifact });
    } catch (error) {
      made.push({ key, problem: (error as Error).message });
    }
  }
  return made;
};

const fileOf = async (module: PlannedFunction["module"]): Promise<string> => {
  if ("file" in module) return module.file;
  await mkdir(dirname(module.made), { recursive: true });
  await writeFile(module.made, module.source);
  return module.made;
};

const filesIn = async (folder: string): Promise<Record<string, Uint8Array>> => {
  const names = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = names
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll("\\", "/"));
  return Object.fromEntries(await Promise.all(files.map(async (file) => [file, await readFile(join(folder, file))])));
};
