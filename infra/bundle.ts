/**
 * `npm run bundle`: each handler as a folder of ES modules for Lambda, with everything it imports, the SDK too.
 *
 * A handler loads what it uses at its start; what is imported only when used (such as the Lambda client) lies in a file
 * of its own. Logs go to standard output: pino's transports, which need files of theirs, don't work in a bundle.
 */
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { refuseBundled } from "./never-bundle.ts";

/** What is for people and tests, and would only make a function start later. */
const neverBundle: readonly string[] = ["src/cli/**", "src/testing/**", "src/local/**", "src/rehearse/**"];

/**
 * Bundles a handler's module into a folder of its own, as index.mjs with source maps; the folder is emptied first.
 * @param never globs of modules that mustn't be in it, relative to the present folder
 * @throws NeverBundleError when one is: nothing is written then
 */
export const bundleHandler = async (
  handler: string,
  folder: string,
  never: readonly string[] = neverBundle,
): Promise<void> => {
  await rm(folder, { recursive: true, force: true });
  const { metafile, outputFiles } = await build({
    entryPoints: { index: handler },
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    chunkNames: "[hash]",
    bundle: true,
    platform: "node",
    target: "node22",
    format: "esm",
    // ES modules first: they can be shaken, which nearly halves the result.
    mainFields: ["module", "main"],
    splitting: true,
    minifySyntax: true,
    minifyWhitespace: true,
    keepNames: true,
    sourcemap: true,
    // Without the sources themselves a map is a third of the size, and still gives file and line.
    sourcesContent: false,
    legalComments: "none",
    // CommonJS packages such as pino ask for Node's own modules by `require`.
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
    logLevel: "warning",
    metafile: true,
    write: false,
  });
  refuseBundled(basename(handler, ".ts"), metafile, never);
  for (const { path, contents } of outputFiles) {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, contents);
  }
};

if (process.argv[1] !== undefined && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const root = fileURLToPath(new URL("..", import.meta.url));
  for (const file of (await readdir(join(root, "handlers"))).sort()) {
    const name = basename(file, ".ts");
    await bundleHandler(join(root, "handlers", file), join(root, ".build", name));
    console.log(`.build/${name}`);
  }
}
