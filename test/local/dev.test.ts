/** `npm run dev` as its user runs it: a process that goes on until it is told to stop, and keeps its data. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DeleteItemCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { createControlTable, dynamoStore, systemClock } from "cronfence";
import { dumpTable, type Engine, localClientConfig, startEngine } from "cronfence/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { budgetOn } from "../fixture.ts";

const root = new URL("../../", import.meta.url);
const pathOf = (file: string) => fileURLToPath(new URL(file, root));
let directory: string;
const started: ChildProcess[] = [];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "dev-"));
  await mkdir(join(directory, "handlers"));
});
afterEach(async () => {
  for (const child of started.splice(0)) child.kill("SIGKILL");
  await rm(directory, { recursive: true });
});

const startDev = (jobs = "handlers") => {
  const child = spawn(process.execPath, ["--import", import.meta.resolve("tsx"), pathOf("src/local/dev.ts"), jobs], {
    cwd: directory,
    env: {
      ...process.env,
      TSX_TSCONFIG_PATH: pathOf("tsconfig.json"),
      AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: undefined,
      CRONFENCE_LOG_LEVEL: undefined,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  started.push(child);
  let output = "";
  let errors = "";
  child.stdout.setEncoding("utf8").on("data", (text) => (output += text));
  child.stderr.setEncoding("utf8").on("data", (text) => (errors += text));
  const ended = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  const said = (text: string) =>
    new Promise<void>((resolve, reject) => {
      const look = () => {
        if (output.includes(text)) resolve();
      };
      child.stdout.on("data", look);
      child.once("close", () => reject(new Error(`ended without saying "${text}": ${output}${errors}`)));
      look();
    });
  return { child, ended, said, output: () => output, errors: () => errors };
};

/** The data that dev keeps, on an engine of the test's own. */
const onData = async <T>(use: (engine: Engine) => Promise<T>): Promise<T> => {
  const engine = await startEngine({ file: join(directory, ".cronfence/dynamodb.db") }, {});
  try {
    return await use(engine);
  } finally {
    await engine.stop();
  }
};
const storeOn = (engine: Engine) =>
  dynamoStore({ client: new DynamoDBClient(localClientConfig(engine.endpoint)), table: "cronfence" });

/** A job that owes a tick since yesterday, so that it is due as soon as dev starts; its work never ends. */
const endless = async () => {
  await writeFile(
    join(directory, "handlers/endless.ts"),
    `import { cron, defineJob } from ${JSON.stringify(new URL("src/index.ts", root).href)};
     export const job = defineJob({
       name: "endless",
       schedule: cron("0 0 1 1 *"),
       timeout: "1h",
       run: async (run) => {
         run.log.info({}, "the work has begun");
         await new Promise(() => {});
       },
     });`,
  );
  await onData(async (engine) => {
    await createControlTable(new DynamoDBClient(localClientConfig(engine.endpoint)), "cronfence");
    await storeOn(engine).create("endless", Date.parse("2020-06-01T00:00:00Z"), budgetOn(systemClock));
  });
};

describe("npm run dev", () => {
  it.each(["SIGINT", "SIGTERM"] as const)(
    "catches up at once, and on %s ends the run as interrupted, records it and stops",
    async (signal) => {
      await endless();
      const { child, ended, said, output, errors } = startDev();
      await said("endless: the work has begun");
      child.kill(signal);
      expect([await ended, errors()]).toEqual([[0, null], ""]);
      expect(output()).toMatch(/attempt ended: interrupted/);
      await onData(async (engine) => {
        const { runs } = await storeOn(engine).runs("endless", { limit: 10 }, budgetOn(systemClock));
        expect(runs).toMatchObject([{ outcome: "interrupted", error: { message: expect.stringContaining(signal) } }]);
        expect(await storeOn(engine).read("endless", budgetOn(systemClock))).not.toHaveProperty("owner");
      });
    },
  );

  it("exits at once on the second Ctrl-C", async () => {
    // What is going doesn't come to an end: a module that is never done loading.
    await writeFile(join(directory, "handlers/stubborn.mjs"), 'console.log("loading"); await new Promise(() => {});');
    const { child, ended, said } = startDev();
    await said("loading");
    child.kill("SIGINT");
    await said("stopping");
    child.kill("SIGINT");
    expect(await ended).toEqual([130, null]);
  });

  it("makes the tables of this project's jobs, fills them once, and keeps them over a restart", async () => {
    const runOnce = async () => {
      const { child, ended, said, output, errors } = startDev(pathOf("handlers"));
      await said("Ctrl-C stops");
      child.kill("SIGINT");
      expect([await ended, errors()]).toEqual([[0, null], ""]);
      return output();
    };
    expect(await runOnce()).toMatch(
      /expire-carts \(\S+expire-carts\.ts\) runs at \*\/5 \* \* \* \*, zone UTC; next: \S+Z, \S+Z, \S+Z/,
    );
    await onData(async ({ endpoint }) => {
      expect(await dumpTable(endpoint, "carts")).toHaveLength(360);
      const client = new DynamoDBClient(localClientConfig(endpoint));
      await client.send(new DeleteItemCommand({ TableName: "carts", Key: { id: { S: "cart-7" } } }));
    });
    await runOnce();
    await onData(async ({ endpoint }) => expect(await dumpTable(endpoint, "carts")).toHaveLength(359));
  });

  it.each([
    ["there is no such directory", "nowhere", /nowhere: there is no such directory of jobs/],
    ["no module there exports a job", "handlers", /no module in handlers\/ exports a job/],
  ])("says so, without a stack, when %s", async (_, jobs, fault) => {
    const { ended, errors } = startDev(jobs);
    expect(await ended).toEqual([1, null]);
    expect(errors()).toMatch(fault);
    expect(errors().trim().split("\n")).toHaveLength(1);
  });
});
