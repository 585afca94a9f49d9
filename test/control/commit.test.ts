import { randomUUID } from "node:crypto";
import { dynamoStore } from "cronfence";
import { describe, expect, it } from "vitest";
import { noWrites } from "../../src/control/writes.ts";
import { expiryMs, type Granted, kept, leaseLost, openScene, type Scene } from "./conformance.ts";
import { commitConformance } from "./conformance-commit.ts";
import { deleteControlItem, deleteRow, increment, insert, useDynamo } from "./dynamo.ts";

const dynamo = useDynamo();
commitConformance(dynamo);

const transactions = () => dynamo.fixture.proxy.requests.filter(({ operation }) => operation === "TransactWriteItems");
const freshRow = () => `row-${randomUUID()}`;
/** A promise, and what resolves it. */
const signal = () => {
  let send = () => {};
  const sent = new Promise<void>((resolve) => (send = resolve));
  return { sent, send };
};

describe("case 22: a commit that was cancelled", () => {
  const other = freshRow();

  it("for a conflict at control is sent again, the same request with the same token", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    const row = freshRow();
    dynamo.fixture.proxy.next("TransactWriteItems", { cancel: ["TransactionConflict", "None"] });
    expect(await scene.through(dynamo.faulty).commit(granted, [increment(row)])).toEqual({ seq: 1 });
    expect(await dynamo.row(row)).toBe(1);
    const [first, second] = transactions();
    expect(second?.body).toEqual(first?.body);
    expect(first?.body.ClientRequestToken).toMatch(/^[\w-]{16,36}$/);
  });

  it("for a conflict at a user's item is sent again too", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    dynamo.fixture.proxy.next("TransactWriteItems", { cancel: ["None", "TransactionConflict"] });
    expect(await scene.through(dynamo.faulty).commit(granted, [increment(freshRow())])).toEqual({ seq: 1 });
  });

  it("for the condition at control stops for good, whatever the other reasons are", async () => {
    const scene = openScene(dynamo.store);
    const a = await scene.grant();
    await scene.grant({ takeover: { fence: a.lease.fence } });
    const row = freshRow();
    await scene.commit({ ...a, lease: (await scene.grant({ takeover: { fence: a.lease.fence + 1 } })).lease }, [
      insert(row),
    ]);
    const commit = scene.through(dynamo.faulty).commit(a, [insert(row)]);
    await expect(commit).rejects.toMatchObject({
      name: "LeaseLostError",
      code: "LEASE_LOST",
      job: scene.job,
      runId: a.lease.run.id,
      fence: a.lease.fence,
      lastCommit: "not applied",
    });
    expect(transactions()).toHaveLength(1);
  });

  it("for the condition of the third write names it, with the item as it stood where that was asked for", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    const [taken, fresh] = [freshRow(), freshRow()];
    await scene.commit(granted, [insert(taken)]);
    const asked = { Put: { ...insert(taken).Put!, ReturnValuesOnConditionCheckFailure: "ALL_OLD" as const } };
    const writes = [increment(fresh), insert(other), asked, insert(fresh)].slice(0, 3);
    const { seq, rejected } = await scene.through(dynamo.faulty).commit(granted, writes, { seq: 1 });
    expect(seq).toBe(1);
    expect(rejected).toMatchObject({
      code: "WRITE_REJECTED",
      job: scene.job,
      rejected: [{ index: 2, code: "ConditionalCheckFailed", oldItem: { id: taken, n: 1 } }],
      message: expect.stringContaining("write 2: ConditionalCheckFailed"),
    });
    expect(transactions()).toHaveLength(1);
    expect(await dynamo.row(fresh)).toBeUndefined();
    const unasked = await scene.commit(granted, [insert(taken)], { seq: 1 });
    expect(unasked.rejected?.rejected[0]).not.toHaveProperty("oldItem");
  });

  it("for conditions of several writes names them all", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    const rows = [freshRow(), freshRow()];
    await scene.commit(granted, rows.map(insert));
    const { rejected } = await scene.commit(granted, [insert(rows[0]!), increment(freshRow()), insert(rows[1]!)], {
      seq: 1,
    });
    expect(rejected?.rejected.map(({ index }) => index)).toEqual([0, 2]);
  });

  it("for conflict and throttling backs off inside its budget, and then fails without doubt", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    const before = await kept(scene);
    const row = freshRow();
    const rule = dynamo.fixture.proxy.when("TransactWriteItems", {
      cancel: ["TransactionConflict", "ThrottlingError"],
    });
    const from = scene.clock.now();
    await expect(scene.through(dynamo.faulty, 5_000).commit(granted, [increment(row)])).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
      cause: { name: "TransactionCanceledException" },
    });
    // After 50, 100, 200, 400, 800 and 1,600 ms; two seconds more would be past the budget.
    expect([rule.hits, scene.clock.now() - from]).toEqual([7, 3_150]);
    expect(await kept(scene)).toEqual(before);
    // No doubt: the same count can be committed next.
    rule.remove();
    expect(await scene.commit(granted, [increment(row)])).toEqual({ seq: 1 });
  });

  it("for a validation error at a write fails now, and names it", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    const row = freshRow();
    const half = "x".repeat(250 * 1024);
    const grow = (name: string) => ({
      Update: {
        TableName: "rows",
        Key: { id: row },
        UpdateExpression: `SET ${name} = :half`,
        ExpressionAttributeValues: { ":half": half },
      },
    });
    await scene.commit(granted, [grow("a")]);
    const { seq, rejected } = await scene
      .through(dynamo.faulty)
      .commit(granted, [increment(freshRow()), grow("b")], { seq: 1 });
    expect(seq).toBe(1);
    expect(rejected?.rejected).toMatchObject([{ index: 1, code: "ValidationError" }]);
    expect(transactions()).toHaveLength(1);
  });

  it("for a validation error of the whole fails now", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    const rule = dynamo.fixture.proxy.when("TransactWriteItems", { error: "ValidationException", message: "no" });
    await expect(scene.through(dynamo.faulty).commit(granted)).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
      cause: { name: "ValidationException", message: "no" },
    });
    expect(rule.hits).toBe(1);
  });
});

