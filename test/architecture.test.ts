/**
 * Which part of the library may know what, read from the imports of all its files, type imports too. Each rule is also
 * tried on a source that breaks it, so that none can pass by not looking.
 */
import { readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { parseSync, Visitor } from "oxc-parser";
import { describe, expect, it } from "vitest";

/** Source text by path from src/, such as "control/commit.ts". */
type Sources = Readonly<Record<string, string>>;

const sourcesBelow = (root: URL): Sources =>
  Object.fromEntries(
    readdirSync(root, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"))
      .sort()
      .map((file) => [file, readFileSync(new URL(file, root), "utf8")]),
  );
const sources = sourcesBelow(new URL("../src/", import.meta.url));

/** These import modules of the user's, by their path. */
const importsUserModules = ["cli/load-jobs.ts", "local/job-modules.ts"];

/** What a file imports: its own files by their path from src/, packages by their name. */
const importsOf = (file: string, text: string): string[] => {
  const { program, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file} can't be parsed: ${errors[0]?.message}`);
  const found = new Set<string>();
  const add = (source: { readonly type?: string; readonly value?: unknown } | null | undefined) => {
    if (typeof source?.value === "string") found.add(source.value);
    else if (source && !importsUserModules.includes(file)) {
      throw new Error(`${file} imports something that isn't a literal`);
    }
  };
  new Visitor({
    ImportDeclaration: ({ source }) => add(source),
    ExportNamedDeclaration: ({ source }) => add(source),
    ExportAllDeclaration: ({ source }) => add(source),
    ImportExpression: ({ source }) => add(source),
    TSImportType: ({ source }) => add(source),
    TSExternalModuleReference: ({ expression }) => add(expression),
  }).visit(program);
  return [...found].map((specifier) =>
    specifier.startsWith(".") ? posix.join(posix.dirname(file), specifier) : specifier,
  );
};

const folderOf = (file: string): string => (file.includes("/") ? (file.split("/")[0] as string) : "");

/** "file → import" for every import that `wrong` is true of. */
const importsThat = (of: Sources, wrong: (file: string, imported: string) => boolean): string[] =>
  Object.entries(of).flatMap(([file, text]) =>
    importsOf(file, text)
      .filter((imported) => wrong(file, imported))
      .map((imported) => `${file} → ${imported}`),
  );

const isSdk = (imported: string) => /^@(aws-sdk|smithy)\//.test(imported);
const isLambda = (imported: string) => /^(aws-lambda|@types\/aws-lambda|@middy\/)/.test(imported);

/** Folders that have an SDK of their own, and the files that load a client when it is used. */
const mayUseSdk = (file: string) =>
  ["control", "cli", "testing", "local", "rehearse"].includes(folderOf(file)) ||
  ["lambda/lambda-sdk.ts", "observe/cloudwatch.ts", "operate/lambda-invoker.ts", "drift/clients.ts"].includes(file);

const rules: Record<string, (of: Sources) => string[]> = {
  "only control/ knows the AWS SDK, besides cli/, testing/, local/, rehearse/ and files that load a client when it is used":
    (of) => importsThat(of, (file, imported) => isSdk(imported) && !mayUseSdk(file)),
  "only lambda/ knows Lambda and middy": (of) =>
    importsThat(of, (file, imported) => isLambda(imported) && folderOf(file) !== "lambda"),
  "nothing imports src/index.ts, nor the package by its own name": (of) =>
    importsThat(of, (_, imported) => imported === "index.ts" || /^cronfence(\/|$)/.test(imported)),
  "rehearse/ and drift/ import nothing of lambda/ and cli/": (of) =>
    importsThat(
      of,
      (file, imported) =>
        ["rehearse", "drift"].includes(folderOf(file)) && ["lambda", "cli"].includes(folderOf(imported)),
    ),
  "ledger/ and operate/ import nothing of lambda/, cli/, testing/, local/ and rehearse/, nor ledger/ of operate/": (
    of,
  ) =>
    importsThat(of, (file, imported) => {
      const others = ["lambda", "cli", "testing", "local", "rehearse"];
      const [from, to] = [folderOf(file), folderOf(imported)];
      return ["ledger", "operate"].includes(from) && (others.includes(to) || (from === "ledger" && to === "operate"));
    }),
  "lambda/, which is in every function, imports nothing of local/, rehearse/, drift/, ledger/ and operate/": (of) =>
    importsThat(
      of,
      (file, imported) =>
        folderOf(file) === "lambda" && ["local", "rehearse", "drift", "ledger", "operate"].includes(folderOf(imported)),
    ),
  "lambda/, cli/ and testing/ never import each other": (of) =>
    importsThat(of, (file, imported) => {
      const [from, to] = [folderOf(file), folderOf(imported)];
      const apart = ["lambda", "cli", "testing"];
      return imported.endsWith(".ts") && from !== to && apart.includes(from) && apart.includes(to);
    }),
  "the core, control/, schedule/, work/, observe/ and watchdog/ import none of lambda/, cli/, testing/, local/, rehearse/, drift/, ledger/ and operate/":
    (of) =>
      importsThat(of, (file, imported) => {
        const outer = ["lambda", "cli", "testing", "local", "rehearse", "drift", "ledger", "operate"];
        return imported.endsWith(".ts") && !outer.includes(folderOf(file)) && outer.includes(folderOf(imported));
      }),
  "every import of the library's own is a file of it": (of) =>
    importsThat(of, (_, imported) => imported.endsWith(".ts") && of[imported] === undefined),
  "no file is named for being a collection of things": (of) =>
    Object.keys(of).filter((file) =>
      file.split(/[/.]/).some((part) => /^(utils?|helpers?|common|types?|constants?|misc|shared|lib)$/.test(part)),
    ),
  "only control/ writes DynamoDB expressions": (of) =>
    Object.entries(of).flatMap(([file, text]) =>
      folderOf(file) === "control" || folderOf(file) === "testing"
        ? []
        : expressionsIn(file, text).map((name) => `${file}: ${name}`),
    ),
};

/** Properties of an object literal by which a request carries an expression; comments and documentation don't count. */
const expressionsIn = (file: string, text: string): string[] => {
  const found: string[] = [];
  const { program } = parseSync(file, text);
  new Visitor({
    Property: ({ key }) => {
      const name = key.type === "Identifier" ? key.name : key.type === "Literal" ? String(key.value) : "";
      if (/^(KeyCondition|Condition|Filter|Projection|Update)Expression$|^ExpressionAttribute/.test(name))
        found.push(name);
    },
  }).visit(program);
  return found;
};

/** Each cycle of imports once, as a path that comes back to its first file. */
const cyclesIn = (of: Sources): string[] => {
  const imports = new Map(
    Object.entries(of).map(([file, text]) => [file, importsOf(file, text).filter((imported) => imported in of)]),
  );
  const cycles: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]) => {
    const at = path.indexOf(file);
    if (at >= 0) cycles.push([...path.slice(at), file].join(" → "));
    if (at >= 0 || done.has(file)) return;
    for (const imported of imports.get(file) ?? []) visit(imported, [...path, file]);
    done.add(file);
  };
  for (const file of imports.keys()) visit(file, []);
  return cycles;
};
rules["no file imports itself by way of others, not even for a type"] = cyclesIn;

