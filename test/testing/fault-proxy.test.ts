/** The proxy against the real SDK client on one side and the local engine on the other. */
import { randomUUID } from "node:crypto";
import {
  DynamoDBClient,
  GetItemCommand,
  TransactWriteItemsCommand,
  type TransactWriteItemsCommandInput,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import {
  createTable,
  dumpTable,
  type Engine,
  type Fault,
  type FaultProxy,
  localClientConfig,
  startEngine,
  startFaultProxy,
} from "cronfence/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";

let engine: Engine;
let proxy: FaultProxy;
/** Never retries, so that each test sees what one request gets. */
let client: DynamoDBClient;
let table: string;

beforeAll(async () => {
  engine = await startEngine();
  proxy = await startFaultProxy(engine.endpoint);
  client = new DynamoDBClient({ ...localClientConfig(proxy.endpoint), maxAttempts: 1 });
});
beforeEach(async () => {
  table = `counters-${randomUUID()}`;
  await createTable(engine.endpoint, { name: table, key: { hash: "id" } });
});
afterEach(() => proxy.reset());
afterAll(async () => {
  client.destroy();
  await proxy.stop();
  await engine.stop();
});

const increment = (id: string) => ({
  TableName: table,
  Key: { id: { S: id } },
  UpdateExpression: "ADD n :one",
  ExpressionAttributeValues: { ":one": { N: "1" } },
});
const update = (id = "a", by = client, signal?: AbortSignal) =>
  by.send(new UpdateItemCommand(increment(id)), signal ? { abortSignal: signal } : {});
const transact = (more: Partial<TransactWriteItemsCommandInput> = {}) =>
  client.send(
    new TransactWriteItemsCommand({ TransactItems: ["a", "b"].map((id) => ({ Update: increment(id) })), ...more }),
  );
/** The counters as they stand in the engine, by id. */
const counters = async () => Object.fromEntries((await dumpTable(engine.endpoint, table)).map(({ id, n }) => [id, n]));

describe("the proxy", () => {
  it("passes requests on and records them with operation, body, status and whether they were applied", async () => {
    await update();
    await client.send(new GetItemCommand({ TableName: table, Key: { id: { S: "a" } } }));
    await expect(
      client.send(new UpdateItemCommand({ ...increment("a"), ConditionExpression: "attribute_not_exists(id)" })),
    ).rejects.toMatchObject({ name: "ConditionalCheckFailedException" });
    expect(proxy.requests).toMatchObject([
      {
        at: 0,
        operation: "UpdateItem",
        body: { TableName: table, Key: { id: { S: "a" } } },
        status: 200,
        applied: true,
      },
      { at: 1, operation: "GetItem", status: 200, replies: [{ status: 200, body: { Item: { n: { N: "1" } } } }] },
      { at: 2, operation: "UpdateItem", status: 400, applied: false },
    ]);
  });

  it("applies a rule to the next request of its operation only", async () => {
    const rule = proxy.next("UpdateItem", "throttle");
    await transact();
    await expect(update()).rejects.toMatchObject({ name: "ProvisionedThroughputExceededException" });
    await update();
    expect([rule.hits, (await rule.hit).at]).toEqual([1, 1]);
  });

  it("takes a predicate on the request, and as many requests as it is told", async () => {
    const rule = proxy.when(({ body }) => body.Key?.id.S === "b", "500-before", { times: 2 });
    await update("a");
    await expect(update("b")).rejects.toMatchObject({ name: "InternalServerError" });
    await expect(update("b")).rejects.toMatchObject({ name: "InternalServerError" });
    await update("b");
    expect(rule.hits).toBe(2);
  });

  it("asks a function what goes wrong with each request, which it may tell by its headers", async () => {
    const seen: unknown[] = [];
    proxy.when("UpdateItem", ({ at, headers }) => {
      seen.push(headers["amz-sdk-invocation-id"]);
      return at === 1 ? "throttle" : [];
    });
    await update();
    await expect(update()).rejects.toMatchObject({ name: "ProvisionedThroughputExceededException" });
    await update();
    expect(new Set(seen).size).toBe(3);
    expect(seen).not.toContain(undefined);
  });

  it("uses up counted rules one by one, laid over the uncounted ones", async () => {
    proxy.when("TransactWriteItems", "strip-token");
    proxy.next("TransactWriteItems", "500-after");
    proxy.next("TransactWriteItems", "throttle");
    await expect(transact({ ClientRequestToken: "t" })).rejects.toMatchObject({ name: "InternalServerError" });
    await expect(transact({ ClientRequestToken: "t" })).rejects.toMatchObject({
      name: "ProvisionedThroughputExceededException",
    });
    await transact({ ClientRequestToken: "t" });
    expect(await counters()).toEqual({ a: 2, b: 2 });
  });

  it("takes a rule back", async () => {
    proxy.when("UpdateItem", "drop").remove();
    await update();
  });

  it("looks like a broken connection when its target can't be reached", async () => {
    const gone = await startEngine({}, {});
    const lone = await startFaultProxy(gone.endpoint);
    await gone.stop();
    const lonely = new DynamoDBClient({ ...localClientConfig(lone.endpoint), maxAttempts: 1 });
    await expect(update("a", lonely)).rejects.toMatchObject({ code: "ECONNRESET" });
    lonely.destroy();
    await lone.stop();
  });
});

describe("faults of the connection", () => {
  it.each<[string, Fault, number]>([
    ["lost-reply: applied", "lost-reply", 1],
    ["drop: not applied", "drop", 0],
  ])("%s, and the connection breaks", async (_, fault, applied) => {
    proxy.next("UpdateItem", fault);
    await expect(update()).rejects.toMatchObject({ code: "ECONNRESET" });
    expect((await counters()).a ?? 0).toBe(applied);
    expect(proxy.requests).toMatchObject([{ status: undefined, applied: applied === 1 }]);
  });

  it.each<[string, Fault, number]>([
    ["not applied", { hang: true }, 0],
    ["applied", { hang: true, applied: true }, 1],
  ])("hang, %s: never answered", async (_, fault, applied) => {
    const rule = proxy.next("UpdateItem", fault);
    const giveUp = new AbortController();
    const outcome = update("a", client, giveUp.signal).catch((error) => error.name);
    await (await rule.hit).settled;
    expect((await counters()).a ?? 0).toBe(applied);
    giveUp.abort();
    expect(await outcome).toBe("AbortError");
  });

  it("delay: held until the promise resolves, and applied then although the client is gone", async () => {
    let release = () => {};
    const rule = proxy.next("UpdateItem", { delay: new Promise<void>((resolve) => (release = resolve)) });
    const giveUp = new AbortController();
    const outcome = update("a", client, giveUp.signal).catch((error) => error.name);
    const late = await rule.hit;
    giveUp.abort();
    expect(await outcome).toBe("AbortError");
    expect(await counters()).toEqual({});
    release();
    await late.settled;
    expect([await counters(), late.applied, late.status]).toEqual([{ a: 1 }, true, undefined]);
  });

  it("a patient client gets the reply of a delayed request", async () => {
    proxy.next("UpdateItem", { delay: new Promise((resolve) => setImmediate(resolve)) });
    await update();
    expect(await counters()).toEqual({ a: 1 });
  });

  it("replay: the network repeats an old request", async () => {
    await update();
    expect(await proxy.replay(proxy.requests[0]!)).toMatchObject({ status: 200 });
    expect(await counters()).toEqual({ a: 2 });
  });

  it("the SDK's own retries get through a lost reply, and apply an unconditional update twice", async () => {
    const retrying = new DynamoDBClient(localClientConfig(proxy.endpoint));
    proxy.next("UpdateItem", "lost-reply");
    await update("a", retrying);
    retrying.destroy();
    expect(await counters()).toEqual({ a: 2 });
  });
});

describe("faults of the service", () => {
  it.each<[string, Fault, number]>([
    ["500-before: not applied", "500-before", 0],
    ["500-after: applied", "500-after", 1],
  ])("%s, and an InternalServerError", async (_, fault, applied) => {
    proxy.next("TransactWriteItems", fault);
    await expect(transact()).rejects.toMatchObject({ name: "InternalServerError", $metadata: { httpStatusCode: 500 } });
    expect((await counters()).a ?? 0).toBe(applied);
  });

  it("error: any exception by name, not applied", async () => {
    for (const name of [
      "ThrottlingException",
      "TransactionInProgressException",
      "IdempotentParameterMismatchException",
    ]) {
      proxy.next("TransactWriteItems", { error: name, message: "as told" });
      await expect(transact()).rejects.toMatchObject({ name, message: "as told", $metadata: { httpStatusCode: 400 } });
    }
    expect(await counters()).toEqual({});
  });

  it("conflict: a TransactionConflictException for an operation on one item", async () => {
    proxy.next("UpdateItem", { conflict: true });
    await expect(update()).rejects.toMatchObject({
      name: "TransactionConflictException",
      message: "Transaction is ongoing for the item",
    });
    expect(await counters()).toEqual({});
  });

  it("conflict: a TransactionCanceledException with a reason for each action of a transaction", async () => {
    proxy.next("TransactWriteItems", { conflict: true });
    await expect(transact()).rejects.toMatchObject({
      name: "TransactionCanceledException",
      message: expect.stringContaining("[TransactionConflict, None]"),
      CancellationReasons: [
        { Code: "TransactionConflict", Message: "Transaction is ongoing for the item" },
        { Code: "None" },
      ],
    });
  });

  it("cancel: any reasons, with items where they are given", async () => {
    const Item = { id: { S: "b" }, n: { N: "7" } };
    proxy.next("TransactWriteItems", { cancel: ["ThrottlingError", { Code: "ConditionalCheckFailed", Item }] });
    await expect(transact()).rejects.toMatchObject({
      name: "TransactionCanceledException",
      CancellationReasons: [
        { Code: "ThrottlingError" },
        { Code: "ConditionalCheckFailed", Message: "The conditional request failed", Item },
      ],
    });
    expect(await counters()).toEqual({});
  });

  it("the engine's own cancellation reads the same", async () => {
    const Update = { ...increment("b"), ConditionExpression: "attribute_exists(id)" };
    const own = await transact({ TransactItems: [{ Update: increment("a") }, { Update }] }).catch((error) => error);
    proxy.next("TransactWriteItems", { cancel: ["None", "ConditionalCheckFailed"] });
    const ours = await transact().catch((error) => error);
    const shown = ({ name, message, CancellationReasons, $fault }: Record<string, unknown>) => ({
      name,
      message,
      CancellationReasons,
      $fault,
    });
    expect(shown(ours)).toEqual(shown(own));
  });
});

describe("repeated requests", () => {
  it.each<[string, Fault, string]>([
    ["the first reply", "duplicate", "1"],
    ["the second reply", { duplicate: "second" }, "2"],
  ])("duplicate: applied twice, and the client gets %s", async (_, fault, seen) => {
    proxy.next("UpdateItem", fault);
    const { Attributes } = await client.send(new UpdateItemCommand({ ...increment("a"), ReturnValues: "ALL_NEW" }));
    expect(Attributes?.n).toEqual({ N: seen });
    expect(await counters()).toEqual({ a: 2 });
  });

  it("strip-token: a repeated transaction is applied once with its token, twice without", async () => {
    proxy.next("TransactWriteItems", "duplicate");
    await transact();
    expect(await counters()).toEqual({ a: 1, b: 1 });
    proxy.next("TransactWriteItems", ["duplicate", "strip-token"]);
    await transact();
    expect(await counters()).toEqual({ a: 3, b: 3 });
    expect(proxy.requests[1]?.body.ClientRequestToken).toHaveLength(36);
  });
});

describe("hooks", () => {
  it("run before the request is applied, and after it but before the client hears of it", async () => {
    const seen: unknown[] = [];
    proxy.next("UpdateItem", {
      before: async () => seen.push(["before", await counters()]),
      after: async () => seen.push(["after", await counters()]),
    });
    await update().then(() => seen.push("told"));
    expect(seen).toEqual([["before", {}], ["after", { a: 1 }], "told"]);
  });

  it("combine with a fault", async () => {
    let after = 0;
    proxy.next("UpdateItem", [{ after: () => after++ }, "lost-reply"]);
    await expect(update()).rejects.toMatchObject({ code: "ECONNRESET" });
    expect(after).toBe(1);
  });
});

it("stop breaks what hangs and doesn't forward what is still held back", async () => {
  const other = await startFaultProxy(engine.endpoint);
  const stranded = new DynamoDBClient({ ...localClientConfig(other.endpoint), maxAttempts: 1 });
  let release = () => {};
  const rule = other.next("UpdateItem", { delay: new Promise<void>((resolve) => (release = resolve)) });
  const outcome = update("a", stranded).catch((error) => error.code);
  const held = await rule.hit;
  await other.stop();
  expect(await outcome).toBe("ECONNRESET");
  release();
  await held.settled;
  expect(await counters()).toEqual({});
  stranded.destroy();
});