it("says which table is missing, and what makes it", async () => {
  const store = dynamoStore({ client: dynamo.fixture.client, table: "no-such-table" });
  const scene = openScene(store);
  await expect(scene.acquire()).rejects.toMatchObject({
    code: "STORE_UNAVAILABLE",
    message: expect.stringContaining("npx cronfence table create --table no-such-table"),
  });
});

describe("case 24: on a server that ignores tokens a commit", () => {
  it("that is applied and repeated is applied once, because of seq, and known by its token", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    const row = freshRow();
    dynamo.fixture.proxy.when("TransactWriteItems", "strip-token");
    dynamo.fixture.proxy.next("TransactWriteItems", { duplicate: "second" });
    expect(await scene.through(dynamo.faulty).commit(granted, [increment(row)])).toEqual({ seq: 1 });
    expect(transactions()[0]?.replies.map(({ status }) => status)).toEqual([200, 400]);
    expect(await dynamo.row(row)).toBe(1);
  });

  it("whose reply is lost is known by its token when it is tried again", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    const row = freshRow();
    dynamo.fixture.proxy.when("TransactWriteItems", "strip-token");
    dynamo.fixture.proxy.next("TransactWriteItems", "lost-reply");
    expect(await scene.through(dynamo.faulty).commit(granted, [insert(row)])).toEqual({ seq: 1 });
    expect(transactions().map(({ applied }) => applied)).toEqual([true, false]);
    expect(await scene.commit(granted, [], { seq: 1 })).toEqual({ seq: 2 });
  });

  it("whose count another commit of the run has taken isn't mistaken for it", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    const row = freshRow();
    dynamo.fixture.proxy.when("TransactWriteItems", "strip-token");
    dynamo.fixture.proxy.next("TransactWriteItems", [{ before: () => scene.commit(granted) }, "drop"]);
    await expect(scene.through(dynamo.faulty).commit(granted, [increment(row)])).rejects.toMatchObject({
      code: "LEASE_LOST",
    });
    expect(await dynamo.row(row)).toBeUndefined();
  });

  it("that the network replays later is refused", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    const row = freshRow();
    await scene.through(dynamo.faulty).commit(granted, [increment(row)]);
    const late = { ...transactions()[0]! };
    dynamo.fixture.proxy.next("TransactWriteItems", ["strip-token", { duplicate: "second" }]);
    await scene.through(dynamo.faulty).commit(granted, [increment(row)], { seq: 1 });
    await dynamo.fixture.proxy.replay(transactions()[0]!);
    expect(late.applied).toBe(true);
    expect(await dynamo.row(row)).toBe(2);
  });
});

