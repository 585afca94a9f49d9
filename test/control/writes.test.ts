/** What a commit may hold. Everything else is refused before anything is sent, by the write's index and the limit. */
import type { DynamoStore, Json, Write } from "cronfence";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { joinWrites } from "../../src/control/writes.ts";
import { controlTable, freshName, useEngine } from "../fixture.ts";
import { openScene } from "./conformance.ts";

const fixture = useEngine("rows", "others");
let store: DynamoStore;
beforeEach(() => {
  store = fixture.faulty();
});
afterEach(() => fixture.proxy.reset());

const put = (id: string, more: object = {}): Write => ({ Put: { TableName: "rows", Item: { id, ...more } } });
const update = (id: string, values: Record<string, unknown> = { ":v": 1 }): Write => ({
  Update: {
    TableName: "rows",
    Key: { id },
    UpdateExpression: "SET v = :v",
    ExpressionAttributeValues: values as Record<string, never>,
  },
});
const remove = (id: string): Write => ({ Delete: { TableName: "rows", Key: { id } } });
const check = (id: string): Write => ({
  ConditionCheck: { TableName: "rows", Key: { id }, ConditionExpression: "attribute_exists(id)" },
});
const kb = (n: number) => "x".repeat(n * 1024);
const many = (n: number, more: object = {}) => Array.from({ length: n }, (_, i) => put(`row-${i}`, more));

/** Refused with this index and a message that has all of `words`, and nothing was sent. */
const refused = (writes: unknown, index: number | undefined, ...words: readonly string[]) =>
  refusedWith(writes, undefined, index, ...words);
const refusedWith = (writes: unknown, watermark: unknown, index: number | undefined, ...words: readonly string[]) => {
  let error: unknown;
  try {
    store.prepare(writes as Write[], watermark as Json);
  } catch (caught) {
    error = caught;
  }
  expect(error).toMatchObject({ code: "COMMIT_REFUSED", name: "CommitRefusedError", index });
  for (const word of words) expect((error as Error).message).toContain(word);
  if (index !== undefined) expect((error as Error).message).toContain(`write ${index}`);
  expect(fixture.proxy.requests).toHaveLength(0);
};

