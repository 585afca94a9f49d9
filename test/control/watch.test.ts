import { UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { dynamoStore } from "cronfence";
import { afterEach, describe, expect, it } from "vitest";
import { clientFor, controlTable } from "../fixture.ts";
import { minute, openScene } from "./conformance.ts";
import { watchConformance } from "./conformance-watch.ts";
import { useDynamo } from "./dynamo.ts";

const dynamo = useDynamo();
watchConformance(dynamo);
afterEach(() => dynamo.fixture.proxy.reset());

const created = async (count: number) => {
  const scenes = Array.from({ length: count }, () => openScene(dynamo.store));
  for (const { store, job, clock, budget } of scenes) await store.create(job, clock.now(), budget());
  return { scenes, names: scenes.map(({ job }) => job), budget: scenes[0]!.budget };
};

describe("Reading many control items of DynamoDB", () => {
  it("asks again for what was left unprocessed, and says so when that never ends", async () => {
    const { names, budget } = await created(5);
    let left = 2;
    const { client } = dynamo.fixture;
    const send = client.send.bind(client);
    // The engine never leaves anything, so this client asks for one key only, and says that it did.
    const partial = Object.assign(Object.create(client), {
      send: async (command: { input: { RequestItems: Record<string, { Keys: object[] }> } }, ...rest: unknown[]) => {
        const [first, ...others] = command.input.RequestItems[controlTable]!.Keys;
        if (left-- <= 0) return send(command as never, ...(rest as []));
        command.input.RequestItems[controlTable]!.Keys = [first!];
        const answer = (await send(command as never, ...(rest as []))) as object;
        return { ...answer, UnprocessedKeys: { [controlTable]: { Keys: others } } };
      },
    });
    const store = dynamoStore({ client: partial, table: controlTable });
    expect([...(await store.readMany(names, budget())).keys()].sort()).toEqual([...names].sort());
    left = Number.POSITIVE_INFINITY;
    await expect(store.readMany(names, budget(0))).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
      cause: { message: "DynamoDB left 4 of them unprocessed, throttled" },
    });
  });

  it("takes a hundred a request, tries again when it is throttled, and fails as a whole where it isn't allowed", async () => {
    const { names, budget } = await created(1);
    const { proxy } = dynamo.fixture;
    const store = dynamoStore({ client: clientFor(proxy.endpoint), table: controlTable });
    const many = [...names, ...Array.from({ length: 149 }, (_, index) => `unknown-${index}`)];
    proxy.next("BatchGetItem", "throttle");
    expect((await store.readMany(many, budget())).size).toBe(1);
    expect(proxy.requests.map(({ body }) => body.RequestItems[controlTable].Keys.length)).toEqual([100, 100, 50]);
    proxy.next("BatchGetItem", { error: "AccessDeniedException" });
    await expect(store.readMany(names, budget())).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
  });

  it("gives an item that can't be decoded as an error, beside the others", async () => {
    const { scenes, names, budget } = await created(2);
    await dynamo.fixture.client.send(
      new UpdateItemCommand({
        TableName: controlTable,
        Key: marshall({ pk: `job#${names[0]}`, sk: "control" }),
        UpdateExpression: "SET watermark = :broken",
        ExpressionAttributeValues: marshall({ ":broken": "{" }),
      }),
    );
    const read = await dynamo.store.readMany(names, budget());
    expect(read.get(names[0]!)).toBeInstanceOf(Error);
    expect(read.get(names[1]!)).toEqual(await scenes[1]!.read());
  });
});

describe("The note of a start", () => {
  it("is recognised as its own when the reply was lost (as in case 13)", async () => {
    const { names, budget } = await created(1);
    const lost = dynamo.fixture.proxy.next("UpdateItem", "lost-reply");
    const store = dynamoStore({ client: clientFor(dynamo.fixture.proxy.endpoint), table: controlTable });
    const healed = { tick: 60 * minute, at: 61 * minute, times: 1, by: "w" };
    expect(await store.noteHealed(names[0]!, healed, budget())).toBe("noted");
    expect(lost.hits).toBe(1);
    expect(dynamo.fixture.proxy.requests).toHaveLength(2);
  });
});
