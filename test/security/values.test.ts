/** What a job commits comes back as it was, or is refused before anything is written. */
import { GetItemCommand } from "@aws-sdk/client-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import { cron, defineJob, dynamoStore, type Run, runJob, type Write } from "cronfence";
import { settableClock } from "cronfence/testing";
import { describe, expect, it } from "vitest";
import type { Json } from "../../src/json.ts";
import { controlTable, freshName, useEngine } from "../fixture.ts";
import { recordedLog } from "../recorded-log.ts";
import { hostileTexts, loneSurrogate, nested } from "./hostile.ts";

const engine = useEngine("things");
const now = Date.UTC(2026, 2, 1, 11, 25);

const go = async (run: (run: Run) => unknown) => {
  const job = defineJob({ name: freshName(), timeout: "1m", schedule: cron("*/5 * * * *"), run });
  const clock = settableClock(now);
  const report = await runJob(
    job,
    { kind: "schedule", tick: now },
    { store: engine.store, clock, log: recordedLog().log },
  );
  const state = await engine.store.read(job.name, { clock, random: () => 0, until: now + 60_000 });
  return { report, state };
};

const put = (item: Record<string, unknown>): Write => ({ Put: { TableName: "things", Item: item as never } });

const stored = async (id: string) => {
  const { Item } = await engine.client.send(
    new GetItemCommand({ TableName: "things", Key: marshall({ id }), ConsistentRead: true }),
  );
  return Item && unmarshall(Item);
};

/** As JSON gives it, so that `__proto__` is a key like others. */
const keyed = (key: string, value: Json): Record<string, Json> =>
  JSON.parse(`{${JSON.stringify(key)}:${JSON.stringify(value)}}`);

