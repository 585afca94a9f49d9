/** Starting, stopping and choosing the local DynamoDB. How it ends with its process is in engine-end.test.ts. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DynamoDBClient, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { createTable, dumpTable, type Engine, localClientConfig, startEngine } from "cronfence/testing";
import { afterEach, describe, expect, it } from "vitest";
import { startAmazon } from "../../src/local/amazon.ts";
import { findDynoxide, startDynoxide } from "../../src/local/dynoxide.ts";
import { freePort } from "../../src/local/loopback.ts";
import { isGone, until } from "./processes.ts";

type Stoppable = Pick<Engine, "stop">;
const running: Stoppable[] = [];
const keep = async <T extends Stoppable>(starting: Promise<T>): Promise<T> => {
  const engine = await starting;
  running.push(engine);
  return engine;
};
const directories: string[] = [];
const directory = async () => {
  const path = await mkdtemp(join(tmpdir(), "engine-"));
  directories.push(path);
  return path;
};
afterEach(async () => {
  await Promise.all(running.splice(0).map((engine) => engine.stop()));
  for (const path of directories.splice(0)) await rm(path, { recursive: true });
});

const put = async (endpoint: string, id: string) => {
  const client = new DynamoDBClient(localClientConfig(endpoint));
  await client.send(new PutItemCommand({ TableName: "things", Item: { id: { S: id } } }));
  client.destroy();
};
const things = { name: "things", key: { hash: "id" } };
const portOf = (endpoint: string) => Number(new URL(endpoint).port);

/** Listens on a free port, as another process would that took it. */
const takePort = async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  running.push({ stop: async () => void server.close() });
  return (server.address() as { port: number }).port;
};

describe("the embedded engine", () => {
  it("answers as soon as it is started, and is gone when it is stopped", async () => {
    const engine = await startEngine({}, {});
    expect(engine).toMatchObject({ kind: "dynoxide", endpoint: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) });
    await createTable(engine.endpoint, things);
    await put(engine.endpoint, "a");
    expect(await dumpTable(engine.endpoint, "things")).toEqual([{ id: "a" }]);
    await engine.stop();
    expect(isGone(engine.pid!)).toBe(true);
    await engine.stop();
  });

  it("runs beside others, each with data of its own", async () => {
    const engines = await Promise.all(Array.from({ length: 8 }, () => keep(startEngine({}, {}))));
    expect(new Set(engines.map(({ endpoint }) => endpoint)).size).toBe(8);
    await Promise.all(engines.map(({ endpoint }) => createTable(endpoint, things)));
    await put(engines[0]!.endpoint, "a");
    expect(await dumpTable(engines[1]!.endpoint, "things")).toEqual([]);
  });

  it("keeps its data on a file over a restart, and over being killed", async () => {
    const file = join(await directory(), "not", "there", "yet.db");
    const first = await startEngine({ file }, {});
    await createTable(first.endpoint, things);
    await put(first.endpoint, "a");
    await first.stop();

    const second = await startEngine({ file }, {});
    await put(second.endpoint, "b");
    process.kill(second.pid!, "SIGKILL");
    await until("engine gone", () => isGone(second.pid!));

    const third = await keep(startEngine({ file }, {}));
    expect(await dumpTable(third.endpoint, "things")).toEqual([{ id: "a" }, { id: "b" }]);
  });

  it("starts again on the same port at once, although a client was connected", async () => {
    const first = await startEngine({}, {});
    const client = new DynamoDBClient({ ...localClientConfig(first.endpoint), maxAttempts: 3 });
    await createTable(client, things);
    await first.stop();
    const second = await keep(startEngine({ port: portOf(first.endpoint) }, {}));
    expect(second.endpoint).toBe(first.endpoint);
    await createTable(client, things);
    client.destroy();
  });

  it("takes another port when somebody took the first one in between, be it another engine", async () => {
    const other = await keep(startEngine({}, {}));
    const offered = [await takePort(), portOf(other.endpoint), await freePort()];
    const pickPort = async () => offered.shift()!;
    const engine = await keep(startDynoxide(findDynoxide(), { pickPort }));
    expect(offered).toEqual([]);
    await createTable(engine.endpoint, things);
    await expect(dumpTable(other.endpoint, "things")).rejects.toMatchObject({ name: "ResourceNotFoundException" });
  });

  it("refuses a given port that is taken, naming it", async () => {
    const port = await takePort();
    await expect(startEngine({ port }, {})).rejects.toMatchObject({
      code: "ENGINE_UNAVAILABLE",
      message: expect.stringContaining(String(port)),
    });
  });

  it("says what it said when it can't use its file", async () => {
    await expect(startEngine({ file: await directory() }, {})).rejects.toMatchObject({
      code: "ENGINE_UNAVAILABLE",
      message: expect.stringContaining("unable to open database file"),
    });
  });

  it("names the one line to install it where it isn't, and the way out", () => {
    expect(() => findDynoxide("darwin-arm64", [])).toThrow(
      'the engine for darwin-arm64 isn\'t installed; run "npm install --save-dev @dynoxide/darwin-arm64@1.2.1", ' +
        "or set DYNAMODB_ENDPOINT",
    );
  });

  it("names the platforms that there are on one for which nothing is published", () => {
    expect(() => findDynoxide("freebsd-x64")).toThrow(
      expect.objectContaining({
        code: "ENGINE_UNAVAILABLE",
        message: expect.stringContaining("darwin-arm64, darwin-x64"),
      }),
    );
  });

  it("says that the binary can't be run", async () => {
    await expect(startDynoxide(join(await directory(), "nothing"), {})).rejects.toMatchObject({
      code: "ENGINE_UNAVAILABLE",
      message: expect.stringMatching(/didn't start: .*not found/),
    });
  });
});

