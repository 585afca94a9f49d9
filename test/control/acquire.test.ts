import { describe, expect, it } from "vitest";
import { expiryMs, minute, openScene, type Scene, ttlMs } from "./conformance.ts";
import { acquireConformance } from "./conformance-acquire.ts";
import { deleteControlItem, useDynamo } from "./dynamo.ts";

const dynamo = useDynamo();
acquireConformance(dynamo);

const sentBy = (operation: string) =>
  dynamo.fixture.proxy.requests.filter((request) => request.operation === operation);

describe("first use", () => {
  it("never makes the item in an acquisition: without it, a deleted one would hand out fence 1", async () => {
    const scene = openScene(dynamo.store);
    dynamo.fixture.proxy.when("PutItem", "throttle");
    await expect(scene.through(dynamo.faulty, 100).acquire()).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    expect(await dynamo.items(scene.job)).toEqual([]);
  });

  it("after the item was deleted never hands out an old fence, and refuses who held one", async () => {
    const scene = openScene(dynamo.store);
    let last = await scene.grant();
    for (let i = 0; i < 3; i++) {
      await scene.finish(last);
      scene.clock.advance(minute);
      last = await scene.grant();
    }
    await deleteControlItem(dynamo, scene.job);
    scene.clock.advance(minute);
    await expect(scene.commit(last)).rejects.toMatchObject({ code: "LEASE_LOST" });
    const { lease } = await scene.grant();
    expect(lease.fence).toBeGreaterThan(last.lease.fence);
    await expect(scene.commit(last)).rejects.toMatchObject({ code: "LEASE_LOST" });
  });

  it("takes three requests, and every later acquisition one", async () => {
    const scene = openScene(dynamo.store).through(dynamo.faulty);
    const granted = await scene.grant();
    expect(dynamo.fixture.proxy.requests.map(({ operation }) => operation)).toEqual([
      "UpdateItem",
      "PutItem",
      "UpdateItem",
    ]);
    await openScene(dynamo.store);
    dynamo.fixture.proxy.reset();
    expect((await scene.acquire()).kind).toBe("held");
    await scene.finish(granted);
    await scene.grant();
    expect(sentBy("UpdateItem")).toHaveLength(2);
    expect(sentBy("GetItem")).toHaveLength(0);
  });
});

it("case 11: the control item has no TTL attribute, and a takeover doesn't wait for anything to be deleted", async () => {
  const scene = openScene(dynamo.store);
  const dead = await scene.grant();
  await scene.commit(dead, [], { watermark: 1 });
  scene.clock.advance(expiryMs);
  expect(await dynamo.controlItem(scene.job)).toMatchObject({ owner: dead.lease.owner });
  const { state } = await scene.grant();
  expect(state.prev).toMatchObject([{ id: dead.lease.run.id, seq: 1 }]);
  const item = await dynamo.controlItem(scene.job);
  expect(Object.keys(item)).not.toContain("expiresAt");
  expect(item.leaseUntil).toBe(scene.clock.now() + ttlMs);
});

describe("case 13: an acquisition that was applied and whose reply was lost", () => {
  it("is recognised as our own: the fence is one higher, once", async () => {
    const scene = openScene(dynamo.store);
    await scene.store.create(scene.job, scene.clock.now(), scene.budget());
    const { fence } = await scene.read();
    const rule = dynamo.fixture.proxy.next("UpdateItem", "lost-reply");
    const { lease } = await scene.through(dynamo.faulty).grant();
    expect([rule.hits, sentBy("UpdateItem").map(({ applied }) => applied)]).toEqual([1, [true, false]]);
    expect(lease.fence).toBe(fence + 1);
    expect(await scene.read()).toMatchObject({ fence: fence + 1, unfinished: 1, prev: [] });
  });

  it("and that was taken over before it was tried again isn't: its successor holds the lease", async () => {
    const scene = openScene(dynamo.store);
    await scene.store.create(scene.job, scene.clock.now(), scene.budget());
    const { fence } = await scene.read();
    const after = () => scene.grant({ takeover: { fence: fence + 1 } });
    dynamo.fixture.proxy.next("UpdateItem", [{ after }, "lost-reply"]);
    expect(await scene.through(dynamo.faulty).acquire()).toMatchObject({ kind: "held", state: { fence: fence + 2 } });
  });

  it("and that was taken over by one that has ended since isn't, nor is it granted again", async () => {
    const scene = openScene(dynamo.store);
    await scene.store.create(scene.job, scene.clock.now(), scene.budget());
    const { fence } = await scene.read();
    const after = async () => scene.finish(await scene.grant({ takeover: { fence: fence + 1 } }), "failed");
    dynamo.fixture.proxy.next("UpdateItem", [{ after }, "lost-reply"]);
    expect((await scene.through(dynamo.faulty).acquire()).kind).toBe("held");
    expect(await scene.read()).toMatchObject({ fence: fence + 2, unfinished: 0 });
  });
});

