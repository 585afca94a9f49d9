/** Sending one request until its outcome is known. Every failure is a real one: of the SDK's client, the proxy or a port. */
import { createServer } from "node:http";
import { DynamoDBClient, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { type Fault, localClientConfig, settableClock } from "cronfence/testing";
import { afterEach, describe, expect, it } from "vitest";
import { settle, translate } from "../../src/control/send.ts";
import { clientFor, freshName } from "../fixture.ts";
import { useDynamo } from "./dynamo.ts";

const dynamo = useDynamo();
const clients: DynamoDBClient[] = [];
afterEach(() => {
  dynamo.fixture.proxy.reset();
  for (const client of clients.splice(0)) client.destroy();
});

const open = (client: DynamoDBClient) => {
  clients.push(client);
  return client;
};
const proxied = () => open(clientFor(dynamo.fixture.proxy.endpoint));
const bump = (id: string, condition?: string) =>
  new UpdateItemCommand({
    TableName: "rows",
    Key: marshall({ id }),
    UpdateExpression: "ADD n :one",
    ExpressionAttributeValues: { ":one": { N: "1" } },
    ...(condition === undefined
      ? {}
      : { ConditionExpression: condition, ReturnValuesOnConditionCheckFailure: "ALL_OLD" as const }),
  });
/** Sends one try after the other as `settle` is told to; its clock moves by itself. */
const settled = (client: DynamoDBClient, { ms = 1_000, random = () => 1, id = freshName(), condition = "" } = {}) => {
  const clock = settableClock(0, { autoAdvance: true });
  const budget = { clock, until: ms, random };
  return settle(() => client.send(bump(id, condition || undefined)), budget).then((result) => ({
    ...result,
    at: clock.now(),
  }));
};
const failureOf = (client: DynamoDBClient, signal?: AbortSignal) =>
  client.send(bump(freshName()), signal ? { abortSignal: signal } : {}).then(
    () => expect.unreachable("it was answered"),
    (error) => translate(error),
  );
/** A server that answers everything alike. */
const answering = async (status: number, body: string, contentType = "application/x-amz-json-1.0") => {
  const server = createServer((request, response) => {
    request.resume().on("end", () => response.writeHead(status, { "content-type": contentType }).end(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  return {
    client: open(clientFor(`http://127.0.0.1:${port}`)),
    stop: () => new Promise((resolve) => server.close(resolve).closeAllConnections()),
  };
};

describe("a failure counts", () => {
  it.each<[string, Fault, string]>([
    ["throttling", "throttle", "busy"],
    ["another way to say throttling", { error: "ThrottlingException" }, "busy"],
    ["a request limit", { error: "RequestLimitExceeded" }, "busy"],
    ["a conflict with a transaction", { conflict: true }, "busy"],
    ["a transaction that is still going", { error: "TransactionInProgressException" }, "unknown"],
    ["a 500", "500-before", "unknown"],
    ["a 500 that was applied", "500-after", "unknown"],
    ["a 503", { error: "ServiceUnavailable", status: 503 }, "unknown"],
    ["a gateway's timeout", { error: "GatewayTimeout", status: 504 }, "unknown"],
    ["a 408", { error: "RequestTimeout", status: 408 }, "unknown"],
    ["a 429 of an unknown name", { error: "SlowDown", status: 429 }, "unknown"],
    ["a broken connection", "drop", "unknown"],
    ["a lost reply", "lost-reply", "unknown"],
    ["a validation error", { error: "ValidationException" }, "failed"],
    ["a missing table", { error: "ResourceNotFoundException" }, "failed"],
    ["a missing permission", { error: "AccessDeniedException" }, "failed"],
    ["a bad token", { error: "UnrecognizedClientException" }, "failed"],
    ["a token with other parameters", { error: "IdempotentParameterMismatchException" }, "failed"],
  ])("%s as it should", async (_, fault, kind) => {
    dynamo.fixture.proxy.next("UpdateItem", fault);
    expect((await failureOf(proxied())).kind).toBe(kind);
  });

  it("as refused where a condition failed, with the item that was asked for", async () => {
    const id = freshName();
    await dynamo.fixture.client.send(bump(id));
    const error = await dynamo.fixture.client.send(bump(id, "attribute_not_exists(id)")).catch((caught) => caught);
    expect(translate(error)).toEqual({ kind: "refused", item: marshall({ id, n: 1 }) });
  });

  it("as cancelled where a transaction was, with codes, messages and items in order", async () => {
    const { proxy } = dynamo.fixture;
    proxy.next("UpdateItem", { cancel: ["None", { Code: "ConditionalCheckFailed", Item: { id: { S: "x" } } }] });
    expect(await failureOf(proxied())).toEqual({
      kind: "cancelled",
      reasons: [
        { code: "None" },
        { code: "ConditionalCheckFailed", message: "The conditional request failed", item: { id: { S: "x" } } },
      ],
    });
  });

  it("as unknown where no answer came in time", async () => {
    const rule = dynamo.fixture.proxy.next("UpdateItem", { hang: true });
    const giveUp = new AbortController();
    const failure = failureOf(proxied(), giveUp.signal);
    await (await rule.hit).settled;
    giveUp.abort();
    expect((await failure).kind).toBe("unknown");
  });

  it("as busy where nobody listens: nothing was sent", async () => {
    const server = await answering(200, "{}");
    await server.stop();
    expect((await failureOf(server.client)).kind).toBe("busy");
  });

  it("as failed where there are no credentials: nothing was sent", async () => {
    const credentials = () => Promise.reject(Object.assign(new Error("none"), { name: "CredentialsProviderError" }));
    const config = { ...localClientConfig(dynamo.fixture.proxy.endpoint), credentials, maxAttempts: 1 };
    expect((await failureOf(open(new DynamoDBClient(config)))).kind).toBe("failed");
    expect(dynamo.fixture.proxy.requests).toHaveLength(0);
  });

  it("as unknown where fetch does the sending and reports a lost reply as a TypeError", async () => {
    const { endpoint } = dynamo.fixture.proxy;
    const rule = dynamo.fixture.proxy.next("UpdateItem", "lost-reply");
    const headers = { "x-amz-target": "DynamoDB_20120810.UpdateItem" };
    const requestHandler = { handle: () => fetch(endpoint, { method: "POST", headers, body: "{}" }) } as never;
    const client = open(new DynamoDBClient({ ...localClientConfig(endpoint), requestHandler, maxAttempts: 1 }));
    const error = await client.send(bump(freshName())).catch((caught) => caught);
    expect([error.name, rule.hits, translate(error).kind]).toEqual(["TypeError", 1, "unknown"]);
  });

  it("as failed where the SDK couldn't make a request of it: nothing was sent", async () => {
    const client = open(new DynamoDBClient({ ...localClientConfig("nonsense"), maxAttempts: 1 }));
    const error = await client.send(bump(freshName())).catch((caught) => caught);
    expect([error.name, translate(error).kind]).toEqual(["TypeError", "failed"]);
  });

  it.each<[string, number, string, string]>([
    ["an unreadable answer that says it was accepted", 200, "<html>", "unknown"],
    ["a cut-off answer that says it was accepted", 200, '{"Attributes": {"n"', "unknown"],
    ["a redirect", 302, "", "unknown"],
    ["a gateway's error page", 502, "<html>bad gateway</html>", "unknown"],
    ["a gateway's refusal", 403, "<html>forbidden</html>", "failed"],
  ])("%s, with status %i, as it should", async (_, status, body, kind) => {
    const server = await answering(status, body);
    expect((await failureOf(server.client)).kind).toBe(kind);
    await server.stop();
  });
});

describe("settling", () => {
  it("sends the same request again while its outcome is unknown, and then has no doubt that it was applied", async () => {
    const id = freshName();
    for (const fault of ["500-before", "drop", "throttle"] as const) dynamo.fixture.proxy.next("UpdateItem", fault);
    expect(await settled(proxied(), { id })).toMatchObject({ kind: "done", doubt: true, at: 50 + 100 + 200 });
    expect(await dynamo.row(id)).toBe(1);
    expect(new Set(dynamo.fixture.proxy.requests.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  });

  it("waits a random part of a delay that doubles up to two seconds", async () => {
    const parts = [0, 0.5, 0.25, 1, 0.125, 0.5, 1, 1];
    const random = () => parts.shift() ?? 0;
    const waits: number[] = [];
    const clock = settableClock(0, { autoAdvance: true });
    let last = 0;
    dynamo.fixture.proxy.when("UpdateItem", "throttle", { times: 8 });
    const client = proxied();
    const send = () => {
      waits.push(clock.now() - last);
      last = clock.now();
      return client.send(bump(freshName()));
    };
    const { kind } = await settle(send, { clock, until: 60_000, random });
    expect(kind).toBe("done");
    // Of 50, 100, 200, 400, 800, 1600, 2000, 2000.
    expect(waits).toEqual([0, 0, 50, 50, 400, 100, 800, 2_000, 2_000]);
  });

  it("sends the first try even when the budget is over, and no other", async () => {
    expect(await settled(proxied(), { ms: 0 })).toMatchObject({ kind: "done", doubt: false });
    dynamo.fixture.proxy.when("UpdateItem", "throttle");
    expect(await settled(proxied(), { ms: 0 })).toMatchObject({ kind: "spent", doubt: false, at: 0 });
    expect(dynamo.fixture.proxy.requests).toHaveLength(2);
  });

  it("starts no try at or after the end of the budget", async () => {
    const rule = dynamo.fixture.proxy.when("UpdateItem", "throttle");
    expect(await settled(proxied(), { ms: 150 })).toMatchObject({ kind: "spent", at: 50 });
    expect(rule.hits).toBe(2);
    expect(await settled(proxied(), { ms: 151 })).toMatchObject({ kind: "spent", at: 150 });
    expect(rule.hits).toBe(5);
  });

  it.each<[string, Fault, boolean]>([
    ["a lost reply", "lost-reply", true],
    ["a 500", "500-before", true],
    ["throttling", "throttle", false],
    ["a conflict", { conflict: true }, false],
  ])("keeps the doubt of %s until the end", async (_, fault, doubt) => {
    const id = freshName();
    await dynamo.fixture.client.send(bump(id));
    const { proxy } = dynamo.fixture;
    const condition = "attribute_not_exists(id)";
    proxy.next("UpdateItem", fault);
    proxy.next("UpdateItem", "throttle");
    expect(await settled(proxied(), { id, condition })).toMatchObject({ kind: "refused", doubt });
    proxy.next("UpdateItem", fault);
    proxy.next("UpdateItem", { error: "ValidationException" });
    expect(await settled(proxied())).toMatchObject({ kind: "failed", doubt });
    proxy.next("UpdateItem", fault);
    proxy.next("UpdateItem", { cancel: ["ConditionalCheckFailed"] });
    expect(await settled(proxied())).toMatchObject({ kind: "cancelled", doubt });
    proxy.next("UpdateItem", fault);
    proxy.when("UpdateItem", "throttle");
    expect(await settled(proxied())).toMatchObject({ kind: "spent", doubt });
  });

  it("counts retries of the SDK's own as doubt: their outcomes were never seen", async () => {
    const id = freshName();
    const retrying = open(new DynamoDBClient({ ...localClientConfig(dynamo.fixture.proxy.endpoint), maxAttempts: 3 }));
    dynamo.fixture.proxy.next("UpdateItem", "lost-reply");
    const result = await settled(retrying, { id, condition: "attribute_not_exists(id)" });
    expect(result).toMatchObject({ kind: "refused", doubt: true });
    expect(await settled(retrying, { id, condition: "attribute_not_exists(id)" })).toMatchObject({ doubt: false });
  });

  it("has no doubt about an endpoint that can't be reached, and tries until the budget ends", async () => {
    const server = await answering(200, "{}");
    await server.stop();
    expect(await settled(server.client)).toMatchObject({ kind: "spent", doubt: false, at: 750 });
  });

  it.each<[string, readonly string[], "final" | "busy"]>([
    ["a condition at the first action", ["ConditionalCheckFailed", "None"], "final"],
    [
      "a condition at the first action, whatever the others say",
      ["ConditionalCheckFailed", "TransactionConflict"],
      "final",
    ],
    ["a condition at another action", ["None", "None", "ConditionalCheckFailed"], "final"],
    ["a condition beside a conflict", ["None", "TransactionConflict", "ConditionalCheckFailed"], "final"],
    ["a validation error", ["None", "ValidationError"], "final"],
    ["a full item collection", ["None", "ItemCollectionSizeLimitExceeded"], "final"],
    ["a conflict at the first action", ["TransactionConflict", "None"], "busy"],
    [
      "a conflict at the first action, whatever the others say",
      ["TransactionConflict", "ConditionalCheckFailed"],
      "busy",
    ],
    ["conflict and throttling", ["TransactionConflict", "ThrottlingError"], "busy"],
    ["conflicts at other actions", ["None", "TransactionConflict", "ProvisionedThroughputExceeded"], "busy"],
  ])("takes a transaction that was cancelled for %s as it should", async (_, cancel, verdict) => {
    dynamo.fixture.proxy.next("UpdateItem", { cancel });
    const { kind } = await settled(proxied());
    expect(kind).toBe(verdict === "final" ? "cancelled" : "done");
  });
});
