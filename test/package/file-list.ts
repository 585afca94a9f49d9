/** Which files may be in the package, and what they may give away. */
import type { Manifest } from "./manifest.ts";

const allowed = [
  /^package\.json$/,
  /^README\.md$/,
  /^LICENSE$/,
  /^infra\/[a-z-]+\.yml$/,
  // Not `.ts` sources, and nothing from folders other than that of the build.
  /^dist\/(src|infra)\/[a-z/-]+\.(js|js\.map|d\.ts)$/,
];

/** Runs from sources only, on the handlers of this repository. */
const unpublished = /^dist\/src\/local\/dev\./;

const required = ["package.json", "README.md", "LICENSE", "infra/control-table.yml"];

export const fileProblems = (files: readonly string[], manifest: Manifest): string[] => {
  const present = new Set(files);
  const stray = files.filter((file) => unpublished.test(file) || !allowed.some((pattern) => pattern.test(file)));
  const promised = Object.values(manifest.exports).flatMap((target) =>
    typeof target === "string" ? [target] : [target.types, target.default],
  );
  const wanted = [...required, ...[...promised, manifest.bin.cronfence].map((path) => path.replace(/^\.\//, ""))];
  const untyped = files.filter((file) => file.endsWith(".js") && !present.has(file.replace(/\.js$/, ".d.ts")));
  return [
    ...stray.map((file) => `${file} doesn't belong there`),
    ...wanted.filter((file) => !present.has(file)).map((file) => `${file} is missing`),
    ...untyped.map((file) => `${file} has no declarations beside it`),
  ];
};

/** A map is of use only with its source in it, and gives nothing away only with relative names. */
export const mapProblems = (file: string, text: string): string[] => {
  const map = JSON.parse(text) as { sourceRoot?: string; sources: string[]; sourcesContent?: (string | null)[] };
  const names = [map.sourceRoot ?? "", ...map.sources];
  return [
    ...names.filter((name) => /^(\/|[A-Za-z]:|file:)/.test(name)).map((name) => `${file} names ${name}`),
    ...map.sources.filter((_, i) => !map.sourcesContent?.[i]).map((name) => `${file} lacks the text of ${name}`),
  ];
};