describe("a repeated acquisition", () => {
  it("that the network replays after the run has ended is refused: nobody is behind it", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.through(dynamo.faulty).grant();
    await scene.finish(granted, "failed");
    const before = await scene.read();
    const acquisition = sentBy("UpdateItem").find(({ applied }) => applied)!;
    expect(await dynamo.fixture.proxy.replay(acquisition)).toMatchObject({ status: 400 });
    expect(await scene.read()).toEqual(before);
  });

  it("that the network replays while the run goes on, its lease over by the clock, is refused", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.through(dynamo.faulty).grant();
    await scene.commit(granted);
    const before = await scene.read();
    scene.clock.advance(10 * expiryMs);
    const acquisition = sentBy("UpdateItem").find(({ applied }) => applied)!;
    expect(await dynamo.fixture.proxy.replay(acquisition)).toMatchObject({ status: 400 });
    expect(await scene.read()).toEqual(before);
  });

  it("that was refused and that the network replays when the lease is free costs one crashed run without commits", async () => {
    const scene = openScene(dynamo.store);
    const holder = await scene.grant();
    expect((await scene.through(dynamo.faulty).acquire()).kind).toBe("held");
    await scene.finish(holder);
    expect(await dynamo.fixture.proxy.replay(sentBy("UpdateItem")[0]!)).toMatchObject({ status: 200 });
    scene.clock.advance(expiryMs);
    const { state } = await scene.grant();
    expect(state.prev).toMatchObject([{ seq: 0 }]);
    await scene.recordCrashed(state.prev);
    expect(await scene.records()).toContainEqual(expect.objectContaining({ outcome: "crashed", commits: 0 }));
  });

  it("names the same instant on every try, however long it takes", async () => {
    const scene = openScene(dynamo.store);
    await scene.store.create(scene.job, scene.clock.now(), scene.budget());
    const from = scene.clock.now();
    for (let i = 0; i < 4; i++) dynamo.fixture.proxy.next("UpdateItem", "500-before");
    const { state } = await scene.through(dynamo.faulty).grant();
    expect(scene.clock.now()).toBeGreaterThan(from + 500);
    expect(state.leaseUntil).toBe(from + ttlMs);
    expect(new Set(sentBy("UpdateItem").map(({ body }) => JSON.stringify(body))).size).toBe(1);
  });
});

describe("an acquisition in the way of the holder's commit", () => {
  it("is tried again shortly, and granted when the lease is free", async () => {
    const scene = openScene(dynamo.store);
    await scene.finish(await scene.grant());
    dynamo.fixture.proxy.when("UpdateItem", { conflict: true }, { times: 3 });
    await scene.through(dynamo.faulty).grant();
  });

  it("and of nothing but commits until its budget ends is held", async () => {
    const scene = openScene(dynamo.store);
    const { state } = await scene.grant();
    dynamo.fixture.proxy.when("UpdateItem", { conflict: true });
    expect(await scene.through(dynamo.faulty, 1_000).acquire()).toEqual({ kind: "held", state });
  });

  it("isn't called held by another where the network repeated it and it was granted", async () => {
    const scene = openScene(dynamo.store);
    await scene.finish(await scene.grant());
    const rule = dynamo.fixture.proxy.when("UpdateItem", { conflict: true });
    const before = async () => expect(await dynamo.fixture.proxy.replay(await rule.hit)).toMatchObject({ status: 200 });
    dynamo.fixture.proxy.next("GetItem", { before });
    const { lease } = await scene.through(dynamo.faulty, 1_000).grant();
    expect(await scene.read()).toMatchObject({ owner: lease.owner, fence: lease.fence });
  });

  it("isn't called held where nobody holds the lease", async () => {
    const scene = openScene(dynamo.store);
    await scene.finish(await scene.grant());
    dynamo.fixture.proxy.when("UpdateItem", { conflict: true });
    await expect(scene.through(dynamo.faulty, 1_000).acquire()).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
  });
});