describe("a commit in doubt whose write is then rejected", () => {
  /** The first try is held back; the second finds the row taken. */
  const doubted = async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    const row = freshRow();
    await scene.commit(granted, [insert(row)]);
    const { sent, send } = signal();
    const first = dynamo.fixture.proxy.next("TransactWriteItems", { delay: sent });
    const settled = async () => {
      send();
      const late = await first.hit;
      await late.settled;
      return late.applied;
    };
    return { scene, granted, row, arrive: settled };
  };

  it("is sealed first: the try in doubt can't be applied any more, however late it arrives", async () => {
    const { scene, granted, row, arrive } = await doubted();
    const result = await scene.through(dynamo.hasty).commit(granted, [insert(row)], { seq: 1, watermark: "late" });
    expect(result).toMatchObject({ seq: 2, rejected: { rejected: [{ index: 0 }] } });
    await deleteRow(dynamo, row);
    expect(await arrive()).toBe(false);
    expect(await dynamo.row(row)).toBeUndefined();
    const state = await scene.read();
    expect([state.watermark, state.run?.seq, state.run?.items]).toEqual([undefined, 2, 1]);
    expect(await scene.commit(granted, [insert(row)], { seq: 2 })).toEqual({ seq: 3 });
  });

  it("that arrives before it is sealed was applied, and is reported so", async () => {
    const { scene, granted, row, arrive } = await doubted();
    const isSeal = ({ operation, body }: { operation: string; body: { TransactItems?: unknown[] } }) =>
      operation === "TransactWriteItems" && body.TransactItems?.length === 1;
    const before = async () => {
      await deleteRow(dynamo, row);
      expect(await arrive()).toBe(true);
    };
    const seal = dynamo.fixture.proxy.next(isSeal, { before });
    expect(await scene.through(dynamo.hasty).commit(granted, [insert(row)], { seq: 1 })).toEqual({ seq: 2 });
    expect(seal.hits).toBe(1);
    expect(await dynamo.row(row)).toBe(1);
  });

  it("comes through a seal whose own reply is lost", async () => {
    const { scene, granted, row, arrive } = await doubted();
    const isSeal = ({ body }: { body: { TransactItems?: unknown[] } }) => body.TransactItems?.length === 1;
    dynamo.fixture.proxy.when(isSeal, "strip-token");
    dynamo.fixture.proxy.next(isSeal, "lost-reply");
    expect(await scene.through(dynamo.hasty).commit(granted, [insert(row)], { seq: 1 })).toMatchObject({
      seq: 2,
      rejected: { code: "WRITE_REJECTED" },
    });
    expect(await arrive()).toBe(false);
  });

  it("whose seal never gets through stays unknown", async () => {
    const { scene, granted, row, arrive } = await doubted();
    dynamo.fixture.proxy.when(({ body }) => body.TransactItems?.length === 1, "throttle");
    const commit = scene.through(dynamo.hasty, 2_000).commit(granted, [insert(row)], { seq: 1 });
    await expect(commit).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN", operation: "commit" });
    await arrive();
  });

  it("and whose lease is lost before it is sealed says what became of it", async () => {
    const { scene, granted, row, arrive } = await doubted();
    const before = () => scene.grant({ takeover: { fence: granted.lease.fence } });
    dynamo.fixture.proxy.next(({ body }) => body.TransactItems?.length === 1, { before });
    await expect(scene.through(dynamo.hasty).commit(granted, [insert(row)], { seq: 1 })).rejects.toEqual(
      leaseLost("not applied"),
    );
    await deleteRow(dynamo, row);
    expect(await arrive()).toBe(false);
  });

  it("without doubt needs no seal: one request", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    const row = freshRow();
    await scene.commit(granted, [insert(row)]);
    const result = await scene.through(dynamo.faulty).commit(granted, [insert(row)], { seq: 1 });
    expect(result).toMatchObject({ seq: 1, rejected: { code: "WRITE_REJECTED" } });
    expect(transactions()).toHaveLength(1);
  });
});

