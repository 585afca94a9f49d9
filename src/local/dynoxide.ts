/**
 * Dynoxide, the embedded DynamoDB: one native binary per platform, published as `@dynoxide/PLATFORM-ARCH`. It binds
 * its port exclusively and ends at once where it can't, so a port that somebody took in between is noticed, never shared.
 */
import { mkdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { EngineUnavailableError } from "./engine-error.ts";
import { freePort, untilAnswering } from "./loopback.ts";
import { end, letGo, type Supervised, spawnSupervised } from "./supervisor.ts";

const version = "1.2.1";
/** What Dynoxide publishes. */
const platforms = ["darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64", "win32-x64"];
const startWithinMs = 10_000;

/** The path of the binary for `platform` (as in `process.platform` and `process.arch`, joined by "-"). */
export const findDynoxide = (platform = `${process.platform}-${process.arch}`, from = lookupPlaces()): string => {
  if (!platforms.includes(platform)) {
    throw new EngineUnavailableError(
      `no embedded engine is published for ${platform} (there is one for ${platforms.join(", ")}); ` +
        "set DYNAMODB_ENDPOINT to the URL of a running server",
    );
  }
  const name = `@dynoxide/${platform}`;
  for (const place of from) {
    try {
      const manifest = createRequire(place).resolve(`${name}/package.json`);
      return join(dirname(manifest), platform.startsWith("win32") ? "dynoxide.exe" : "dynoxide");
    } catch {
      // not installed there: the next place
    }
  }
  throw new EngineUnavailableError(
    `the engine for ${platform} isn't installed; run "npm install --save-dev ${name}@${version}", ` +
      "or set DYNAMODB_ENDPOINT to the URL of a running server",
  );
};

/** Beside cronfence, and in the user's project: with strict package managers only that one sees what the user installed. */
const lookupPlaces = (): string[] => [import.meta.url, join(process.cwd(), "package.json")];

/** Starts `binary` and resolves when it answers. Without `port` it takes a free one, with `port` that one or none. */
export const startDynoxide = async (
  binary: string,
  { file, port, pickPort = freePort }: { file?: string; port?: number; pickPort?: () => Promise<number> },
) => {
  if (file !== undefined) await mkdir(dirname(resolve(file)), { recursive: true });
  const storage = file === undefined ? [] : ["--db-path", resolve(file)];
  let failure = "";
  for (let attempt = 0; attempt < (port === undefined ? 10 : 1); attempt++) {
    const chosen = port ?? (await pickPort());
    const endpoint = `http://127.0.0.1:${chosen}`;
    const engine = spawnSupervised(binary, ["serve", "--host", "127.0.0.1", "--port", String(chosen), ...storage]);
    const { child } = engine;
    // An answer on the port proves nothing while the child hasn't said that it is the one that listens there.
    if ((await listening(engine)) && (await untilAnswering(endpoint, startWithinMs, () => child.exitCode === null))) {
      letGo(child);
      return { endpoint, pid: child.pid, stop: () => end(child) };
    }
    await end(child);
    failure = engine.said().trim() || failure;
  }
  throw new EngineUnavailableError(`the embedded engine didn't start: ${failure || "it said nothing"}`);
};

/** Whether the child came to listen on its port: false when it ended, couldn't be started or took too long. */
const listening = (engine: Supervised): Promise<boolean> =>
  new Promise((resolve) => {
    const { child } = engine;
    const settle = (result: boolean) => {
      clearTimeout(timer);
      child.stderr?.off("data", look);
      child.off("close", failed).off("error", failed);
      child.on("error", () => {});
      resolve(result);
    };
    const look = () => {
      if (/listening on/i.test(engine.said())) settle(true);
    };
    const failed = () => settle(false);
    const timer = setTimeout(failed, startWithinMs);
    child.stderr?.on("data", look);
    child.once("close", failed).once("error", failed);
  });