describe("DYNAMODB_ENDPOINT", () => {
  it("uses the server that runs there and leaves it running", async () => {
    const server = await keep(startEngine({}, {}));
    const engine = await startEngine({}, { DYNAMODB_ENDPOINT: server.endpoint });
    expect(engine).toMatchObject({ kind: "external", endpoint: server.endpoint, pid: undefined });
    await engine.stop();
    await createTable(server.endpoint, things);
  });

  it("is an error when nothing answers there", async () => {
    const endpoint = `http://127.0.0.1:${await freePort()}`;
    await expect(startEngine({}, { DYNAMODB_ENDPOINT: endpoint })).rejects.toMatchObject({
      code: "ENGINE_UNAVAILABLE",
      message: expect.stringContaining(`DYNAMODB_ENDPOINT=${endpoint}`),
    });
  });

  it("is an error when it isn't a URL", async () => {
    await expect(startEngine({}, { DYNAMODB_ENDPOINT: "8000" })).rejects.toMatchObject({ code: "INVALID_OPTIONS" });
  });
});

describe("CRONFENCE_ENGINE", () => {
  it("is an error that names the allowed values when it is something else", async () => {
    await expect(startEngine({}, { CRONFENCE_ENGINE: "dynamo" })).rejects.toMatchObject({
      code: "INVALID_OPTIONS",
      message: 'CRONFENCE_ENGINE: "dynamo" isn\'t an engine; allowed are dynoxide, dynamodb-local',
    });
  });
});

/** The package downloads at first use, so another server stands in for what it launches; our side of it is real. */
describe("Amazon's engine", () => {
  const calls: unknown[][] = [];
  const load = async () => ({
    launch: async (port: number, ...rest: unknown[]) => {
      calls.push([port, ...rest]);
      return spawn(findDynoxide(), ["serve", "--port", String(port)], { stdio: ["ignore", "ignore", "pipe"] });
    },
  });

  it("is launched in memory on a free port, and stopped", async () => {
    const engine = await startAmazon({}, { load, java: async () => true });
    expect(calls.pop()).toEqual([portOf(engine.endpoint), null, ["-sharedDb"], false]);
    await createTable(engine.endpoint, things);
    await engine.stop();
    expect(isGone(engine.pid!)).toBe(true);
  });

  it("keeps its files in a directory beside the given file", async () => {
    const file = join(await directory(), "data.db");
    await keep(startAmazon({ file }, { load, java: async () => true }));
    expect(calls.pop()?.[1]).toBe(`${file}.dynamodb-local`);
  });

  it("asks for Java where there is none", async () => {
    await expect(startAmazon({}, { load, java: async () => false })).rejects.toMatchObject({
      code: "ENGINE_UNAVAILABLE",
      message: expect.stringContaining('needs "java"'),
    });
  });
});
