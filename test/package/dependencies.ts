/** Whether package.json declares what the built files import, no less and no more. */
import { readFile } from "node:fs/promises";
import { isBuiltin } from "node:module";
import { build } from "esbuild";
import type { Manifest } from "./manifest.ts";

export interface Imports {
  /** Package names that scripts import when they are loaded. */
  readonly atOnce: ReadonlySet<string>;
  /** Package names that scripts import only when something is used. */
  readonly whenUsed: ReadonlySet<string>;
  /** Package names that declarations import. */
  readonly types: ReadonlySet<string>;
}

export const importsOf = async (scripts: readonly string[], declarations: readonly string[]): Promise<Imports> => {
  const { metafile } = await build({
    entryPoints: [...scripts],
    bundle: true,
    packages: "external",
    platform: "node",
    format: "esm",
    metafile: true,
    write: false,
    outdir: "unwritten",
    logLevel: "silent",
  });
  const imports = Object.values(metafile.inputs).flatMap((input) => input.imports);
  const external = (dynamic: boolean) =>
    packagesOf(
      imports
        .filter(({ external, kind }) => external && (kind === "dynamic-import") === dynamic)
        .map(({ path }) => path),
    );
  const texts = await Promise.all(declarations.map((file) => readFile(file, "utf8")));
  const specifiers = texts.flatMap((text) => [
    // What an example in a comment imports is the reader's.
    ...text.replace(/\/\*.*?\*\//gs, "").matchAll(/(?:from|import\()\s*"([^".][^"]*)"/g),
  ]);
  return {
    atOnce: external(false),
    whenUsed: external(true),
    types: packagesOf(specifiers.map((match) => match[1] as string)),
  };
};

const packagesOf = (specifiers: readonly string[]): Set<string> =>
  new Set(
    specifiers
      // infra/ uses the library as its users do, by the package's own name.
      .filter((specifier) => !isBuiltin(specifier) && !/^cronfence(\/|$)/.test(specifier))
      .map((specifier) => /^(@[^/]+\/[^/]+|[^/]+)/.exec(specifier)?.[0] as string),
  );

/** Packages that a user installs for a feature that is asked for by name, and gets a message about when they are missing. */
const askedFor = new Set(["dynamodb-local"]);

export const dependencyProblems = (manifest: Manifest, { atOnce, whenUsed, types }: Imports): string[] => {
  const dependencies = Object.keys(manifest.dependencies);
  const peers = Object.keys(manifest.peerDependencies ?? {});
  const isOptional = (name: string) => manifest.peerDependenciesMeta?.[name]?.optional === true;
  const typesOf = (name: string) => `@types/${name.replace(/^@([^/]+)\//, "$1__")}`;
  const optionalPeers = peers.filter(isOptional);
  const used = new Set([...atOnce, ...whenUsed, ...types, ...[...types].map(typesOf)]);
  return [
    ...[...atOnce]
      .filter((name) => !dependencies.includes(name))
      .map((name) => `${name} is imported, and isn't among the dependencies`),
    ...[...whenUsed]
      .filter((name) => ![...dependencies, ...optionalPeers].includes(name) && !askedFor.has(name))
      .map((name) => `${name} is imported when used, and is neither a dependency nor an optional peer`),
    ...[...types]
      .filter((name) => ![name, typesOf(name)].some((each) => [...dependencies, ...optionalPeers].includes(each)))
      .map((name) => `${name} is imported by declarations, and neither it nor its types are declared`),
    ...dependencies.filter((name) => !used.has(name)).map((name) => `${name} is a dependency, and nothing imports it`),
    ...peers.filter((name) => !isOptional(name)).map((name) => `${name} is a peer that isn't optional`),
  ];
};