describe("a commit that arrives late", () => {
  /** Sent once, held back, and given up: its outcome is unknown. */
  const givenUp = async (strip = false) => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    const row = freshRow();
    const { sent, send } = signal();
    const rule = dynamo.fixture.proxy.next("TransactWriteItems", [
      { delay: sent },
      ...(strip ? ["strip-token" as const] : []),
    ]);
    const commit = scene.through(dynamo.hasty, 0).commit(granted, [increment(row)], { watermark: "late" });
    await expect(commit).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN", job: scene.job, operation: "commit" });
    const arrive = async () => {
      send();
      const late = await rule.hit;
      await late.settled;
      return late.applied;
    };
    return { scene, granted, row, arrive };
  };
  const expectNothingOf = async (scene: Scene, row: string, arrive: () => Promise<boolean>) => {
    const before = await kept(scene);
    expect(await arrive()).toBe(false);
    expect(await kept(scene)).toEqual(before);
    expect(await dynamo.row(row)).toBeUndefined();
  };

  it("after its run has ended is refused", async () => {
    const { scene, granted, row, arrive } = await givenUp();
    expect((await scene.finish(granted, "failed")).kind).toBe("finished");
    await expectNothingOf(scene, row, arrive);
  });

  it("after a successor was granted is refused", async () => {
    const { scene, row, arrive } = await givenUp();
    scene.clock.advance(expiryMs);
    await scene.grant();
    await expectNothingOf(scene, row, arrive);
  });

  it("after its run was cancelled is refused", async () => {
    const { scene, row, arrive } = await givenUp();
    await scene.cancel();
    await expectNothingOf(scene, row, arrive);
  });

  it("after it was tried again and applied changes nothing", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    const row = freshRow();
    const { sent, send } = signal();
    const rule = dynamo.fixture.proxy.next("TransactWriteItems", [{ delay: sent }, "strip-token"]);
    expect(await scene.through(dynamo.hasty).commit(granted, [increment(row)])).toEqual({ seq: 1 });
    send();
    const late = await rule.hit;
    await late.settled;
    expect([late.applied, await dynamo.row(row)]).toEqual([false, 1]);
  });

  it("before its run ends is found by the finish, which counts it", async () => {
    const { scene, granted, row, arrive } = await givenUp();
    expect(await arrive()).toBe(true);
    const found = await scene.finish(granted, "failed");
    expect(found).toMatchObject({ kind: "late_commit", state: { watermark: "late", run: { seq: 1 } } });
    expect((await scene.finish(granted, "failed", { seq: 1 })).kind).toBe("finished");
    expect(await dynamo.row(row)).toBe(1);
  });
});