/** For each rule a source that breaks it. */
const offenders: Record<string, Sources> = {
  "only control/ knows the AWS SDK, besides cli/, testing/, local/, rehearse/ and files that load a client when it is used":
    {
      "attempt.ts": 'export const load = () => import("@aws-sdk/client-dynamodb");',
      "lambda/handler.ts": 'import { LambdaClient } from "@aws-sdk/client-lambda";',
      "work/source.ts": 'type Item = import("@aws-sdk/client-dynamodb").AttributeValue;',
    },
  "only lambda/ knows Lambda and middy": {
    "run.ts": 'import type { Context } from "aws-lambda";',
    "cli/main.ts": 'export type { Request } from "@middy/core";',
  },
  "nothing imports src/index.ts, nor the package by its own name": {
    "job.ts": 'import "./index.ts";',
    "cli/table.ts": 'export * from "../index.ts";',
    "local/dev.ts": 'import { runJob } from "cronfence";',
  },
  "rehearse/ and drift/ import nothing of lambda/ and cli/": {
    "drift/drift.ts": 'import { print } from "../cli/exit.ts";',
    "rehearse/rehearse.ts": 'import { loadJobs } from "../cli/load-jobs.ts";',
    "rehearse/play.ts": 'import { lambdaHandler } from "../lambda/handler.ts";',
  },
  "ledger/ and operate/ import nothing of lambda/, cli/, testing/, local/ and rehearse/, nor ledger/ of operate/": {
    "ledger/explain.ts": 'import { budgetOf } from "../operate/operator.ts";',
    "operate/acts.ts": 'import { print } from "../cli/exit.ts";',
  },
  "lambda/, which is in every function, imports nothing of local/, rehearse/, drift/, ledger/ and operate/": {
    "lambda/handler.ts": 'import { readLedger } from "../operate/ledger.ts";',
    "lambda/event.ts": 'export const later = () => import("../ledger/explain.ts");',
  },
  "lambda/, cli/ and testing/ never import each other": {
    "cli/main.ts": 'import { lambdaHandler } from "../lambda/index.ts";',
    "lambda/event.ts": 'import type { SettableClock } from "../testing/index.ts";',
  },
  "the core, control/, schedule/, work/, observe/ and watchdog/ import none of lambda/, cli/, testing/, local/, rehearse/, drift/, ledger/ and operate/":
    {
      "run.ts": 'import { startEngine } from "./local/engine.ts";',
      "watchdog/watch.ts": 'import { readLedger } from "../operate/ledger.ts";',
      "work/source.ts": 'import type { LambdaDeps } from "../lambda/handler.ts";',
    },
  "every import of the library's own is a file of it": { "run.ts": 'import "./gone.ts";' },
  "no file is named for being a collection of things": {
    "utils.ts": "",
    "control/helpers/dates.ts": "",
    "job.types.ts": "",
  },
  "only control/ writes DynamoDB expressions": {
    "live-run.ts": 'export const request = { UpdateExpression: "SET #fence = :fence" };',
    "cli/runs.ts": 'export const request = { "ExpressionAttributeNames": { "#pk": "pk" } };',
  },
  "no file imports itself by way of others, not even for a type": {
    "a.ts": 'import type { B } from "./b.ts";',
    "b.ts": 'export { c } from "./control/c.ts";',
    "control/c.ts": 'import "../a.ts";',
  },
};

