/** `cronfence table create` as people run it: a process, with nothing but its environment. */
import { randomUUID } from "node:crypto";
import { mkdtemp } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DescribeTableCommand, DescribeTimeToLiveCommand } from "@aws-sdk/client-dynamodb";
import { createTable, dumpTable } from "cronfence/testing";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { useEngine } from "../fixture.ts";
import { type Ended, cronfence as runCommand } from "./command.ts";

const engine = useEngine();
afterEach(() => engine.proxy.reset());

let emptyHome: string;
beforeAll(async () => {
  emptyHome = await mkdtemp(join(tmpdir(), "cronfence-"));
});

const account = { AWS_REGION: "eu-central-1", AWS_ACCESS_KEY_ID: "local", AWS_SECRET_ACCESS_KEY: "local" };

const cronfence = (args: readonly string[], env: Readonly<Record<string, string>> = account): Promise<Ended> =>
  runCommand(emptyHome, args, env);

const freshTable = () => `table-${randomUUID().slice(0, 8)}`;
const create = (...args: string[]) => ["table", "create", ...args];

/** One sentence for people, on standard error: no stack trace, no object. */
const expectSentence = ({ code, stdout, stderr }: Ended, says: RegExp) => {
  expect(stderr).toMatch(says);
  expect(stderr.trim().split("\n")).toHaveLength(1);
  expect(stderr).toMatch(/^cronfence: /);
  expect(stderr).not.toMatch(/\n\s+at |\[object|undefined|node:internal/);
  expect(stdout).toBe("");
  expect(code).toBe(1);
};

describe("cronfence table create", () => {
  it("creates the table once, with TTL on, and says that it exists the next time", async () => {
    const table = freshTable();
    const args = create("--table", table, "--endpoint", engine.endpoint);
    expect(await cronfence(args)).toEqual({ code: 0, stdout: `created table ${table}\n`, stderr: "" });
    const { Table } = await engine.client.send(new DescribeTableCommand({ TableName: table }));
    expect(Table?.KeySchema).toEqual([
      { AttributeName: "pk", KeyType: "HASH" },
      { AttributeName: "sk", KeyType: "RANGE" },
    ]);
    expect(Table?.BillingModeSummary?.BillingMode).toBe("PAY_PER_REQUEST");
    const ttl = await engine.client.send(new DescribeTimeToLiveCommand({ TableName: table }));
    expect(ttl.TimeToLiveDescription).toMatchObject({ AttributeName: "expiresAt", TimeToLiveStatus: "ENABLED" });
    expect(await cronfence(args)).toEqual({ code: 0, stdout: `table ${table} exists already\n`, stderr: "" });
  });

  it("makes jobs known, and leaves one that is known as it is", async () => {
    const table = freshTable();
    const before = Date.now();
    const first = await cronfence(create("--table", table, "--endpoint", engine.endpoint, "--job", "expire-carts"));
    expect(first.stdout).toBe(`created table ${table}\njob expire-carts is known\n`);
    const [carts] = await dumpTable(engine.client, table);
    expect(carts).toMatchObject({ pk: "job#expire-carts", sk: "control", unfinished: 0 });
    expect(carts?.since).toBeGreaterThanOrEqual(before);
    expect(carts?.fence).toBeGreaterThanOrEqual(Math.floor(before / 1_000));
    const args = create("--table", table, "--endpoint", engine.endpoint, "--job", "expire-carts", "send_invoices");
    expect(await cronfence(args)).toMatchObject({ code: 0 });
    const jobs = await dumpTable(engine.client, table);
    expect(jobs.map(({ pk }) => pk)).toEqual(["job#expire-carts", "job#send_invoices"]);
    expect(jobs[0]).toEqual(carts);
  });

  it("takes the table's name and the endpoint from the environment", async () => {
    const table = freshTable();
    const env = { ...account, CRONFENCE_TABLE: table, AWS_ENDPOINT_URL_DYNAMODB: engine.endpoint };
    expect(await cronfence(create(), env)).toMatchObject({ code: 0, stdout: `created table ${table}\n` });
    const other = freshTable();
    expect(await cronfence(create("--table", other), env)).toMatchObject({ stdout: `created table ${other}\n` });
  });
});

describe("cronfence table create says in one sentence that", () => {
  it("nothing answers at the endpoint", async () => {
    const port = await freePort();
    expectSentence(
      await cronfence(create("--endpoint", `http://127.0.0.1:${port}`)),
      new RegExp(`the table wasn't created: .*nothing answers at http://127\\.0\\.0\\.1:${port}`),
    );
    expectSentence(await cronfence(create("--endpoint", "http://no-such-host.invalid")), /nothing answers at http/);
  });

  it("the endpoint isn't one", async () => {
    expectSentence(await cronfence(create("--endpoint", "localhost")), /--endpoint is "localhost", and must be a URL/);
  });

  it("no region is set", async () => {
    const { AWS_REGION: _, ...env } = account;
    expectSentence(await cronfence(create("--endpoint", engine.endpoint), env), /no region is set; set AWS_REGION/);
  });

  it("no credentials were found", async () => {
    expectSentence(
      await cronfence(create("--endpoint", engine.endpoint), { AWS_REGION: "eu-central-1" }),
      /no AWS credentials were found; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY/,
    );
  });

  it.each([
    ["AccessDeniedException", /the table wasn't created: these credentials may not/],
    ["UnrecognizedClientException", /AWS doesn't accept these credentials/],
    ["ExpiredTokenException", /these AWS credentials have expired/],
  ])("the credentials won't do: %s", async (error, says) => {
    engine.proxy.when(() => true, { error });
    expectSentence(await cronfence(create("--endpoint", engine.proxy.endpoint)), says);
  });

  it("the table's name can't be one", async () => {
    expectSentence(
      await cronfence(create("--endpoint", engine.endpoint, "--table", "a b")),
      /table is "a b", and must be a DynamoDB table name/,
    );
  });

  it("a job's name can't be one, before anything is created", async () => {
    const table = freshTable();
    expectSentence(
      await cronfence(create("--endpoint", engine.endpoint, "--table", table, "--job", "fine", "not fine", "a#b")),
      /--job is "not fine", "a#b", and must be a name of letters, digits, - and _/,
    );
    await expect(dumpTable(engine.client, table)).rejects.toMatchObject({ name: "ResourceNotFoundException" });
  });

  it("another table has that name", async () => {
    const table = freshTable();
    await createTable(engine.client, { name: table, key: { hash: "id" } });
    expectSentence(
      await cronfence(create("--endpoint", engine.endpoint, "--table", table, "--job", "expire-carts")),
      new RegExp(`table ${table} exists already and is no control table: its key is id, and must be pk and sk`),
    );
  });
});

describe("cronfence refuses", () => {
  it.each([
    ["an unknown option", create("--tabel", "jobs"), /unknown option '--tabel'[\s\S]*--table/],
    ["an unknown command", ["tabel"], /unknown command 'tabel'[\s\S]*table/],
    ["an option without its value", create("--table"), /option '--table <name>' argument missing/],
  ])("%s, with a hint and no stack trace", async (_, args, says) => {
    const { code, stderr } = await cronfence(args);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(says);
    expect(stderr).not.toMatch(/\n\s+at /);
  });

  it("to do nothing in silence: without a command it shows what there is", async () => {
    const { code, stdout, stderr } = await cronfence([]);
    expect(code).not.toBe(0);
    expect(stdout + stderr).toMatch(/Usage: cronfence[\s\S]*table/);
  });
});

/** A port on which nothing listens. */
const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
