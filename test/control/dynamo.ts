/** The DynamoDB store under the conformance suite's test, with what DynamoDB's own tests need beside it. */
import { DeleteItemCommand, GetItemCommand, PutItemCommand, QueryCommand } from "@aws-sdk/client-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import type { DynamoStore, Write } from "cronfence";
import type { Item } from "cronfence/testing";
import { afterEach, beforeAll } from "vitest";
import { controlTable, type Fixture, useEngine } from "../fixture.ts";
import type { StoreUnderTest } from "./conformance.ts";

export interface DynamoUnderTest extends StoreUnderTest {
  readonly fixture: Fixture;
  /** Behind the fault proxy, whose rules are forgotten after each test. */
  readonly faulty: DynamoStore;
  /** The same, giving up on a request soon: for what is never answered, or too late. */
  readonly hasty: DynamoStore;
  /** The control item as it is kept. */
  controlItem(job: string): Promise<Item>;
  /** Changes the control item behind the store's back; `undefined` takes an attribute away. */
  edit(job: string, changes: Item): Promise<void>;
  /** Everything that is kept of the job. */
  items(job: string): Promise<readonly Item[]>;
}

const rows = "rows";

export const increment = (id: string): Write => ({
  Update: {
    TableName: rows,
    Key: { id },
    UpdateExpression: "ADD #n :one",
    ExpressionAttributeNames: { "#n": "n" },
    ExpressionAttributeValues: { ":one": 1 },
  },
});

export const insert = (id: string): Write => ({
  Put: { TableName: rows, Item: { id, n: 1 }, ConditionExpression: "attribute_not_exists(id)" },
});

export const useDynamo = (): DynamoUnderTest => {
  const fixture = useEngine(rows);
  let faulty: DynamoStore;
  let hasty: DynamoStore;
  beforeAll(() => {
    faulty = fixture.faulty({ requestTimeoutMs: 20_000 });
    hasty = fixture.faulty({ requestTimeoutMs: 150 });
  });
  afterEach(() => fixture.proxy.reset());
  const key = (job: string) => ({ pk: `job#${job}`, sk: "control" });
  const get = async (table: string, Key: Item) => {
    const command = new GetItemCommand({ TableName: table, Key: marshall(Key), ConsistentRead: true });
    const { Item } = await fixture.client.send(command);
    return Item && unmarshall(Item);
  };
  const put = (item: Item) =>
    fixture.client.send(
      new PutItemCommand({ TableName: controlTable, Item: marshall(item, { removeUndefinedValues: true }) }),
    );
  const controlItem = async (job: string) => (await get(controlTable, key(job))) ?? {};
  const items = async (job: string) => {
    const { Items } = await fixture.client.send(
      new QueryCommand({
        TableName: controlTable,
        ConsistentRead: true,
        KeyConditionExpression: "pk = :pk",
        ExpressionAttributeValues: marshall({ ":pk": `job#${job}` }),
      }),
    );
    return (Items ?? []).map((item) => unmarshall(item));
  };
  return {
    fixture,
    get store() {
      return fixture.store;
    },
    get faulty() {
      return faulty;
    },
    get hasty() {
      return hasty;
    },
    increment,
    insert,
    row: async (id) => (await get(rows, { id }))?.n,
    acts: async (job) => (await items(job)).filter(({ sk }) => String(sk).startsWith("act#")),
    backup: async (job) => {
      const item = await controlItem(job);
      return async () => void (await put(item));
    },
    controlItem,
    edit: async (job, changes) => void (await put({ ...(await controlItem(job)), ...changes })),
    items,
  };
};

export const deleteRow = ({ fixture }: DynamoUnderTest, id: string) =>
  fixture.client.send(new DeleteItemCommand({ TableName: rows, Key: marshall({ id }) }));

export const deleteControlItem = ({ fixture }: DynamoUnderTest, job: string) =>
  fixture.client.send(
    new DeleteItemCommand({ TableName: controlTable, Key: marshall({ pk: `job#${job}`, sk: "control" }) }),
  );
