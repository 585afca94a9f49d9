/**
 * A handler as a folder of ES modules for Lambda, with everything it imports, the SDK too.
 *
 * A handler loads what it uses at its start; what it imports only when used lies in a file of its own, or is left to Lambda's
 * runtime (left-to-runtime.ts). Logs go to standard output: pino's transports, which need files of theirs, don't work in a
 * bundle, and aren't in it.
 */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { build } from "esbuild";
import { leftToRuntime, ownSource } from "./left-to-runtime.ts";
import { lighterModules } from "./lighter-modules.ts";
import { refuseBundled } from "./never-bundle.ts";

export interface BundleOptions {
  /** What messages call it. @default the file's name, without its ending */
  readonly job?: string;
  /** Globs of further modules that mustn't be in it, beside the command, the test kit and the engine; relative to the present folder. */
  readonly neverBundle?: readonly string[];
  /** Packages that are left out, since the function finds them elsewhere: in a layer, or in Lambda's runtime. @default none */
  readonly external?: readonly string[];
  /** The job sends its metrics by requests (`metrics: "cloudwatch"`), so that the client for it is bundled. @default false */
  readonly cloudWatch?: boolean;
}

/**
 * Bundles a handler's module into a folder of its own, as index.mjs with source maps; the folder is emptied first. The same
 * modules give the same files, byte for byte.
 * @throws NeverBundleError when something is in it that mustn't be: nothing is written then
 */
export const bundleHandler = async (handler: string, folder: string, options: BundleOptions = {}): Promise<void> => {
  await rm(folder, { recursive: true, force: true });
  const { metafile, outputFiles } = await build({
    entryPoints: { index: handler },
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    chunkNames: "[hash]",
    bundle: true,
    external: [...(options.external ?? [])],
    platform: "node",
    target: "node22",
    format: "esm",
    // ES modules first: they can be shaken, which nearly halves the result.
    mainFields: ["module", "main"],
    splitting: true,
    // Names stay as they are, for traces. `keepNames` would too, but by a call for each function at every start.
    minifySyntax: true,
    minifyWhitespace: true,
    sourcemap: true,
    // Without the sources themselves a map is a third of the size, and still gives file and line.
    sourcesContent: false,
    legalComments: "none",
    // CommonJS packages such as pino ask for Node's own modules by `require`.
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
    plugins: [leftToRuntime(options.cloudWatch !== true), lighterModules],
    logLevel: "warning",
    metafile: true,
    write: false,
  });
  refuseBundled(options.job ?? basename(handler, ".ts"), metafile, [...forPeople(), ...(options.neverBundle ?? [])]);
  for (const { path, contents } of outputFiles) {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, contents);
  }
};

/** What is for people and tests, and would only make a function start later: as esbuild names it. */
const forPeople = (): string[] =>
  ["cli", "testing", "local", "rehearse"].map((part) =>
    join(relative(process.cwd(), ownSource), part, "**").replaceAll("\\", "/"),
  );