describe("refused before anything is sent:", () => {
  it("more than 99 writes; 99 are fine", () => {
    refused(many(100), 99, "100 writes", "at most 99");
    expect(store.prepare(many(99)).actions).toHaveLength(99);
  });

  it("more than 4 MB in all, naming the write that is too much", () => {
    refused(many(11, { text: kb(390) }), 10, "4194304", "4 MB");
    expect(store.prepare(many(10, { text: kb(390) })).actions).toHaveLength(10);
  });

  it("an item over 400 KB", () => {
    refused([put("a"), put("b", { text: kb(400) })], 1, "409600", "400 KB");
    expect(store.prepare([put("a", { text: kb(399) })]).bytes).toBeGreaterThan(399 * 1024);
  });

  it("an update that sets a value over 400 KB, naming the value", () => {
    refused([update("a", { ":v": kb(401) })], 0, ":v", "400 KB");
  });

  it.each<[string, object]>([
    ["text of more than a byte a character", { text: "ж".repeat(201 * 1024) }],
    ["binary", { data: new Uint8Array(401 * 1024) }],
    ["lists", { list: Array.from({ length: 5 }, () => kb(81)) }],
    ["maps", { map: { a: { b: kb(401) } } }],
    ["sets", { set: new Set(["a", "b", "c", "d", "e"].map((letter) => letter.repeat(82 * 1024))) }],
    ["many numbers", { numbers: Array.from({ length: 70_000 }, () => 1_234_567_890) }],
    ["long names", { [kb(401)]: 1 }],
  ])("an item that is over 400 KB by %s", (_, more) => {
    refused([put("a", more)], 0, "400 KB");
  });

  it.each<[string, Write[], number]>([
    ["an update and a delete", [update("a"), update("b"), remove("a")], 2],
    ["a check and an update", [check("a"), update("a")], 1],
    ["a put behind a write that names the key", [update("x"), put("a"), put("a")], 2],
    ["a put before a write that names the key", [put("a"), put("b"), remove("a")], 2],
  ])("the same item twice: %s", (_, writes, index) => {
    refused(writes, index, "same item", '"rows"', "only once");
  });

  it("the same item twice where one write names the table and the other its ARN", () => {
    const arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/rows";
    refused([remove("a"), { Delete: { TableName: arn, Key: { id: "a" } } }], 1, "same item");
  });

  it("the same item twice by a key of several attributes, in whatever order, and by binary keys", () => {
    const at = (Key: Record<string, unknown>): Write => ({ Delete: { TableName: "wide", Key: Key as never } });
    refused([at({ a: 1, b: new Uint8Array([7]) }), at({ b: new Uint8Array([7]), a: 1 })], 1, "same item");
    store.prepare([at({ a: 1, b: new Uint8Array([7]) }), at({ a: 1, b: new Uint8Array([8]) }), at({ a: "1", b: 7 })]);
  });

  it("a write to the control table, by name and by ARN", () => {
    const arn = `arn:aws:dynamodb:eu-west-1:123456789012:table/${controlTable}`;
    for (const TableName of [controlTable, arn]) {
      for (const write of [
        { Put: { TableName, Item: { pk: "x", sk: "y" } } },
        { Update: { TableName, Key: { pk: "x", sk: "y" }, UpdateExpression: "SET a = b" } },
        { Delete: { TableName, Key: { pk: "x", sk: "y" } } },
        { ConditionCheck: { TableName, Key: { pk: "x", sk: "y" }, ConditionExpression: "a = b" } },
      ]) {
        refused([put("a"), write], 1, controlTable, "control table");
      }
    }
  });

  it("a write to the control table where the store itself was given the ARN", () => {
    store = fixture.faulty({ table: `arn:aws:dynamodb:eu-west-1:123456789012:table/${controlTable}` });
    refused([{ Delete: { TableName: controlTable, Key: { pk: "x", sk: "y" } } }], 0, "control table");
  });

  it.each<[string, unknown, string]>([
    ["none of the four", {}, "an object with nothing"],
    ["something else", { Get: {} }, "an object with Get"],
    ["two of the four", { ...put("a"), ...remove("b") }, "Put and Delete"],
    ["nothing", undefined, "undefined"],
    ["null", null, "null"],
    ["a null write", { Put: null }, "Put"],
    ["text", "Put", "string"],
    ["a list", [put("b")], "an array"],
  ])("an entry that is %s", (_, entry, word) => {
    refused([put("a"), entry], 1, "exactly one of Put, Update, Delete, ConditionCheck", word);
  });

  it("what isn't a list of writes", () => {
    refused(put("a"), undefined, "must be an array", "an object with Put");
    refused(null, undefined, "must be an array", "null");
  });

  it("a write without table, key or item", () => {
    refused([{ Put: { Item: { id: "a" } } }], 0, "TableName is missing");
    refused([{ Put: { TableName: "", Item: { id: "a" } } }], 0, "TableName is missing");
    refused([{ Put: { TableName: "rows" } }], 0, "has no Item");
    refused([{ Put: { TableName: "rows", Key: { id: "a" } } }], 0, "has no Item");
    refused([{ Update: { TableName: "rows", UpdateExpression: "SET a = b" } }], 0, "has no Key");
    refused([{ Delete: { TableName: "rows", Key: null } }], 0, "has no Key");
    refused([{ ConditionCheck: { TableName: "rows", Key: "a" } }], 0, "has no Key");
  });

  it.each<[string, Write]>([
    ["undefined in an item", put("b", { text: undefined })],
    ["undefined deep in an item", put("b", { list: [{ text: undefined }] })],
    ["undefined in a key", { Delete: { TableName: "rows", Key: { id: undefined as never } } }],
    ["undefined in a value", update("b", { ":v": undefined })],
    ["a class instance", put("b", { at: new Date(0) })],
    ["NaN", put("b", { n: Number.NaN })],
    ["a number that would be rounded", put("b", { n: 2 ** 60 })],
  ])("a value that DynamoDB can't hold: %s", (_, write) => {
    refused([put("a"), write], 1, "can't hold");
  });

  const cycle: Record<string, unknown> = { a: {} };
  cycle.a = { back: cycle };
  class Cursor {
    at = 1;
  }
  it.each<[string, unknown, string]>([
    ["a date", new Date(0), "$ is a Date instance"],
    ["a date inside", { at: [1, new Date(0)] }, "$.at[1] is a Date instance"],
    ["not a number", { n: Number.NaN }, "$.n is NaN"],
    ["infinite", Number.POSITIVE_INFINITY, "$ is Infinity"],
    ["undefined inside", { at: undefined }, "$.at is undefined"],
    ["a hole in a list", new Array(1), "$[0] is undefined"],
    ["a cycle", cycle, "$.a.back refers back to itself"],
    ["a class instance", { c: new Cursor() }, "$.c is a Cursor instance"],
    ["a map", new Map(), "$ is a Map instance"],
    ["a bigint", [1n], "$[0] is a bigint"],
    ["a function", () => 1, "$ is a function"],
    ["a symbol", Symbol("s"), "$ is a symbol"],
    ["binary", new Uint8Array(2), "$ is a Uint8Array instance"],
    ["too deep", JSON.parse("[".repeat(40) + "]".repeat(40)), "levels deep"],
  ])("a watermark that isn't JSON: %s", (_, watermark, where) => {
    refusedWith([], watermark, undefined, "watermark isn't JSON", where);
  });

  it("a watermark over 8 KB as JSON, counted in bytes", () => {
    refusedWith([], kb(8), undefined, "8194 bytes", "8192", "8 KB");
    refusedWith([], "ж".repeat(5 * 1024), undefined, "8 KB");
    store.prepare([], kb(8).slice(2));
  });

  it("nothing of what is JSON", () => {
    for (const watermark of [null, 0, -1.5, "", false, [], {}, { a: [{ b: null }] }, Object.create(null)]) {
      store.prepare([], watermark);
    }
    const shared = { a: 1 };
    store.prepare([], [shared, shared]);
  });
});

