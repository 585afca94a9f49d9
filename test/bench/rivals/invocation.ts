/** An invocation of a contender: its process, started and waiting, with a proxy of its own between it and the engine. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type FaultProxy, startFaultProxy } from "cronfence/testing";
import { build } from "esbuild";
import { superviseExisting } from "../../../src/local/supervisor.ts";
import type { ProcessOptions, Said } from "./process.ts";

export interface Invocation {
  readonly proxy: FaultProxy;
  /** Delivers a tick: how that ended. A process that is killed throws as one that failed. */
  fire(tick: number): Promise<Said>;
  signal(signal: NodeJS.Signals): void;
  end(): Promise<void>;
}

export interface Bundle {
  readonly file: string;
  remove(): Promise<void>;
}

/** Starts much sooner than from its sources; what a contender doesn't use stays in other files. */
export const bundleProcess = async (): Promise<Bundle> => {
  const folder = await mkdtemp(join(tmpdir(), "cronfence-rivals-"));
  await build({
    entryPoints: { process: fileURLToPath(new URL("process.ts", import.meta.url)) },
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    splitting: true,
    platform: "node",
    format: "esm",
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
    logLevel: "error",
  });
  return { file: join(folder, "process.mjs"), remove: () => rm(folder, { recursive: true, force: true }) };
};

export const startInvocation = async (
  { file }: Bundle,
  target: string,
  options: Omit<ProcessOptions, "endpoint">,
): Promise<Invocation> => {
  const proxy = await startFaultProxy(target);
  const child = spawn(process.execPath, [file, JSON.stringify({ ...options, endpoint: proxy.endpoint })], {
    env: {
      PATH: process.env.PATH,
      AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
      AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE: "1",
    },
    stdio: ["pipe", "pipe", "ignore"],
  });
  const dismiss = superviseExisting(child.pid as number);
  const exited = once(child, "exit").then(dismiss);
  child.stdin.on("error", () => {}); // it may be gone already
  const waiting: ((said: Said) => void)[] = [];
  const answer = () => new Promise<Said>((resolve) => waiting.push(resolve));
  const ready = answer();
  createInterface({ input: child.stdout }).on("line", (line) => {
    // A library may print, too.
    if (line.startsWith('{"said"') || line.startsWith('{"threw"')) waiting.shift()?.(JSON.parse(line) as Said);
  });
  child.once("close", () => {
    for (const resolve of waiting.splice(0)) resolve({ threw: "the process died" });
  });
  const started = await ready;
  if (!("said" in started)) throw new Error(`${options.contender}: its process didn't start`);
  return {
    proxy,
    fire: (tick) => {
      const answered = answer();
      child.stdin.write(`${tick}\n`);
      return answered;
    },
    signal: (signal) => void child.kill(signal),
    end: async () => {
      child.kill("SIGKILL");
      await exited;
      await proxy.stop();
    },
  };
};
