/**
 * A local DynamoDB for tests, drills and development, over HTTP like the real one. It is in memory or on a file, on a
 * port of 127.0.0.1, and ends with the process that started it, also when that is killed with -9 (see supervisor.ts).
 *
 * It isn't DynamoDB: it never throttles, and raises no transaction conflicts. The fault proxy in `cronfence/testing`
 * adds those.
 */
import { InvalidOptionsError } from "../errors.ts";
import { startAmazon } from "./amazon.ts";
import { findDynoxide, startDynoxide } from "./dynoxide.ts";
import { EngineUnavailableError } from "./engine-error.ts";
import { untilAnswering } from "./loopback.ts";

/** Where and on what the engine runs. */
export interface EngineOptions {
  /** A file that keeps the data over restarts; its directories are created. @default in memory */
  file?: string;
  /** The port of 127.0.0.1 to listen on. @default a free one */
  port?: number;
}

/** A running local DynamoDB. */
export interface Engine {
  /** The URL to give to a client; see `localClientConfig`. */
  readonly endpoint: string;
  /** The server's process, unless it is one that we didn't start. */
  readonly pid: number | undefined;
  readonly kind: "dynoxide" | "dynamodb-local" | "external";
  /** Ends the server and resolves when it is gone; does nothing to an external one, or the second time. */
  stop(): Promise<void>;
}

const engines = ["dynoxide", "dynamodb-local"];

/**
 * Starts the local DynamoDB and resolves when it answers. The environment decides which:
 * `DYNAMODB_ENDPOINT` uses the server that already runs there, and ignores the options;
 * `CRONFENCE_ENGINE=dynamodb-local` uses Amazon's engine by the npm package `dynamodb-local`, which downloads it at
 * first use; otherwise it is the embedded Dynoxide.
 *
 * @throws EngineUnavailableError (`ENGINE_UNAVAILABLE`) when there is no engine for this platform, the given port is
 * taken, or it doesn't answer; the message says what to do.
 * @throws InvalidOptionsError when `CRONFENCE_ENGINE` is none of the two.
 */
export const startEngine = async (options: EngineOptions = {}, env = process.env): Promise<Engine> => {
  const wanted = env.CRONFENCE_ENGINE || "dynoxide";
  if (!engines.includes(wanted)) {
    throw new InvalidOptionsError("CRONFENCE_ENGINE", [
      `"${wanted}" isn't an engine; allowed are ${engines.join(", ")}`,
    ]);
  }
  if (env.DYNAMODB_ENDPOINT) return useExternal(env.DYNAMODB_ENDPOINT);
  if (wanted === "dynamodb-local") return { kind: "dynamodb-local", ...(await startAmazon(options)) };
  return { kind: "dynoxide", ...(await startDynoxide(findDynoxide(), options)) };
};

/** What a DynamoDB client needs to talk to a local engine, which accepts any credentials and Region. */
export const localClientConfig = (endpoint: string) => ({
  endpoint,
  region: "local",
  credentials: { accessKeyId: "local", secretAccessKey: "local" },
});

const useExternal = async (endpoint: string): Promise<Engine> => {
  if (!URL.canParse(endpoint)) {
    throw new InvalidOptionsError("DYNAMODB_ENDPOINT", [
      `"${endpoint}" isn't a URL; it looks like http://127.0.0.1:8000`,
    ]);
  }
  if (!(await untilAnswering(endpoint, 2_000))) {
    throw new EngineUnavailableError(`nothing answers at DYNAMODB_ENDPOINT=${endpoint}`);
  }
  return { kind: "external", endpoint, pid: undefined, stop: async () => {} };
};