describe("two puts of one item in a table whose key isn't known yet", () => {
  const twice = [put("a"), put("b"), put("a")];

  it("are refused by DynamoDB, and the error names both all the same; later it comes before anything is sent", async () => {
    const scene = openScene(fixture.store);
    const granted = await scene.grant();
    const prepared = store.prepare(twice);
    const commit = scene.through(store).commit(granted, [], { writes: prepared });
    await expect(commit).rejects.toMatchObject({
      code: "COMMIT_REFUSED",
      index: 2,
      message: expect.stringMatching(/write 2 .*same item of "rows" as write 0/),
    });
    expect((await scene.read()).run?.seq).toBe(0);
    fixture.proxy.reset();
    refused(twice, 2, "write 0");
  });

  it("are refused in a finish too, which ends nothing", async () => {
    const scene = openScene(fixture.store);
    const granted = await scene.grant();
    const writes = store.prepare(twice);
    await expect(scene.through(store).finish(granted, "succeeded", { writes })).rejects.toMatchObject({
      code: "COMMIT_REFUSED",
      index: 2,
    });
    expect((await scene.read()).owner).toBe(granted.lease.owner);
  });

  it("whose table can't be described say what DynamoDB said", async () => {
    const scene = openScene(fixture.store);
    const granted = await scene.grant();
    fixture.proxy.when("DescribeTable", { error: "AccessDeniedException" });
    const commit = scene.through(store).commit(granted, [], { writes: store.prepare(twice) });
    await expect(commit).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
      cause: { name: "ValidationException", message: expect.stringContaining("multiple operations on one item") },
    });
  });

  it("aren't taken for one because an earlier write named a wrong key, once DynamoDB has refused that", async () => {
    const scene = openScene(fixture.store);
    const granted = await scene.grant();
    const through = scene.through(store);
    const wrong: Write = { Delete: { TableName: "rows", Key: { name: "a" } } };
    expect(await through.commit(granted, [wrong])).toMatchObject({ rejected: { code: "WRITE_REJECTED" } });
    const ids = [freshName(), freshName()];
    const writes = ids.map((id) => put(id, { name: "both" }));
    const { seq } = (await scene.read()).run!;
    expect(await through.commit(granted, writes, { seq })).toEqual({ seq: seq + 1 });
    expect(
      await through.commit(
        granted,
        ids.map((id) => put(id)),
        { seq: seq + 1 },
      ),
    ).toEqual({ seq: seq + 2 });
  });
});

describe("writes", () => {
  it("are sent as they are, with native values turned into DynamoDB's", () => {
    const write = {
      Put: {
        TableName: "rows",
        Item: { id: "a", n: 1, list: [true, null], set: new Set(["x"]) },
        ConditionExpression: "#n = :n",
        ExpressionAttributeNames: { "#n": "n" },
        ExpressionAttributeValues: { ":n": 2 },
        ReturnValuesOnConditionCheckFailure: "ALL_OLD" as const,
      },
    };
    expect(store.prepare([write]).actions).toEqual([
      {
        Put: {
          ...write.Put,
          Item: { id: { S: "a" }, n: { N: "1" }, list: { L: [{ BOOL: true }, { NULL: true }] }, set: { SS: ["x"] } },
          ExpressionAttributeValues: { ":n": { N: "2" } },
        },
      },
    ]);
  });

  it("joined keep their order, their size and what they touch", () => {
    const [a, b] = [store.prepare([update("a")]), store.prepare([put("b"), put("c")])];
    const joined = joinWrites([a, b]);
    expect(joined.actions).toEqual([...a.actions, ...b.actions]);
    expect(joined).toMatchObject({ bytes: a.bytes + b.bytes, touched: [...a.touched, ...b.touched] });
  });
});
