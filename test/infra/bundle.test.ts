/** The bundled handler on plain node, with nothing beside it: as Lambda loads it, against the local engine. */
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { PutItemCommand } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { createTable, dumpTable } from "cronfence/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { cartExpiring, local } from "../../handlers/expire-carts.ts";
import { bundleHandler } from "../../infra/bundle.ts";
import { controlTable, useEngine } from "../fixture.ts";

const engine = useEngine();
const handler = fileURLToPath(new URL("../../handlers/expire-carts.ts", import.meta.url));
let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "cronfence-bundle-"));
  await bundleHandler(handler, folder);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const environment = () => ({
  AWS_ENDPOINT_URL_DYNAMODB: engine.endpoint,
  AWS_REGION: "local",
  AWS_ACCESS_KEY_ID: "local",
  AWS_SECRET_ACCESS_KEY: "local",
  AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
  CRONFENCE_TABLE: controlTable,
  CRONFENCE_LOG_LEVEL: "silent",
});

/** Loads the bundle, calls its handler once with an event, and prints the report. */
const invoke = async (event: object) => {
  const script = `const { handler } = await import("./index.mjs");
    console.log(JSON.stringify(await handler(${JSON.stringify(event)}, { awsRequestId: "request-1" })));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], {
    cwd: folder,
    env: environment(),
  });
  return JSON.parse(stdout);
};

it("a bundled handler does its job without node_modules, and a second delivery of the tick finds it done", async () => {
  for (const table of local.tables) await createTable(engine.client, table);
  const expired = Array.from({ length: 3 }, (_, i) =>
    cartExpiring(Date.parse("2026-01-01T00:00:00Z") + i, `cart-${i}`),
  );
  for (const cart of expired) {
    await engine.client.send(new PutItemCommand({ TableName: "carts", Item: marshall(cart) }));
  }
  const event = { job: "expire-carts", scheduledTime: "2026-01-01T00:05:00Z", attempt: "1" };
  expect(await invoke(event)).toMatchObject({ outcome: "succeeded", items: 3 });
  expect(await invoke(event)).toMatchObject({ outcome: "duplicate" });
  expect((await dumpTable(engine.client, "carts")).map(({ status }) => status)).toEqual([
    "expired",
    "expired",
    "expired",
  ]);
  expect((await dumpTable(engine.client, "cart-audit")).map(({ times }) => times)).toEqual([1, 1, 1]);
});

it("a bundle is a folder of modules and their maps, and what was there before is gone", async () => {
  await bundleHandler(handler, folder);
  const files = await readdir(folder);
  expect(files).toContain("index.mjs");
  expect(files.filter((file) => !/\.mjs(\.map)?$/.test(file))).toEqual([]);
});

it("a bundle that contains what must never be in one isn't written, and the build says which module it is", async () => {
  const refused = bundleHandler(handler, join(folder, "refused"), { neverBundle: ["src/observe/*.ts"] });
  await expect(refused).rejects.toThrow(
    /job "expire-carts": its bundle contains src\/observe\/.*handlers\/expire-carts\.ts/,
  );
  expect(await readdir(folder)).not.toContain("refused");
});

/** The modules that files of a bundle were made from, by their source maps: all, or those that are loaded at its start. */
const modulesIn = async (bundle: string, which: "all" | "at start"): Promise<string[]> => {
  const files = which === "all" ? (await readdir(bundle)).filter((file) => file.endsWith(".mjs")) : ["index.mjs"];
  for (const file of files) {
    const imported = (await readFile(join(bundle, file), "utf8")).matchAll(/(?:from|import)"\.\/([^"]+\.mjs)"/g);
    for (const [, name] of imported) if (!files.includes(name as string)) files.push(name as string);
  }
  const maps = await Promise.all(
    files.map(async (file) => JSON.parse(await readFile(join(bundle, `${file}.map`), "utf8"))),
  );
  return maps.flatMap(({ sources }) => sources as string[]);
};

it("a bundle has nothing that a run doesn't use", async () => {
  const modules = await modulesIn(folder, "all");
  expect(modules).toContainEqual(expect.stringMatching(/src\/run\.ts$/));
  const unused = [
    /src\/(cli|testing|local|rehearse|ledger|operate|drift|alarms)\//,
    /^(\.\.\/)*infra\//,
    /client-(lambda|cloudwatch|scheduler|cloudformation)/,
    /credential-provider-(?!node|env)/,
    /(commander|thread-stream|luxon|esbuild)\//,
  ];
  expect(modules.filter((module) => unused.some((pattern) => pattern.test(module)))).toEqual([]);
});

it("a job that sends its metrics by requests has the client for it in its bundle, loaded when it is used", async () => {
  const bundle = join(folder, "cloudwatch");
  await bundleHandler(handler, bundle, { cloudWatch: true });
  const client = expect.stringContaining("client-cloudwatch/");
  expect(await modulesIn(bundle, "all")).toContainEqual(client);
  expect(await modulesIn(bundle, "at start")).not.toContainEqual(client);
});

it("a handler's own use of a client that cronfence leaves to the runtime is bundled", async () => {
  const own = join(folder, "own.ts");
  await writeFile(
    own,
    'export const handler = async () => (await import("@aws-sdk/client-lambda")).LambdaClient.name;',
  );
  await symlink(fileURLToPath(new URL("../../node_modules", import.meta.url)), join(folder, "node_modules"));
  await bundleHandler(own, join(folder, "own"));
  expect(await modulesIn(join(folder, "own"), "all")).toContainEqual(expect.stringContaining("client-lambda/"));
});

it("an error's trace names the sources, though node reads no source maps, and is left as it is without them", async () => {
  const source = join(folder, "failing.ts");
  const root = fileURLToPath(new URL("../../src", import.meta.url));
  const lines = [
    `import { defineJob } from "${root}/index.ts";`,
    `import { lambdaHandler } from "${root}/lambda/index.ts";`,
    "const fail = () => {",
    '  throw new Error("no", { cause: new Error("because") });',
    "};",
    'export const handler = lambdaHandler(defineJob({ name: "failing", timeout: "1m", run: fail }));',
  ];
  await writeFile(source, lines.join("\n"));
  const bundle = join(folder, "failing");
  await bundleHandler(source, bundle);
  const script = `const { handler } = await import("./index.mjs");
    await handler({}).catch((error) => console.log(JSON.stringify([error.stack, error.cause.stack])));`;
  const traces = async () => {
    const env = { ...environment(), AWS_LAMBDA_FUNCTION_NAME: "failing" };
    const ended = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], {
      cwd: bundle,
      env,
    });
    return JSON.parse(ended.stdout) as string[];
  };
  for (const trace of await traces()) expect(trace).toContain(`${source}:4:`);
  await rm(join(bundle, "index.mjs.map"));
  for (const trace of await traces()) expect(trace).toContain("index.mjs:");
});
