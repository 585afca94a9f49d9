/**
 * A service that uses cronfence as an installed package, in a folder of its own, and the serverless CLI run on it: the
 * package is built from these sources once for each test file, with everything that package.json promises.
 */
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll } from "vitest";

// biome-ignore lint/suspicious/noExplicitAny: a template is whatever CloudFormation takes
export type Template = Record<string, any>;

export interface Ended {
  readonly code: number;
  /** Standard output and standard error, as a person sees them, without colours. */
  readonly said: string;
}

export interface FixtureService {
  readonly folder: string;
  /** Writes, or replaces, files. */
  write(files: Readonly<Record<string, string>>): Promise<void>;
  /** Runs the CLI, such as `sls("deploy")`; it never asks, and sees nothing of this machine's own settings. */
  sls(...args: readonly string[]): Promise<Ended>;
  /** The template that `sls("package")` left. */
  template(): Promise<Template>;
  /** The bytes of a job's function, as packaged. */
  artifact(job: string): Promise<Buffer>;
}

export interface FixtureOptions {
  /** Of the CLI and what it starts, such as a local AWS's. @default nothing of AWS's */
  readonly env?: () => Readonly<Record<string, string>>;
  /** The CLI's script. @default osls, as this project uses it */
  readonly cli?: string;
}

const root = fileURLToPath(new URL("../..", import.meta.url));
const osls = join(root, "node_modules/osls/bin/serverless.js");
const started = promisify(execFile);
let workspace: Promise<string> | undefined;
afterAll(async () => {
  if (workspace !== undefined) await rm(await workspace, { recursive: true, force: true });
});

/** Of three lines beside what every service has. */
export const plainService = `service: shop-jobs
provider: { name: aws, runtime: nodejs22.x, region: eu-central-1 }
plugins: [cronfence/serverless]
custom: { cronfence: { jobs: "handlers/*.ts" } }
`;

/** @param files by path; serverless.yml is the plain one where it isn't given */
export const fixtureService = async (
  files: Readonly<Record<string, string>>,
  { env = () => ({}), cli = osls }: FixtureOptions = {},
): Promise<FixtureService> => {
  workspace ??= makeWorkspace();
  const folder = await mkdtemp(join(await workspace, "service-"));
  const service: FixtureService = {
    folder,
    write: async (changed) => {
      for (const [file, text] of Object.entries(changed)) {
        await mkdir(dirname(join(folder, file)), { recursive: true });
        await writeFile(join(folder, file), text);
      }
    },
    sls: async (...args) => {
      // What the CLI keeps in its user's home isn't the service's.
      const home = join(folder, "../home");
      const own = { PATH: process.env.PATH, HOME: home, SLS_TELEMETRY_DISABLED: "1", SLS_NOTIFICATIONS_MODE: "off" };
      const quiet = {
        AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
        AWS_EC2_METADATA_DISABLED: "true",
        NO_COLOR: "1",
      };
      const options = { cwd: folder, env: { ...own, ...quiet, ...env() }, maxBuffer: 1 << 26 };
      return await started(process.execPath, [cli, ...args], options).then(
        ({ stdout, stderr }) => ({ code: 0, said: stdout + stderr }),
        ({ code, stdout, stderr }) => ({ code: typeof code === "number" ? code : -1, said: stdout + stderr }),
      );
    },
    template: async () =>
      JSON.parse(await readFile(join(folder, ".serverless/cloudformation-template-update-stack.json"), "utf8")),
    artifact: (job) => readFile(join(folder, `.serverless/${job}.zip`)),
  };
  await service.write({ "serverless.yml": plainService, "package.json": '{ "type": "module" }', ...files });
  return service;
};

/**
 * A folder with the package as npm would have installed it, but for types and maps, beside the packages that it needs. Services
 * lie below it, as in a workspace.
 */
const makeWorkspace = async (): Promise<string> => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "cronfence-workspace-")));
  const modules = join(folder, "node_modules");
  const library = join(modules, "cronfence");
  await mkdir(library, { recursive: true });
  for (const name of await readdir(join(root, "node_modules"))) {
    if (!name.startsWith(".")) await symlink(join(root, "node_modules", name), join(modules, name));
  }
  await cp(join(root, "package.json"), join(library, "package.json"));
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const quick = ["--noCheck", "--declaration", "false", "--sourceMap", "false", "--inlineSources", "false"];
  const built = [tsc, "-p", "tsconfig.build.json", "--outDir", join(library, "dist"), ...quick];
  await started(process.execPath, built, { cwd: root });
  return folder;
};
