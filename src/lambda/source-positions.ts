/**
 * Where an error came from, in the sources instead of the bundle, by the source maps beside it. They are read when an error is
 * shown: `node --enable-source-maps` reads them at every cold start, which takes half as long again then.
 */
import { readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** Rewrites the traces of an error and of its causes; without a map they stay as they are. Never throws. */
export const showSources = (error: unknown): void => {
  const seen = new Set<unknown>();
  for (let each = error; each instanceof Error && !seen.has(each); each = each.cause) {
    seen.add(each);
    try {
      if (each.stack !== undefined) each.stack = inSources(each.stack);
    } catch {
      // A stack that can't be set, as of a frozen error.
    }
  }
};

/** A module's place in a trace, as a URL or a path. */
const place = /(file:\/\/\/[^\s()]+?\.mjs|\/[^\s():]+?\.mjs):(\d+):(\d+)/g;

const inSources = (stack: string): string =>
  stack.replace(place, (whole, module: string, line: string, column: string) => {
    const file = module.startsWith("file:") ? fileURLToPath(module) : module;
    const found = mapOf(file)?.findEntry(Number(line) - 1, Number(column) - 1);
    if (found === undefined || !("originalSource" in found)) return whole;
    return `${resolve(dirname(file), found.originalSource)}:${found.originalLine + 1}:${found.originalColumn + 1}`;
  });

const maps = new Map<string, SourceMap | undefined>();

const mapOf = (file: string): SourceMap | undefined => {
  if (!maps.has(file)) maps.set(file, readMap(`${file}.map`));
  return maps.get(file);
};

const readMap = (file: string): SourceMap | undefined => {
  try {
    return new SourceMap(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    return undefined;
  }
};
