/**
 * The start of a packaged function: from a new process to the end of its first run, whose writes are then committed, against
 * the same two requests by hand on the bare SDK client, and against Powertools' idempotency, logger and metrics; for the
 * comparison with others, against npm dynamodb-lock-client, too.
 *
 * Each is bundled twice: as cronfence bundles (`ours`), and with esbuild's own settings for Node.js (`plain`), which are what
 * the usual tools use unless told otherwise. The first shows what cronfence adds to the SDK; the second, what somebody gets
 * who moves a function of theirs to it. All processes get a function's environment, and nothing of this one's.
 */
import { spawn } from "node:child_process";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { bundleHandler } from "../../infra/bundle.ts";
import { type Row, row } from "./row.ts";
import { controlTable, resultsTable, type Scene } from "./scene.ts";

const rounds = 15;
type Handler = "fenced" | "bare" | "powertools" | "lock-client";
const settings = ["ours", "plain"] as const;
type Setting = (typeof settings)[number];
type Start = `${Handler}, ${Setting}`;
type Figures = Readonly<Record<Start, number>>;

export const measureColdStart = async (scene: Scene): Promise<Row[]> => {
  const { measured, bundles } = await startAll(scene, ["fenced", "bare", "powertools"], settings);
  return rowsOf(measured, bundles);
};

export interface StartOfTheBare {
  /** Of the bare SDK's, bundled with the same settings. */
  readonly time: number;
  readonly size: number;
}

/** All of them, bundled as cronfence bundles. */
export const compareColdStarts = async (scene: Scene): Promise<Readonly<Record<Handler, StartOfTheBare>>> => {
  const handlers: readonly Handler[] = ["fenced", "bare", "powertools", "lock-client"];
  const { measured, bundles } = await startAll(scene, handlers, ["ours"]);
  const compared = handlers.map((handler) => [
    handler,
    {
      time: median(measured.map((round) => round[`${handler}, ours`] / round["bare, ours"])),
      size: bundles[`${handler}, ours`].bytes / bundles["bare, ours"].bytes,
    },
  ]);
  return Object.fromEntries(compared);
};