describe("The library's parts", () => {
  it("are all looked at", () => {
    expect(Object.keys(sources)).toEqual(
      expect.arrayContaining(["index.ts", "run.ts", "control/commit.ts", "lambda/handler.ts", "cli/main.ts"]),
    );
    expect(importsOf("run.ts", sources["run.ts"] as string)).toContain("work/perform.ts");
  });

  it.each(Object.keys(rules))("%s", (rule) => {
    expect(rules[rule]?.(sources)).toEqual([]);
  });
});

describe("A rule finds what breaks it:", () => {
  it.each(Object.keys(rules))("%s", (rule) => {
    const broken = offenders[rule] as Sources;
    const found = rules[rule]?.(broken) ?? [];
    if (rule.startsWith("no file imports itself")) expect(found).toEqual(["a.ts → b.ts → control/c.ts → a.ts"]);
    else expect(found).toHaveLength(Object.keys(broken).length);
  });
});

describe("What makes resources of a service's jobs", () => {
  const infra = sourcesBelow(new URL("../infra/", import.meta.url));
  const builders = new Set(["service.ts"]);
  for (const file of builders) {
    for (const imported of importsOf(file, infra[file] as string)) if (imported in infra) builders.add(imported);
  }

  it("knows nothing of the plugin, reads no file and asks nobody", () => {
    expect([...builders]).toEqual(expect.arrayContaining(["job-role.ts", "schedule.ts", "dashboard.ts"]));
    const pure = Object.fromEntries([...builders].map((file) => [file, infra[file] as string]));
    const outside = (imported: string) => imported.startsWith("serverless") || /^(node:|esbuild)/.test(imported);
    expect(importsThat(pure, (_, imported) => outside(imported) || isSdk(imported))).toEqual([]);
  });
});