describe("a watermark", () => {
  const watermarks: readonly Json[] = [
    ...hostileTexts,
    loneSurrogate,
    ...hostileTexts.map((text) => keyed(text, { polluted: text })),
    keyed("toJSON", "x"),
    nested(30) as Json,
    Number.MAX_VALUE,
    -0.1,
    null,
  ];

  it("of whatever text or key comes back as it was", async () => {
    for (const watermark of watermarks) {
      const { report, state } = await go((run) => run.commit([], { watermark }));
      expect(report.outcome).toBe("succeeded");
      expect(JSON.stringify(state?.watermark)).toBe(JSON.stringify(watermark));
    }
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it.each([
    ["not a number", Number.NaN],
    ["infinite", Number.POSITIVE_INFINITY],
    ["a bigint", 1n],
    ["a date out of range", new Date(Number.NaN)],
    ["nested ten thousand levels deep", nested(10_000)],
    ["a megabyte long", "x".repeat(2 ** 20)],
    ["one that refers back to itself", circle()],
    ["keyed by a megabyte", { ["x".repeat(2 ** 20)]: undefined }],
  ])("that is %s is refused before anything is written, by a short message", async (_, watermark) => {
    const { report, state } = await go((run) => run.commit([put({ id: "refused" })], { watermark: watermark as Json }));
    expect(report).toMatchObject({ outcome: "failed", commits: 0, error: { code: "COMMIT_REFUSED" } });
    expect(report.error?.message.length).toBeLessThanOrEqual(2_000);
    expect(state?.watermark).toBeUndefined();
    expect(await stored("refused")).toBeUndefined();
  });
});

describe("an item", () => {
  it("with whatever key, attribute name and text comes back as it was, or is refused before anything is written", async () => {
    for (const [index, text] of hostileTexts.entries()) {
      // What is left out here is refused: see below. DynamoDB has no empty attribute names.
      const name = text === "" || text === "__proto__" ? "plain" : text;
      const id = `${index} ${text}`;
      const item = { ...keyed(name, { nested: [text] }), id };
      const { report } = await go((run) => run.commit([put(item)]));
      if (text === "constructor") {
        // The SDK takes such an object for an instance of some class.
        expect(report).toMatchObject({ outcome: "failed", error: { code: "COMMIT_REFUSED" } });
        expect(await stored(id)).toBeUndefined();
        continue;
      }
      expect({ text, outcome: report.outcome }).toEqual({ text, outcome: "succeeded" });
      expect(await stored(id)).toEqual(item);
    }
  });

  it.each([
    ["an attribute called __proto__", { ...keyed("__proto__", { polluted: 1 }) }],
    ["one within another", { a: [keyed("__proto__", { polluted: 1 })] }],
    ["a number that isn't one", { a: Number.NaN }],
    ["an infinite number", { a: Number.NEGATIVE_INFINITY }],
    ["a number that can't be kept exactly", { a: 1e300 }],
    ["a symbol", { a: Symbol("x") }],
    ["a date", { a: new Date(8.64e15) }],
    ["a value nested ten thousand levels deep", { a: nested(10_000) }],
    ["a reference back to itself", { a: circle() }],
    ["a text of a megabyte", { a: "x".repeat(2 ** 20) }],
  ])("with %s is refused before anything is written, by a short message", async (_, attributes) => {
    // Not by a spread, which would leave `__proto__` to what it does.
    const item = Object.defineProperties({ id: "refused" }, Object.getOwnPropertyDescriptors(attributes));
    const { report } = await go((run) => run.commit([put({ id: "other" }), put(item)]));
    expect(report).toMatchObject({ outcome: "failed", commits: 0, error: { code: "COMMIT_REFUSED" } });
    expect(report.error?.message.length).toBeLessThanOrEqual(2_000);
    expect(await stored("refused")).toBeUndefined();
    expect(await stored("other")).toBeUndefined();
  });

  it("with a number of a hundred digits is refused by DynamoDB, and nothing else of its commit is written", async () => {
    const large = put({ id: "refused", a: BigInt("9".repeat(100)) });
    const { report } = await go((run) => run.commit([put({ id: "other" }), large]));
    expect(report).toMatchObject({ outcome: "failed", commits: 0 });
    expect(await stored("other")).toBeUndefined();
  });
});

describe("names in expressions", () => {
  it("can't reach the control item's condition: a commit carries them beside it, never in it", async () => {
    const update: Write = {
      Update: {
        TableName: "things",
        Key: { id: "named" },
        UpdateExpression: "SET #fence = :fence, #owner = :me",
        ExpressionAttributeNames: { "#fence": "fence", "#owner": "owner" },
        ExpressionAttributeValues: { ":fence": 0, ":me": "somebody" },
      },
    };
    const { report, state } = await go((run) => run.commit([update]));
    expect(report.outcome).toBe("succeeded");
    expect(await stored("named")).toEqual({ id: "named", fence: 0, owner: "somebody" });
    expect(state?.fence).toBe(report.fence);
  });

  it.each([
    ["its name", controlTable],
    ["its ARN", `arn:aws:dynamodb:eu-west-1:123456789012:table/${controlTable}`],
    ["an index of it", `arn:aws:dynamodb:eu-west-1:123456789012:table/${controlTable}/index/x`],
  ])("can't be of the control table, by %s", async (_, TableName) => {
    const { report } = await go((run) => run.commit([{ Put: { TableName, Item: { pk: "job#x", sk: "control" } } }]));
    expect(report).toMatchObject({ outcome: "failed", error: { code: "COMMIT_REFUSED" } });
  });

  it("of a control table that can't be one are refused", () => {
    for (const table of ["", "a b", "x".repeat(300), "a\nb", "../x", "__proto__ "]) {
      const make = () => dynamoStore({ client: engine.client, table });
      if (table !== "") expect(make).toThrowError(/must be a DynamoDB table name/);
    }
  });

  it("of jobs that can't be one are refused, by a short message", () => {
    for (const name of [...hostileTexts, loneSurrogate, "x".repeat(2 ** 20), 1n, Symbol("x"), Object.create(null)]) {
      if (name === "__proto__" || name === "constructor" || name === "toString" || name === "hasOwnProperty") continue;
      if (name === "control") continue;
      let message = "";
      try {
        defineJob({ name: name as string, timeout: "1m", run: () => {} });
      } catch (error) {
        message = (error as Error).message;
        expect(error).toMatchObject({ code: "INVALID_OPTIONS" });
      }
      expect(message).toContain("a name of letters, digits, - and _, at most 64 characters");
      expect(message.length).toBeLessThan(500);
    }
  });

  it("of jobs may be those of an object's own fields", async () => {
    for (const name of ["__proto__", "constructor", "toString", "control"]) {
      const job = defineJob({ name, timeout: "1m", run: (run) => run.commit([], { watermark: name }) });
      const clock = settableClock(now);
      const deps = { store: engine.store, clock, log: recordedLog().log };
      expect(await runJob(job, { kind: "manual" }, deps)).toMatchObject({ job: name, outcome: "succeeded" });
      const found = await engine.store.readMany([name], { clock, random: () => 0, until: now + 60_000 });
      expect(found.get(name)).toMatchObject({ job: name, watermark: name });
    }
  });
});

function circle(): unknown {
  const list: unknown[] = [];
  list.push(list);
  return list;
}
