/**
 * What the lease protocol relies on of DynamoDB, tried on whichever engine the tests run on. A failure here explains
 * failures everywhere else.
 */
import { randomUUID } from "node:crypto";
import {
  DynamoDBClient,
  GetItemCommand,
  type TransactWriteItem,
  TransactWriteItemsCommand,
  UpdateItemCommand,
  type UpdateItemCommandInput,
} from "@aws-sdk/client-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import { createTable, type Engine, type Item, localClientConfig, startEngine } from "cronfence/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

let engine: Engine;
let client: DynamoDBClient;
const table = `behaviour-${randomUUID()}`;
beforeAll(async () => {
  engine = await startEngine();
  client = new DynamoDBClient(localClientConfig(engine.endpoint));
  await createTable(client, { name: table, key: { hash: "id" } });
});
afterAll(async () => {
  client.destroy();
  await engine.stop();
});

const transact = (actions: TransactWriteItem[], ClientRequestToken?: string) =>
  client.send(
    new TransactWriteItemsCommand({ TransactItems: actions, ...(ClientRequestToken && { ClientRequestToken }) }),
  );
const put = (item: Item): TransactWriteItem => ({ Put: { TableName: table, Item: marshall(item) } });
/** An update of item `id`, with `#run`, `#owner` for the reserved words where they are used. */
const updateOf = (id: string, update: string, values: Item, more: Partial<UpdateItemCommandInput> = {}) => {
  const text = `${update} ${more.ConditionExpression ?? ""}`;
  const names = Object.fromEntries(["run", "owner"].filter((n) => text.includes(`#${n}`)).map((n) => [`#${n}`, n]));
  return {
    TableName: table,
    Key: marshall({ id }),
    UpdateExpression: update,
    ExpressionAttributeValues: marshall(values),
    ...(Object.keys(names).length > 0 && { ExpressionAttributeNames: names }),
    ...more,
  };
};
const update = async (...given: Parameters<typeof updateOf>) => {
  const { Attributes } = await client.send(new UpdateItemCommand({ ReturnValues: "ALL_NEW", ...updateOf(...given) }));
  return unmarshall(Attributes ?? {});
};
const read = async (id: string) => {
  const { Item } = await client.send(
    new GetItemCommand({ TableName: table, Key: marshall({ id }), ConsistentRead: true }),
  );
  return Item && unmarshall(Item);
};
const refusal = (of: Promise<unknown>) =>
  of.then(
    () => "accepted",
    (error) => error,
  );
/** Whether `condition` holds on item `id`. */
const holds = async (id: string, condition: string, values: Item) => {
  const outcome = await refusal(
    update(id, "SET touched = :t", { ":t": 1, ...values }, { ConditionExpression: condition }),
  );
  if (outcome !== "accepted") expect(outcome.name).toBe("ConditionalCheckFailedException");
  return outcome === "accepted";
};

describe("conditions", () => {
  const id = "conditions";
  beforeAll(async () => {
    const prev = [{ id: "r1", seq: 2 }];
    await transact([put({ id, fence: 5, owner: "me", run: [{ id: "r2", seq: 0 }], prev, recentOwners: ["o1", "o2"] })]);
  });

  it.each<[string, string, Item, boolean]>([
    ["a list equals one of the same elements", "prev = :v", { ":v": [{ seq: 2, id: "r1" }] }, true],
    ["a list differs from one with another element", "prev = :v", { ":v": [{ seq: 3, id: "r1" }] }, false],
    ["an absent list isn't the empty list", "absent = :v", { ":v": [] }, false],
    ["size counts the elements of a list", "size(prev) < :v", { ":v": 2 }, true],
    ["size of a full list", "size(prev) < :v", { ":v": 1 }, false],
    ["a comparison with the size of what is absent is false", "size(absent) < :v", { ":v": 20 }, false],
    ["contains finds a string in a list", "contains(recentOwners, :v)", { ":v": "o2" }, true],
    ["contains doesn't find a part of an element", "contains(recentOwners, :v)", { ":v": "o" }, false],
    ["what is absent contains nothing", "NOT contains(absent, :v)", { ":v": "o" }, true],
    ["a path leads into a map in a list", "#run[0].seq = :v AND #owner = :o", { ":v": 0, ":o": "me" }, true],
    ["a comparison with what is absent is false", "absent < :v", { ":v": 1 }, false],
  ])("%s", async (_, condition, values, expected) => {
    expect(await holds(id, condition, values)).toBe(expected);
  });
});

