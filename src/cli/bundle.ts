/**
 * Makes a module importable, whatever it is written in: esbuild bundles it and the files that it imports, and leaves
 * packages to the project. The bundle lies in a temporary folder of the project's node_modules, so that they are found.
 */
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { BuildFailure, Plugin } from "esbuild";
import { ownModule } from "./own-module.ts";

/** Temporary folders, each beside the packages of the modules that are bundled into it. */
export interface Scratch {
  /**
   * Bundles the module at `path`; returns the bundle's path.
   * @throws Error with one line for each thing that esbuild can't read, with its place.
   */
  bundle(path: string): Promise<string>;
  /** In a message about a bundle, names the module that it was made from. */
  named(message: string): string;
  /** Takes it all away. What has been imported stays loaded. */
  remove(): Promise<void>;
}

export const openScratch = (): Scratch => {
  const folders = new Map<string, Promise<string>>();
  const sources = new Map<string, string>();
  const folderIn = (place: string): Promise<string> => {
    const folder = folders.get(place) ?? mkdtemp(join(place, ".cronfence-"));
    folders.set(place, folder);
    return folder;
  };
  return {
    bundle: async (path) => {
      const outfile = join(await folderIn(await placeFor(path)), `${sources.size}.mjs`);
      sources.set(outfile, path);
      await build(path, outfile);
      return outfile;
    },
    named: (message) => {
      let named = message;
      for (const [outfile, path] of sources) {
        named = named.replaceAll(pathToFileURL(outfile).href, path).replaceAll(outfile, path);
      }
      return named;
    },
    remove: async () => {
      for (const folder of folders.values()) await rm(await folder, { recursive: true, force: true });
    },
  };
};

/** The nearest node_modules, or, where there is none, the module's own folder. */
const placeFor = async (path: string): Promise<string> => {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const modules = join(folder, "node_modules");
    if (
      await stat(modules).then(
        (found) => found.isDirectory(),
        () => false,
      )
    )
      return modules;
    if (folder === dirname(folder)) return dirname(path);
  }
};

const build = async (path: string, outfile: string): Promise<void> => {
  const esbuild = await import("esbuild");
  try {
    await esbuild.build({
      entryPoints: [path],
      outfile,
      bundle: true,
      packages: "external",
      platform: "node",
      format: "esm",
      target: `node${process.versions.node}`,
      sourcemap: "inline",
      sourcesContent: false,
      logLevel: "silent",
      // CommonJS packages of the module's are required from where it lies.
      banner: {
        js: `import { createRequire as requireFrom } from "node:module"; const require = requireFrom(${quoted(path)});`,
      },
      define: Object.fromEntries(Object.entries(places).map(([place, name]) => [`import.meta.${place}`, name])),
      plugins: [ownCopy, ownPlaces],
    });
  } catch (error) {
    const { errors } = error as BuildFailure;
    if (errors === undefined) throw error;
    const lines = errors.map(({ text, location }) =>
      location === null ? text : `line ${location.line}, column ${location.column + 1}: ${text}`,
    );
    throw new Error(lines.slice(0, mostLines).join("; "), { cause: error });
  }
};

const mostLines = 3;
const quoted = (path: string): string => JSON.stringify(pathToFileURL(path).href);

/** "cronfence" is the copy that this command belongs to. */
const ownCopy: Plugin = {
  name: "own-copy",
  setup: ({ onResolve }) => {
    onResolve({ filter: /^cronfence(\/|$)/ }, ({ path }) => {
      const own = ownModule(path);
      return own === undefined ? undefined : { path: own, external: true };
    });
  },
};

/** What a module may ask about its own place, and the names by which the bundle answers. */
const places = { url: "__moduleUrl", filename: "__moduleFile", dirname: "__moduleFolder" } as const;

/** A module that reads a file beside it must find it there, not beside the bundle. */
const ownPlaces: Plugin = {
  name: "own-places",
  setup: ({ onLoad }) => {
    onLoad({ filter: /\.[cm]?[jt]s$/ }, async ({ path }) => {
      const source = await readFile(path, "utf8");
      if (!source.includes("import.meta")) return undefined;
      const own: Record<keyof typeof places, string> = {
        url: pathToFileURL(path).href,
        filename: path,
        dirname: dirname(path),
      };
      const names = Object.entries(places).map(
        ([place, name]) => `${name} = ${JSON.stringify(own[place as keyof typeof places])}`,
      );
      return {
        // On the first line, so that all others keep their numbers.
        contents: source.replace(/^(#!.*)?/, `const ${names.join(", ")};`),
        loader: path.endsWith("ts") ? "ts" : "js",
        resolveDir: dirname(path),
      };
    });
  },
};
