/**
 * Modules that no job's bundle may contain, such as one that migrates a database when it is loaded: found in what esbuild
 * says of a bundle (`metafile: true`), so that the build fails instead of the first start in production.
 *
 * A module counts only if anything of it is in the bundle: one that is imported for its types alone, or of which nothing
 * is used, isn't there.
 */
import { CronfenceError } from "cronfence";
import type { Metafile } from "esbuild";
import picomatch from "picomatch";

/** A module in a bundle that mustn't be there. */
export interface ForbiddenModule {
  readonly module: string;
  /** Which of the globs it matches. */
  readonly rule: string;
  /** From the handler to the module, each importing the next. */
  readonly chain: readonly string[];
}

/** A job's bundle contains what must never be in one. */
export class NeverBundleError extends CronfenceError {
  override readonly name = "NeverBundleError";
  readonly job: string;
  readonly modules: readonly ForbiddenModule[];

  constructor(job: string, modules: readonly ForbiddenModule[]) {
    const each = modules.map(
      ({ module, rule, chain }) => `${module} (neverBundle: ${JSON.stringify(rule)}), imported by ${chain.join(" → ")}`,
    );
    super("NEVER_BUNDLE", `job "${job}": its bundle contains ${each.join("; and ")}`);
    this.job = job;
    this.modules = modules;
  }
}

/**
 * @param globs of modules, relative to where esbuild was run, such as `src/migrate.ts` or `src/setup/**`
 * @throws NeverBundleError naming the job, each module and how it came to be there
 */
export const refuseBundled = (job: string, metafile: Metafile, globs: readonly string[]): void => {
  const modules = forbiddenIn(metafile, globs);
  if (modules.length > 0) throw new NeverBundleError(job, modules);
};

const forbiddenIn = ({ inputs, outputs }: Metafile, globs: readonly string[]): ForbiddenModule[] => {
  const rules = globs.map((glob) => ({ rule: glob, matches: picomatch(withoutDot(glob), { dot: true }) }));
  const bundled = new Set<string>();
  const entries: string[] = [];
  // A part that is loaded only when used has an entry point of its own.
  const loaded = new Set(Object.values(outputs).flatMap(({ imports }) => imports.map(({ path }) => path)));
  for (const [output, { entryPoint, inputs: parts }] of Object.entries(outputs)) {
    if (entryPoint !== undefined && !loaded.has(output)) entries.push(entryPoint);
    for (const [module, { bytesInOutput }] of Object.entries(parts)) if (bytesInOutput > 0) bundled.add(module);
  }
  const importer = importersFrom(entries, inputs);
  return [...bundled].sort().flatMap((module) => {
    const found = rules.find(({ matches }) => matches(module));
    return found === undefined ? [] : [{ module, rule: found.rule, chain: chainTo(module, importer) }];
  });
};

/** By module, the one that imports it on a shortest way from an entry. */
const importersFrom = (
  entries: readonly string[],
  inputs: Metafile["inputs"],
): ReadonlyMap<string, string | undefined> => {
  const importer = new Map<string, string | undefined>(entries.map((entry) => [entry, undefined]));
  // Modules are added while they are gone through: breadth first.
  for (const module of importer.keys()) {
    for (const { path, external } of inputs[module]?.imports ?? []) {
      if (external !== true && !importer.has(path)) importer.set(path, module);
    }
  }
  return importer;
};

const chainTo = (module: string, importer: ReadonlyMap<string, string | undefined>): string[] => {
  const chain: string[] = [];
  for (let at: string | undefined = module; at !== undefined; at = importer.get(at)) chain.unshift(at);
  return chain;
};

const withoutDot = (glob: string): string => glob.replace(/^\.\//, "");