const startAll = async (scene: Scene, handlers: readonly Handler[], bundledAs: readonly Setting[]) => {
  const folder = await mkdtemp(join(tmpdir(), "cronfence-cold-"));
  try {
    const bundles = await bundleAll(folder, handlers, bundledAs);
    const environment = functionEnvironment(scene.endpoint, await scene.jobName());
    const starts = Object.keys(bundles) as Start[];
    const measured: Figures[] = [];
    for (let round = -1; round < rounds; round += 1) {
      const times: Partial<Record<Start, number>> = {};
      // Another one is first in each round: whatever else the machine does hits all alike.
      const turn = (round + 1) % starts.length;
      for (const start of [...starts.slice(turn), ...starts.slice(0, turn)]) {
        times[start] = await firstRun(join(bundles[start].folder, "index.mjs"), environment);
      }
      if (round >= 0) measured.push(times as Figures);
    }
    return { measured, bundles };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

interface Bundle {
  readonly folder: string;
  readonly bytes: number;
}

const rowsOf = (measured: readonly Figures[], bundles: Readonly<Record<Start, Bundle>>): Row[] => {
  const timeOf = (ours: Start, theirs: Start) => median(measured.map((round) => round[ours] / round[theirs]));
  const sizeOf = (ours: Start, theirs: Start) => bundles[ours].bytes / bundles[theirs].bytes;
  const goal = { atMost: 1 };
  const mine = "fenced, ours";
  return [
    row(
      "a cold start: of the time of the bare SDK, bundled with the same settings",
      timeOf(mine, "bare, ours"),
      "ratio",
      goal,
    ),
    row("the same, of the bare SDK bundled with esbuild's own settings", timeOf(mine, "bare, plain"), "ratio", goal),
    row("the same, of Powertools bundled with the same settings", timeOf(mine, "powertools, ours"), "ratio", goal),
    row(
      "the same, of Powertools bundled with esbuild's own settings",
      timeOf(mine, "powertools, plain"),
      "ratio",
      goal,
    ),
    ...(Object.keys(bundles) as Start[]).map((start) =>
      row(`a cold start: ${start}`, median(measured.map((round) => round[start])), "ms"),
    ),
    row("a bundle: of the size of the bare SDK's, with the same settings", sizeOf(mine, "bare, ours"), "ratio", goal),
    row("the same, of the bare SDK's with esbuild's own settings", sizeOf(mine, "bare, plain"), "ratio", goal),
    row("the same, of Powertools' with the same settings", sizeOf(mine, "powertools, ours"), "ratio", goal),
    row("a bundle", bundles[mine].bytes / 1_024, "KiB"),
  ];
};

const bundleAll = async (
  folder: string,
  handlers: readonly Handler[],
  bundledAs: readonly Setting[],
): Promise<Record<Start, Bundle>> => {
  const bundles: Partial<Record<Start, Bundle>> = {};
  for (const handler of handlers) {
    const source = fileURLToPath(new URL(`cold-start/${handler}.ts`, import.meta.url));
    for (const setting of bundledAs) {
      const start: Start = `${handler}, ${setting}`;
      const into = join(folder, start.replace(", ", "-"));
      await (setting === "ours" ? bundleHandler(source, into, { job: handler }) : bundlePlainly(source, into));
      bundles[start] = { folder: into, bytes: await sizeOfModules(into) };
    }
  }
  return bundles as Record<Start, Bundle>;
};

/** https://esbuild.github.io/getting-started/#bundling-for-node, as ES module; the banner is for CommonJS packages. */
const bundlePlainly = async (source: string, folder: string): Promise<void> => {
  await build({
    entryPoints: { index: source },
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    target: "node22",
    format: "esm",
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
    logLevel: "error",
  });
};

/** Of what is run: without the maps. */
const sizeOfModules = async (folder: string): Promise<number> => {
  const modules = (await readdir(folder)).filter((file) => file.endsWith(".mjs"));
  const sizes = await Promise.all(modules.map(async (file) => (await stat(join(folder, file))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
};

/** https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime */
const functionEnvironment = (endpoint: string, job: string): Record<string, string> => ({
  AWS_LAMBDA_FUNCTION_NAME: "bench",
  AWS_REGION: "eu-central-1",
  AWS_ACCESS_KEY_ID: "local",
  AWS_SECRET_ACCESS_KEY: "local",
  AWS_SESSION_TOKEN: "local",
  AWS_ENDPOINT_URL_DYNAMODB: endpoint,
  AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
  AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE: "1",
  CRONFENCE_TABLE: controlTable,
  COLD_CONTROL: controlTable,
  COLD_RESULTS: resultsTable,
  COLD_JOB: job,
});

/** Milliseconds from the start of a process to when its handler has returned. */
const firstRun = (module: string, env: Record<string, string>): Promise<number> =>
  new Promise((resolve, reject) => {
    const script = `const { handler } = await import(${JSON.stringify(pathToFileURL(module).href)});
      await handler({}, { awsRequestId: "request-1", getRemainingTimeInMillis: () => 60_000 });
      (await import("node:fs")).writeSync(3, "done");`;
    const startedAt = performance.now();
    let doneMs: number | undefined;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
      stdio: ["ignore", "ignore", "pipe", "pipe"],
      env,
    });
    let said = "";
    child.stderr?.on("data", (chunk) => {
      said += chunk;
    });
    child.stdio[3]?.once("data", () => {
      doneMs = performance.now() - startedAt;
    });
    child.once("error", reject);
    child.once("close", (code) => {
      if (doneMs !== undefined && code === 0) resolve(doneMs);
      else reject(new Error(`${module} ended with ${code}: ${said}`));
    });
  });

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] as number;
