/**
 * The template that the repo makes: packaged into a temporary folder by the project's own serverless CLI, which reads
 * serverless.yml as it does for a deployment. Nothing is uploaded.
 */
import { execFile } from "node:child_process";
import { access, mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { readTemplate, type Template } from "../drift/template.ts";
import { CronfenceError } from "../errors.ts";
import { UsageError } from "./exit.ts";

export interface PackagingOptions {
  readonly stage?: string;
  readonly region?: string;
  /** @default as the CLI calls it */
  readonly stack?: string;
}

export interface Packaged {
  readonly template: Template;
  readonly stack: string;
  readonly region: string;
  /** The command that deploys it. */
  readonly deploy: string;
}

/** The serverless CLI couldn't package the service. */
class PackagingError extends CronfenceError {
  override readonly name = "PackagingError";

  constructor(command: string, said: string) {
    super("PACKAGING_FAILED", `"${command}" failed: ${said}`);
  }
}

/** @throws PackagingError with what the CLI said */
export const packageService = async (options: PackagingOptions): Promise<Packaged> => {
  const { name, script } = await findCli();
  const folder = await mkdtemp(join(tmpdir(), "cronfence-drift-"));
  const chosen = [
    ...(options.stage === undefined ? [] : ["--stage", options.stage]),
    ...(options.region === undefined ? [] : ["--region", options.region]),
  ];
  try {
    await run(script, ["package", "--package", folder, ...chosen], `${name} package`);
    const { packagedFor, ...found } = await templateIn(join(folder, templateName), options.stack);
    const { region = found.region } = options;
    return { ...found, region, deploy: [`npx ${name} deploy`, ...chosen].join(" ") };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

/**
 * A template that was packaged before, with the state that the CLI keeps beside it.
 * @throws UsageError for a template of another stage: its stack would be looked at, and called that stage's
 */
export const packagedTemplate = async (file: string, { stack, stage, region }: PackagingOptions): Promise<Packaged> => {
  const { packagedFor = stage, ...found } = await templateIn(resolve(file), stack);
  if (stage !== undefined && stage !== packagedFor) {
    throw new UsageError(`--stage is ${stage}, and ${file} was packaged for stage ${packagedFor}`);
  }
  const { name } = await findCli().catch(() => ({ name: "serverless" }));
  const chosen = [
    ...(packagedFor === undefined ? [] : ["--stage", packagedFor]),
    ...(region === undefined ? [] : ["--region", region]),
  ];
  return { ...found, ...(region === undefined ? {} : { region }), deploy: [`npx ${name} deploy`, ...chosen].join(" ") };
};

const templateName = "cloudformation-template-update-stack.json";

const templateIn = async (
  file: string,
  given: string | undefined,
): Promise<Omit<Packaged, "deploy"> & { readonly packagedFor: string | undefined }> => {
  const text = await readFile(file, "utf8").catch((cause) => {
    throw new UsageError(`there is no template ${file}`, { cause });
  });
  const template = readTemplate(text, file);
  const { service, package: artifacts } = await readState(join(dirname(file), "serverless-state.json"));
  const { region, stackName } = service?.provider ?? {};
  // The provider's is the stage in serverless.yml, or else "dev", whatever --stage said.
  const stage = artifacts?.artifactDirectoryName?.split("/").at(-2) ?? service?.provider?.stage;
  const name = typeof service?.service === "string" ? `${service.service}-${stage}` : undefined;
  const stack = given ?? stackName ?? name;
  if (stack === undefined) {
    throw new UsageError(`there is no serverless-state.json beside ${file}: name the stack with --stack`);
  }
  return { template, stack, region: region ?? "", packagedFor: stage };
};

interface State {
  readonly service?: {
    readonly service?: unknown;
    readonly provider?: { readonly stage?: string; readonly region?: string; readonly stackName?: string };
  };
  /** Where the zips are put in the bucket: PREFIX/SERVICE/STAGE/TIME. */
  readonly package?: { readonly artifactDirectoryName?: string };
}

/** What the CLI keeps for a deployment from a package; empty where there is none. */
const readState = async (file: string): Promise<State> => {
  try {
    return JSON.parse(await readFile(file, "utf8")) as State;
  } catch {
    return {};
  }
};

/** As the project has it: osls, or serverless. */
const findCli = async (): Promise<{ readonly name: string; readonly script: string }> => {
  const from = createRequire(join(process.cwd(), "package.json"));
  for (const name of ["osls", "serverless"]) {
    try {
      const manifest = from.resolve(`${name}/package.json`);
      const { bin } = JSON.parse(await readFile(manifest, "utf8")) as { bin: string | Record<string, string> };
      const path = typeof bin === "string" ? bin : (bin[name] ?? bin.serverless ?? Object.values(bin)[0] ?? "");
      const script = join(dirname(manifest), path);
      await access(script);
      return { name, script };
    } catch {
      // The next one.
    }
  }
  throw new UsageError(
    "neither osls nor serverless is installed in this project; give a template that was packaged with --template",
  );
};

const run = (script: string, args: readonly string[], command: string): Promise<void> =>
  new Promise((done, failed) => {
    const env = { ...process.env, NO_COLOR: "1", SLS_NOTIFICATIONS_MODE: "off" };
    execFile(process.execPath, [script, ...args], { env, maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      if (error === null) return done();
      const said = `${stdout}\n${stderr}`
        .split("\n")
        .map((line) => line.trim())
        .filter((line) => line !== "");
      failed(new PackagingError(command, said.slice(-mostLines).join("; ") || error.message));
    });
  });

const mostLines = 12;
