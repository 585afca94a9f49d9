/** The `cronfence` command as people run it: a process in a project's folder. */
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";
import { builtCommand } from "./built-command.ts";

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

let main: Promise<string> | undefined;

/** A project among the fixtures. */
export const fixture = (name: string): string => fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url));

/** Runs the command in the folder `cwd`, with nothing of the machine's own AWS configuration. */
export const cronfence = async (
  cwd: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> => (await started(cwd, args, env)).ended;

export interface Started {
  readonly ended: Promise<Ended>;
  /** Resolves when its standard error, so far, matches. */
  said(what: RegExp): Promise<void>;
  kill(signal: NodeJS.Signals): void;
}

/** The same, for who wants to meet it while it runs. */
export const started = async (
  cwd: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Started> => {
  main ??= builtCommand();
  const own = {
    PATH: process.env.PATH,
    HOME: tmpdir(),
    AWS_EC2_METADATA_DISABLED: "true",
    AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
    ...(process.env.DYNAMODB_ENDPOINT ? { DYNAMODB_ENDPOINT: process.env.DYNAMODB_ENDPOINT } : {}),
  };
  const child = spawn(process.execPath, [await main, ...args], {
    cwd,
    env: { ...own, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  return {
    ended: new Promise((resolve) => {
      child.once("close", (code) => resolve({ code: code ?? -1, stdout, stderr }));
    }),
    said: (what) =>
      new Promise((resolve, reject) => {
        const look = () => what.test(stderr) && resolve();
        child.stderr.on("data", look);
        child.once("close", () => reject(new Error(`it ended and never said ${what}: ${stderr}`)));
        look();
      }),
    kill: (signal) => child.kill(signal),
  };
};

const projects: string[] = [];
afterAll(async () => {
  for (const each of projects) await rm(each, { recursive: true, force: true });
});

/** A project of these files, in a folder of its own with no packages, gone after the tests. */
export const projectOf = async (files: Readonly<Record<string, string>>): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "cronfence-project-"));
  projects.push(folder);
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), text);
  }
  return folder;
};

/** The source of a module that defines a job; `options` are added as they are. */
export const jobSource = (name: string, options = ""): string =>
  `import { cron, defineJob } from "cronfence";
export const job = defineJob({ name: "${name}", schedule: cron("17 6 * * *"), timeout: "1m", run: () => {}, ${options} });
`;
