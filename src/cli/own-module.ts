/**
 * The library's own modules, of the very copy that this command belongs to: a job that is loaded for the command must run
 * on that one, wherever its file lies, in a project that has another copy, or none, or in this repository.
 */
import { readFileSync } from "node:fs";

/** The URL of what the package exports as `specifier` ("cronfence/lambda"), if it exports such a thing. */
export const ownModule = (specifier: string): string | undefined => {
  const exported = exportsOfPackage()[specifier.replace(/^cronfence/, ".")];
  if (typeof exported !== "object") return undefined;
  const file = isSource ? exported.default.replace("./dist/", "./").replace(/\.js$/, ".ts") : exported.default;
  return new URL(file, root).href;
};

/** Not built: a loader such as tsx runs the TypeScript files. */
const isSource = import.meta.url.endsWith(".ts");
/** The package's folder: this file is src/cli/own-module.ts there, or dist/src/cli/own-module.js. */
const root = new URL(isSource ? "../../" : "../../../", import.meta.url);

type Exports = Readonly<Record<string, string | { readonly default: string }>>;

let read: Exports | undefined;
const exportsOfPackage = (): Exports => {
  read ??= (JSON.parse(readFileSync(new URL("package.json", root), "utf8")) as { exports: Exports }).exports;
  return read;
};