it("of 30 at once exactly one is granted the lease", async () => {
  const scene = openScene(dynamo.store);
  await scene.finish(await scene.grant());
  const { fence } = await scene.read();
  const results = await Promise.all(Array.from({ length: 30 }, () => scene.acquire({ tick: scene.tick })));
  expect(results.filter(({ kind }) => kind === "acquired")).toHaveLength(1);
  expect(results.filter(({ kind }) => kind === "held")).toHaveLength(29);
  expect((await scene.read()).fence).toBe(fence + 1);
});

describe("clearing a full backlog", () => {
  const entry = (name: string, startedAt: number) => ({
    id: name,
    owner: `owner-${name}`,
    startedAt,
    trigger: "schedule",
    seq: 0,
  });
  const backlog = (scene: Scene, name = "r") =>
    Array.from({ length: 20 }, (_, i) => entry(`${name}${i}`, scene.clock.now() - 1));
  /** A job whose lease is free, with 20 predecessors. */
  const withBacklog = async () => {
    const scene = openScene(dynamo.store);
    await scene.finish(await scene.grant());
    await dynamo.edit(scene.job, { prev: backlog(scene) });
    return { scene, before: await scene.read() };
  };
  /** Between the record of the backlog and its removal. */
  const meanwhile = (happens: () => Promise<unknown>) =>
    dynamo.fixture.proxy.next(({ body }) => body.ExpressionAttributeValues?.[":left"] !== undefined, {
      before: happens,
    });

  it("remembers its owners, so that a late repetition of theirs isn't granted", async () => {
    const { scene } = await withBacklog();
    const { state } = await scene.grant();
    expect(state.prev).toEqual([]);
    expect(state.recentOwners).toEqual(
      backlog(scene)
        .slice(-8)
        .map(({ owner }) => owner),
    );
  });

  it("is done by two at once without harm: one of them runs", async () => {
    const { scene } = await withBacklog();
    const results = await Promise.all([scene.acquire(), scene.acquire(), scene.acquire()]);
    expect(results.map(({ kind }) => kind).sort()).toEqual(["acquired", "held", "held"]);
    expect(await scene.read()).toMatchObject({ prev: [], unfinished: 1 });
  });

  it("takes off only what it has recorded: another backlog that is there by then stays until it is recorded", async () => {
    const { scene } = await withBacklog();
    meanwhile(() => dynamo.edit(scene.job, { prev: backlog(scene, "other") }));
    const { state } = await scene.through(dynamo.faulty).grant();
    expect(state.prev).toEqual([]);
    const recorded = (await scene.records()).filter(({ outcome }) => outcome === "crashed").map(({ id }) => id);
    expect(recorded.filter((id) => id.startsWith("other"))).toHaveLength(20);
  });

  it("that comes after the fence has moved changes nothing, though it would find the backlog it saw", async () => {
    const scene = openScene(dynamo.store);
    const { lease } = await scene.grant();
    await dynamo.edit(scene.job, { prev: backlog(scene) });
    scene.clock.advance(expiryMs);
    const cancelled = async () => {
      await scene.cancel();
      expect((await scene.read()).recentOwners).toContain(lease.owner);
    };
    const stale = meanwhile(cancelled);
    const { state } = await scene.through(dynamo.faulty).grant();
    expect((await stale.hit).applied).toBe(false);
    expect(state).toMatchObject({ fence: lease.fence + 2, prev: [] });
  });

  it("that can't record anything says so, and grants nothing", async () => {
    const { scene, before } = await withBacklog();
    dynamo.fixture.proxy.when("PutItem", "throttle");
    await expect(scene.through(dynamo.faulty, 200).acquire()).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    expect(await scene.read()).toEqual(before);
  });

  it("keeps what it couldn't record for the next time", async () => {
    const { scene } = await withBacklog();
    const hard = ({ operation, body }: { operation: string; body: { Item?: { id?: { S: string } } } }) =>
      operation === "PutItem" && body.Item?.id?.S === "r7";
    dynamo.fixture.proxy.when(hard, "throttle");
    const { state } = await scene.through(dynamo.faulty, 200).grant();
    expect(state.prev).toMatchObject([{ id: "r7" }]);
  });
});
