/**
 * What a bundle replaces by less, so that a function starts sooner: modules that are loaded for a part of them that a function
 * on Lambda never uses. Each replacement does what is used of the original, and no other module than the one named gets it.
 */
import type { Plugin } from "esbuild";

interface Replacement {
  /** What is imported. */
  readonly module: RegExp;
  /** By whom: part of the importing file's path. */
  readonly importer: RegExp;
  /** As a CommonJS module. */
  readonly contents: string;
}

const replacements: readonly Replacement[] = [
  {
    // Of worker threads, which would need files of their own beside the bundle.
    module: /^\.\/(lib\/)?transport$/,
    importer: /[\\/]node_modules[\\/]pino[\\/]/,
    contents: "module.exports = () => { throw new Error(\"pino's transports don't work in a bundle\"); };",
  },
  {
    // A handler runs on the main thread; nothing else is asked.
    module: /^worker_threads$/,
    importer: /[\\/]node_modules[\\/]pino[\\/]lib[\\/]tools\.js$/,
    contents: "exports.isMainThread = true;",
  },
  {
    // Called as a function, and in no other way.
    module: /^assert$/,
    importer: /[\\/]node_modules[\\/]sonic-boom[\\/]index\.js$/,
    contents: "module.exports = (fine, message) => { if (!fine) throw new Error(message); };",
  },
];

export const lighterModules: Plugin = {
  name: "lighter-modules",
  setup: ({ onResolve, onLoad }) => {
    for (const [index, { module, importer: by }] of replacements.entries()) {
      onResolve({ filter: module }, ({ importer }) =>
        by.test(importer) ? { path: String(index), namespace: "lighter" } : undefined,
      );
    }
    onLoad({ filter: /^\d+$/, namespace: "lighter" }, ({ path }) => ({
      contents: replacements[Number(path)]?.contents ?? "",
      loader: "js",
    }));
  },
};
