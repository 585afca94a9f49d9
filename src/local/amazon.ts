/**
 * Amazon's DynamoDB Local through the npm package `dynamodb-local`, only when asked for by CRONFENCE_ENGINE. The
 * package downloads the server at first use, needs Java, and the server's licence wants an AWS account: the user's
 * decision, never ours.
 */
import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { resolve } from "node:path";
import { EngineUnavailableError } from "./engine-error.ts";
import { freePort, untilAnswering } from "./loopback.ts";
import { end, letGo, superviseExisting } from "./supervisor.ts";

/** What we use of the package, which is CommonJS and may be absent. */
interface DynamoDbLocal {
  launch(port: number, dbPath: string | null, args: string[], verbose: boolean): Promise<ChildProcess>;
}

/** A Java start and, at first, a download come before the first answer. */
const startWithinMs = 120_000;

/**
 * Starts DynamoDB Local and resolves when it answers. It keeps its files in a directory, so a `file` becomes the
 * directory `FILE.dynamodb-local`.
 */
export const startAmazon = async (
  { file, port }: { file?: string; port?: number },
  { load = loadPackage, java = javaRuns }: { load?: () => Promise<DynamoDbLocal>; java?: () => Promise<boolean> } = {},
) => {
  const local = await load();
  // Without Java the package fails with an event that nobody can catch.
  if (!(await java())) throw new EngineUnavailableError('CRONFENCE_ENGINE=dynamodb-local needs "java" on the PATH');
  const directory = file === undefined ? null : `${resolve(file)}.dynamodb-local`;
  if (directory !== null) await mkdir(directory, { recursive: true });
  const chosen = port ?? (await freePort());
  const child = await local.launch(chosen, directory, ["-sharedDb"], false);
  const dismiss = child.pid === undefined ? () => {} : superviseExisting(child.pid);
  child.once("exit", dismiss);
  const stop = () => end(child, 5_000);
  const endpoint = `http://127.0.0.1:${chosen}`;
  if (!(await untilAnswering(endpoint, startWithinMs, () => child.exitCode === null))) {
    await stop();
    throw new EngineUnavailableError(`DynamoDB Local didn't answer on ${endpoint}`);
  }
  letGo(child);
  return { endpoint, pid: child.pid, stop };
};

const loadPackage = async (): Promise<DynamoDbLocal> => {
  try {
    const loaded = (await import("dynamodb-local")) as unknown as { default: DynamoDbLocal };
    return loaded.default;
  } catch (cause) {
    throw new EngineUnavailableError(
      'run "npm install --save-dev dynamodb-local" to use CRONFENCE_ENGINE=dynamodb-local',
      {
        cause,
      },
    );
  }
};

const javaRuns = (): Promise<boolean> =>
  new Promise((resolve) => {
    const probe = spawn("java", ["-version"], { stdio: "ignore" });
    probe.once("error", () => resolve(false));
    probe.once("exit", (status) => resolve(status === 0));
  });
