/** `cronfence init`: what a service with one job consists of. A file that is there already is never touched. */
import { mkdir, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import type { Command } from "commander";
import { jsonOption } from "./arguments.ts";
import { print, printJson } from "./exit.ts";
import { initialFiles } from "./initial-files.ts";

interface InitOptions {
  readonly name?: string;
  readonly json?: boolean;
}

export const addInit = (program: Command): void => {
  program
    .command("init")
    .argument("[folder]", "an empty or an existing one", ".")
    .description("makes a service with one job, its test and its deployment; never overwrites a file")
    .option("--name <service>", "the service's name (default: the folder's)")
    .addOption(jsonOption())
    .addHelpText("after", "\nExample:\n  npx cronfence init shop-jobs")
    .action(init);
};

const init = async (folder: string, { name, json }: InitOptions, command: Command): Promise<void> => {
  const service = name ?? serviceNameOf(folder);
  if (!/^[A-Za-z][A-Za-z0-9-]{0,30}$/.test(service)) {
    command.error(
      `error: the service's name is ${JSON.stringify(service)}, and must be a letter and at most 30 letters, digits and hyphens; give it with --name`,
    );
  }
  const made: string[] = [];
  const kept: string[] = [];
  for (const [file, text] of Object.entries(initialFiles(service, process.env.AWS_REGION))) {
    (await writeNew(join(folder, file), text)) ? made.push(file) : kept.push(file);
  }
  const next = nextCommands(folder, kept.includes("package.json"));
  if (json) return printJson({ folder: resolve(folder), service, made, kept, next });
  for (const file of made) print(`made ${join(folder, file)}`);
  for (const file of kept) print(`kept ${join(folder, file)}, which was there`);
  print(["", "Next:", ...next.map((each) => `  ${each}`)].join("\n"));
};

const toolNames = "osls typescript vitest @types/node";

const serviceNameOf = (folder: string): string =>
  basename(resolve(folder))
    .replace(/[^A-Za-z0-9-]+/g, "-")
    .replace(/^[^A-Za-z]+|-+$/g, "");

/** False where there is such a file, or anything else of that name. */
const writeNew = async (path: string, text: string): Promise<boolean> => {
  await mkdir(dirname(path), { recursive: true });
  try {
    await writeFile(path, text, { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
};

/** A manifest of the project's own needn't have the packages, nor a script for tests. */
const nextCommands = (folder: string, ownManifest: boolean): string[] => {
  const there = relative(process.cwd(), resolve(folder));
  const test = ownManifest
    ? `npm install cronfence && npm install --save-dev ${toolNames} && npx vitest run test/greet.test.ts`
    : "npm install && npm test";
  return [`${there === "" ? "" : `cd ${there} && `}${test}`, "npx osls deploy --stage dev"];
};
