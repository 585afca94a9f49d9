/** The main job by itself; what it survives is in test/drills. */
import { UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { type DynamoStore, runJob } from "cronfence";
import { dumpTable, settableClock } from "cronfence/testing";
import { beforeAll, beforeEach, expect, it } from "vitest";
import { cartExpiring, job } from "../../handlers/expire-carts.ts";
import { putAll } from "../../src/local/put-all.ts";
import { createCartTables, tickMs } from "../drills/carts.ts";
import { silentLog, useEngine } from "../fixture.ts";

const fixture = useEngine();
let tick = Date.parse("2026-03-02T06:00:00Z");
beforeAll(() => createCartTables(fixture.client));
beforeEach(() => {
  tick += tickMs;
});

/** A cart that expires so many seconds before the tick. */
const cart = (secondsBefore: number, id: string) => ({
  ...cartExpiring(tick - secondsBefore * 1_000, `${tick}-${id}`),
});
const put = (...carts: object[]) => putAll(fixture.client, "carts", carts as Record<string, unknown>[]);
const run = (store: DynamoStore = fixture.store) =>
  runJob(job, { kind: "schedule", tick }, { store, clock: settableClock(tick), log: silentLog });

const statuses = async () => {
  const carts = await dumpTable(fixture.client, "carts");
  const ours = carts.filter(({ id }) => String(id).startsWith(`${tick}-`));
  return Object.fromEntries(ours.map(({ id, status }) => [String(id).replace(`${tick}-`, ""), status]));
};
const audited = async () => {
  const rows = await dumpTable(fixture.client, "cart-audit");
  return rows.filter(({ id }) => String(id).startsWith(`${tick}-`));
};
const order = (id: string) =>
  fixture.client.send(
    new UpdateItemCommand({
      TableName: "carts",
      Key: { id: { S: `${tick}-${id}` } },
      UpdateExpression: "SET #status = :ordered",
      ExpressionAttributeNames: { "#status": "status" },
      ExpressionAttributeValues: { ":ordered": { S: "ordered" } },
    }),
  );

it("expires the carts that are due for half a minute, each with an audit row, and leaves the others", async () => {
  await put(cart(60, "due"), cart(31, "just due"), cart(29, "settling"), cart(-60, "to come"));
  const report = await run();
  expect(report).toMatchObject({ outcome: "succeeded", items: 2 });
  expect(await statuses()).toEqual({ due: "expired", "just due": "expired", settling: "open", "to come": "open" });
  expect(await audited()).toEqual(
    ["due", "just due"].map((id) => ({
      id: `${tick}-${id}`,
      runId: report.run,
      fence: report.fence,
      tickId: new Date(tick).toISOString(),
      times: 1,
    })),
  );
});

it("passes over a cart that was ordered", async () => {
  await put(cart(62, "a"), cart(61, "b"), cart(60, "c"));
  await order("b");
  expect(await run()).toMatchObject({ outcome: "succeeded" });
  expect(await statuses()).toEqual({ a: "expired", b: "ordered", c: "expired" });
  expect(await audited()).toHaveLength(2);
});

it("doesn't overrule a customer who orders between its read and its write: that cart is skipped", async () => {
  await put(cart(62, "a"), cart(61, "b"), cart(60, "c"));
  const { tables } = fixture.store;
  const late: DynamoStore = {
    ...fixture.store,
    tables: {
      ...tables,
      query: async (...request) => {
        const page = await tables.query(...request);
        await order("b");
        return page;
      },
    },
  };
  expect(await run(late)).toMatchObject({ outcome: "succeeded", itemsSkipped: 1 });
  expect(await statuses()).toEqual({ a: "expired", b: "ordered", c: "expired" });
  expect(await audited()).toHaveLength(2);
});
