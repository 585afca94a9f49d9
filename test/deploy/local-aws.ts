/**
 * An AWS for tests on this machine: a server of its own for each test file, on a free port of 127.0.0.1, gone with the tests
 * however they end. It needs Python 3 with moto (`pip install 'moto[server]'`); where that is missing, the tests of a file
 * that uses it are skipped, and one line says so. local-aws/server.py tells what it does, and what it isn't.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { freePort, untilAnswering } from "../../src/local/loopback.ts";
import { end, letGo, spawnSupervised } from "../../src/local/supervisor.ts";

/** What an SDK client needs to talk to it. */
interface LocalAwsConfig {
  readonly endpoint: string;
  readonly region: string;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  /** For S3, whose buckets would be names of hosts otherwise. */
  readonly forcePathStyle: true;
}

export interface LocalAws {
  readonly endpoint: string;
  readonly region: string;
  readonly account: string;
  readonly config: LocalAwsConfig;
  /** The whole environment of a child process that uses it, with nothing of this machine's own AWS settings. */
  readonly env: Readonly<Record<string, string>>;
  /** A client of any service, such as `aws.client(LambdaClient)`: the same one each time, ended with the tests. */
  client<Client extends { destroy(): void }>(of: new (config: LocalAwsConfig) => Client): Client;
  /** The server's last words on standard error, for a test that wonders. */
  said(): string;
}

const region = "eu-central-1";

const missing = (): string | undefined => {
  const look = "import sys, importlib.util as find; sys.exit(not all(map(find.find_spec, ['moto', 'flask'])))";
  try {
    execFileSync("python3", ["-c", look], { stdio: "ignore" });
    return undefined;
  } catch {
    return "the local AWS needs Python 3 with moto (pip install 'moto[server]'), which isn't there";
  }
};

/** Why there is no local AWS here, if so: for `skip`. */
export const noLocalAws = missing();

/** For the tests of the file that calls it. */
export const useLocalAws = (): LocalAws => {
  const aws = {} as { -readonly [Key in keyof LocalAws]: LocalAws[Key] };
  let stop = async () => {};
  beforeAll(async () => {
    if (noLocalAws === undefined) stop = await startInto(aws);
    else process.stderr.write(`skipped: ${noLocalAws}\n`);
  });
  beforeEach(({ skip }) => skip(noLocalAws !== undefined, noLocalAws));
  afterAll(() => stop());
  return aws;
};

const startInto = async (aws: { -readonly [Key in keyof LocalAws]: LocalAws[Key] }): Promise<() => Promise<void>> => {
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const home = mkdtempSync(join(tmpdir(), "cronfence-aws-"));
  const { PATH = "" } = process.env;
  const RUNTIME_SDK = fileURLToPath(new URL("../../node_modules/@aws-sdk", import.meta.url));
  const python = { PATH, HOME: process.env.HOME ?? home, TMPDIR: home, NODE: process.execPath, RUNTIME_SDK };
  const { child, said } = spawnSupervised("/usr/bin/env", [
    "-i",
    ...Object.entries(python).map(([name, value]) => `${name}=${value}`),
    "python3",
    // Leaves no compiled files in the project.
    "-B",
    fileURLToPath(new URL("./local-aws/server.py", import.meta.url)),
    String(port),
  ]);
  const stop = async () => {
    for (const client of clients.values()) client.destroy();
    await end(child);
    rmSync(home, { recursive: true, force: true });
  };
  const clients = new Map<unknown, { destroy(): void }>();
  if (!(await untilAnswering(`${endpoint}/moto-api/`, 20_000, () => child.exitCode === null))) {
    await stop();
    throw new Error(`the local AWS didn't start: ${said()}`);
  }
  letGo(child);
  const config = {
    endpoint,
    region,
    credentials: { accessKeyId: "local", secretAccessKey: "local" },
    forcePathStyle: true,
  } as const;
  Object.assign(aws, {
    endpoint,
    region,
    account: "123456789012",
    config,
    env: {
      PATH,
      HOME: home,
      AWS_ENDPOINT_URL: endpoint,
      AWS_REGION: region,
      AWS_DEFAULT_REGION: region,
      AWS_ACCESS_KEY_ID: "local",
      AWS_SECRET_ACCESS_KEY: "local",
      AWS_EC2_METADATA_DISABLED: "true",
      AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
      SLS_TELEMETRY_DISABLED: "1",
      SLS_NOTIFICATIONS_MODE: "off",
    },
    client: (of) => {
      const client = clients.get(of) ?? new of(config);
      clients.set(of, client);
      return client;
    },
    said,
  } satisfies Pick<LocalAws, "endpoint" | "region" | "account" | "config" | "env" | "said"> & {
    client: (of: new (given: LocalAwsConfig) => { destroy(): void }) => { destroy(): void };
  });
  return stop;
};