describe("a commit that finds its lease lost, with an earlier try in doubt, says that it was", () => {
  /** The first try is applied or not, its reply is lost, and then something happens before it is tried again. */
  const lost = async (
    applied: boolean,
    happens: (scene: Scene, granted: Granted) => Promise<unknown>,
    more: (scene: Scene) => void = () => {},
  ) => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    const row = freshRow();
    dynamo.fixture.proxy.when("TransactWriteItems", "strip-token");
    const hook = () => happens(scene, granted);
    dynamo.fixture.proxy.next(
      "TransactWriteItems",
      applied ? [{ after: hook }, "lost-reply"] : [{ before: hook }, "drop"],
    );
    more(scene);
    const error = await scene
      .through(dynamo.faulty)
      .commit(granted, [increment(row)])
      .catch((caught) => caught);
    expect(error).toMatchObject({ code: "LEASE_LOST", fence: granted.lease.fence });
    expect(await dynamo.row(row)).toBe(applied ? 1 : undefined);
    return error.lastCommit;
  };
  const takenOver = (scene: Scene, { lease }: Granted) => scene.grant({ takeover: { fence: lease.fence } });
  const takenOverAndDone = async (scene: Scene, granted: Granted) => {
    const b = await takenOver(scene, granted);
    await scene.recordCrashed(b.state.prev);
    await scene.finish(b);
  };

  it.each([
    ["applied", true],
    ["not applied", false],
  ] as const)("%s, by its successor's list of predecessors", async (word, applied) => {
    expect(await lost(applied, takenOver)).toBe(word);
  });

  it.each([
    ["applied", true],
    ["not applied", false],
  ] as const)("%s, by its own record as crashed", async (word, applied) => {
    expect(await lost(applied, takenOverAndDone)).toBe(word);
  });

  it.each([
    ["applied", true],
    ["not applied", false],
  ] as const)("%s, by its record as cancelled", async (word, applied) => {
    expect(await lost(applied, (scene) => scene.cancel())).toBe(word);
  });

  it("unknown, where no trace of the run is left", async () => {
    for (const applied of [true, false]) {
      expect(await lost(applied, (scene) => deleteControlItem(dynamo, scene.job))).toBe("unknown");
    }
  });

  it("unknown, where its record belongs to another run", async () => {
    const happens = async (scene: Scene, { lease }: Granted) => {
      await scene.recordCrashed([{ ...lease.run, owner: "stranger" }]);
      await deleteControlItem(dynamo, scene.job);
    };
    expect(await lost(true, happens)).toBe("unknown");
  });

  it("unknown, where its record can't be read", async () => {
    const unreadable = () => {
      dynamo.fixture.proxy.when("GetItem", { error: "AccessDeniedException" });
    };
    expect(await lost(true, takenOverAndDone, unreadable)).toBe("unknown");
  });

  it("not applied, where no try was in doubt, without looking", async () => {
    const scene = openScene(dynamo.store);
    const a = await scene.grant();
    await takenOver(scene, a);
    await expect(scene.through(dynamo.faulty).commit(a)).rejects.toEqual(leaseLost("not applied"));
    expect(dynamo.fixture.proxy.requests).toHaveLength(1);
  });

  it("applied, as a success, where the server still knows the token: success isn't holding the lease", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    const row = freshRow();
    dynamo.fixture.proxy.next("TransactWriteItems", [{ after: () => takenOver(scene, granted) }, "lost-reply"]);
    expect(await scene.through(dynamo.faulty).commit(granted, [increment(row)])).toEqual({ seq: 1 });
    expect(await dynamo.row(row)).toBe(1);
    await expect(scene.commit(granted, [], { seq: 1 })).rejects.toEqual(leaseLost("not applied"));
  });
});

it("a client with retries of its own doesn't hide that a try is in doubt", async () => {
  const { DynamoDBClient } = await import("@aws-sdk/client-dynamodb");
  const { localClientConfig } = await import("cronfence/testing");
  const client = new DynamoDBClient({ ...localClientConfig(dynamo.fixture.proxy.endpoint), maxAttempts: 3 });
  const retrying = dynamo.fixture.faulty({ client });
  const scene = openScene(dynamo.store);
  const granted = await scene.grant();
  dynamo.fixture.proxy.when("TransactWriteItems", "strip-token");
  const after = () => scene.grant({ takeover: { fence: granted.lease.fence } });
  dynamo.fixture.proxy.next("TransactWriteItems", [{ after }, "lost-reply"]);
  await expect(scene.through(retrying).commit(granted)).rejects.toEqual(leaseLost("applied"));
  client.destroy();
});

it("an empty commit takes one action, and 99 writes fit beside it", async () => {
  const scene = openScene(dynamo.store);
  const granted = await scene.grant();
  await scene.through(dynamo.faulty).commit(granted, [], { writes: noWrites });
  const rows = Array.from({ length: 99 }, freshRow);
  expect(await scene.through(dynamo.faulty).commit(granted, rows.map(insert), { seq: 1 })).toEqual({ seq: 2 });
  expect(transactions().map(({ body }) => body.TransactItems.length)).toEqual([1, 100]);
});