describe("updates", () => {
  const acquire =
    "SET prev = list_append(if_not_exists(prev, :none), if_not_exists(#run, :none)), #run = :run ADD fence :one";

  it("move the old run to the end of the predecessors while they replace it, also on what is absent", async () => {
    const values = (run: string) => ({ ":none": [], ":run": [{ id: run, seq: 0 }], ":one": 1 });
    const first = await update("acquired", acquire, values("r1"));
    expect(first).toEqual({ id: "acquired", prev: [], run: [{ id: "r1", seq: 0 }], fence: 1 });
    await update("acquired", acquire, values("r2"));
    const third = await update("acquired", acquire, values("r3"));
    expect(third).toMatchObject({ prev: [{ id: "r1" }, { id: "r2" }], run: [{ id: "r3" }], fence: 3 });
  });

  it("set a path in a list, and fail on one that isn't there", async () => {
    await transact([put({ id: "path", run: [{ id: "r", seq: 0 }] })]);
    const next = await update(
      "path",
      "SET #run[0].seq = :n",
      { ":n": 1, ":was": 0 },
      { ConditionExpression: "#run[0].seq = :was" },
    );
    expect(next.run).toEqual([{ id: "r", seq: 1 }]);
    await transact([put({ id: "path" })]);
    expect(await refusal(update("path", "SET #run[0].seq = :n", { ":n": 1 }))).toMatchObject({
      name: "ValidationException",
    });
  });

  it("check the condition before the path: a refusal on an item without the list isn't a validation error", async () => {
    await transact([put({ id: "no-run", fence: 9 })]);
    const Update = updateOf(
      "no-run",
      "SET #run[0].seq = :n",
      { ":n": 1, ":f": 8 },
      {
        ConditionExpression: "fence = :f",
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      },
    );
    expect(await refusal(transact([{ Update }]))).toMatchObject({
      CancellationReasons: [{ Code: "ConditionalCheckFailed", Item: { fence: { N: "9" } } }],
    });
  });

  it("remove several attributes, present or not", async () => {
    await transact([put({ id: "removed", owner: "me", run: [], leaseUntil: 1, fence: 2 })]);
    const left = await update("removed", "SET fence = :f REMOVE #owner, leaseUntil, #run, absent", { ":f": 3 });
    expect(left).toEqual({ id: "removed", fence: 3 });
  });
});

describe("refusals", () => {
  it("carry the item as it stands when asked to, in an update and in a transaction", async () => {
    await transact([put({ id: "old", fence: 5 })]);
    const wrong = { ConditionExpression: "fence = :f", ReturnValuesOnConditionCheckFailure: "ALL_OLD" } as const;
    const Item = marshall({ id: "old", fence: 5 });
    const Update = updateOf("old", "SET x = :f", { ":f": 4 }, wrong);
    expect(await refusal(client.send(new UpdateItemCommand(Update)))).toMatchObject({
      name: "ConditionalCheckFailedException",
      Item,
    });
    expect(await refusal(transact([put({ id: "beside" }), { Update }]))).toMatchObject({
      name: "TransactionCanceledException",
      CancellationReasons: [{ Code: "None" }, { Code: "ConditionalCheckFailed", Item }],
    });
    expect(await read("beside")).toBeUndefined();
  });

  it("carry no item where there is none", async () => {
    const Update = updateOf(
      "nowhere",
      "SET x = :f",
      { ":f": 4 },
      {
        ConditionExpression: "fence = :f",
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      },
    );
    expect((await refusal(transact([{ Update }]))).CancellationReasons[0].Item).toBeUndefined();
  });
});

describe("transactions", () => {
  it("refuse two actions on one item", async () => {
    const twice = transact([put({ id: "twice" }), { Update: updateOf("twice", "SET x = :v", { ":v": 1 }) }]);
    expect(await refusal(twice)).toMatchObject({
      name: "ValidationException",
      message: expect.stringContaining("multiple operations on one item"),
    });
  });

  it("take 100 actions and refuse 101", async () => {
    const many = Array.from({ length: 101 }, (_, i) => put({ id: `many-${i}` }));
    await transact(many.slice(1));
    expect(await refusal(transact(many))).toMatchObject({ name: "ValidationException" });
  });

  it("refuse an item over 400 KB, at once when it is put whole, as a cancellation when an update makes it so", async () => {
    const half = "x".repeat(250 * 1024);
    expect(await refusal(transact([put({ id: "big", a: half, b: half })]))).toMatchObject({
      name: "ValidationException",
    });
    await transact([put({ id: "grows", a: half })]);
    expect(await refusal(transact([{ Update: updateOf("grows", "SET b = :b", { ":b": half }) }]))).toMatchObject({
      CancellationReasons: [{ Code: "ValidationError" }],
    });
  });

  it("are applied once per token, and refuse a token with other parameters", async () => {
    const add = (by: number) => [{ Update: updateOf("token", "ADD n :by", { ":by": by }) }];
    const token = randomUUID();
    await transact(add(1), token);
    await transact(add(1), token);
    expect(await read("token")).toEqual({ id: "token", n: 1 });
    expect(await refusal(transact(add(2), token))).toMatchObject({ name: "IdempotentParameterMismatchException" });
    await transact(add(1));
    expect(await read("token")).toEqual({ id: "token", n: 2 });
  });
});
