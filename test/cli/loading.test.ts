import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { expect, it } from "vitest";

it("The command starts without what only some commands need: the AWS SDK, logging, bundling, tables", async () => {
  const entry = "src/cli/main.ts";
  const { metafile } = await build({
    absWorkingDir: fileURLToPath(new URL("../../", import.meta.url)),
    entryPoints: [entry],
    bundle: true,
    splitting: true,
    packages: "external",
    platform: "node",
    format: "esm",
    metafile: true,
    write: false,
    outdir: "unwritten",
  });
  const files = [entry];
  const packages = new Set<string>();
  for (const file of files) {
    for (const { path, kind, external } of metafile.inputs[file]?.imports ?? []) {
      if (kind === "dynamic-import" || path.startsWith("node:")) continue;
      if (external) packages.add(path);
      else if (!files.includes(path)) files.push(path);
    }
  }
  expect(files.length).toBeGreaterThan(30);
  expect([...packages].sort()).toEqual(["commander", "croner", "fastest-levenshtein", "ms"]);
});
