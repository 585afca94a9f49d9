/**
 * Acts beside a run that goes on: between an operator's look at the job and the act, the run commits, ends or starts. Nothing
 * that was committed is lost, and the record says what happened.
 */
import { describe, expect, it } from "vitest";
import { freshName } from "../fixture.ts";
import { kept, leaseLost, minute, openScene, operator, type Scene } from "./conformance.ts";
import { increment, useDynamo } from "./dynamo.ts";

const dynamo = useDynamo();

const refused = (why: string) =>
  expect.objectContaining({ code: "ACT_REFUSED", message: expect.stringContaining(why) });

/** Between an operator's look at the job and the act. */
const meanwhile = (happens: () => Promise<unknown>) =>
  dynamo.fixture.proxy.next("TransactWriteItems", { before: happens });

/** A run of a tick, after one that is done. */
const running = async () => {
  const scene = openScene(dynamo.store);
  const first = await scene.grant({ tick: scene.tick });
  await scene.finish(first, "succeeded", { tick: scene.tick, watermark: "w" });
  scene.clock.advance(minute);
  const tick = scene.tick + minute;
  const granted = await scene.grant({ tick });
  return { scene, tick, granted, row: `row-of-${scene.job}` };
};
const idle = async () => {
  const { scene, tick, granted } = await running();
  await scene.finish(granted, "failed");
  return { scene, tick, fence: granted.lease.fence };
};
const faulty = (scene: Scene) => scene.through(dynamo.faulty);

describe("while a run commits,", () => {
  it("a pause leaves it alone: it commits, finishes, and its tick is done", async () => {
    const { scene, tick, granted, row } = await running();
    meanwhile(() => scene.commit(granted, [increment(row)], { items: 1 }));
    await faulty(scene).pause();
    await scene.finish(granted, "succeeded", { seq: 1, tick });
    expect(await scene.read()).toMatchObject({ tick, paused: operator });
    expect([await dynamo.row(row), (await scene.records())[0]?.outcome]).toEqual([1, "succeeded"]);
  });

  it.each<[string, (scene: Scene, tick: number) => Promise<unknown>]>([
    ["pause that cancels", (scene) => scene.pause({ cancel: true })],
    ["rewind that cancels", (scene) => scene.rewind("v", { cancel: true })],
    ["skip that cancels", (scene, tick) => scene.skip(tick, { cancel: true })],
    ["move that cancels", (scene) => scene.move(freshName(), { cancel: true })],
  ])("a %s counts the commit that got in before it, and no later one gets in", async (_, act) => {
    const { scene, tick, granted, row } = await running();
    meanwhile(() => scene.commit(granted, [increment(row)], { items: 1, watermark: "x" }));
    await act(faulty(scene), tick);
    expect((await scene.records())[0]).toMatchObject({ outcome: "cancelled", commits: 1, items: 1 });
    await expect(scene.commit(granted, [increment(row)], { seq: 1 })).rejects.toEqual(leaseLost("not applied"));
    expect(await scene.finish(granted, "succeeded", { seq: 1 })).toMatchObject({ outcome: "cancelled" });
    expect(await dynamo.row(row)).toBe(1);
    expect(await dynamo.acts(scene.job)).toHaveLength(1);
  });

  it("a rewind that cancels replaces the watermark of the commit that got in before it, and says so", async () => {
    const { scene, granted } = await running();
    meanwhile(() => scene.commit(granted, [], { watermark: "x" }));
    await faulty(scene).rewind("v", { cancel: true });
    expect((await scene.read()).watermark).toBe("v");
    expect(await dynamo.acts(scene.job)).toMatchObject([{ kind: "rewind", from: '"x"', to: '"v"' }]);
  });

  it("a skip of the tick that it completes is refused, and doesn't end it", async () => {
    const { scene, tick, granted } = await running();
    meanwhile(() => scene.commit(granted, [], { tick }));
    await expect(faulty(scene).skip(tick, { cancel: true })).rejects.toEqual(refused("settled"));
    await scene.finish(granted, "succeeded", { seq: 1 });
    expect([(await scene.records())[0]?.outcome, await dynamo.acts(scene.job)]).toEqual(["succeeded", []]);
  });

  it("a skip forgets no tick that is queued behind it meanwhile", async () => {
    const { scene, tick, granted } = await running();
    await scene.queue(granted, tick);
    meanwhile(() => scene.queue(granted, tick + minute));
    await faulty(scene).skip(tick, { cancel: true });
    expect(await scene.read()).toMatchObject({ tick, pending: tick + minute });
  });
});

describe("while a run ends,", () => {
  it.each<[string, (scene: Scene) => Promise<unknown>]>([
    ["rewind", (scene) => scene.rewind("v", { cancel: true })],
    ["move", (scene) => scene.move(freshName(), { cancel: true })],
  ])("a %s that would have cancelled it finds the job idle", async (kind, act) => {
    const { scene, tick, granted } = await running();
    meanwhile(() => scene.finish(granted, "succeeded", { tick }));
    expect(await act(faulty(scene))).toBeUndefined();
    expect((await scene.records())[0]).toMatchObject({ outcome: "succeeded" });
    expect(await dynamo.acts(scene.job)).toMatchObject([{ kind }]);
    expect((await dynamo.acts(scene.job))[0]).not.toHaveProperty("run");
  });
});

describe("while a run starts,", () => {
  it.each<[string, (scene: Scene, tick: number) => Promise<unknown>]>([
    ["rewind", (scene) => scene.rewind("v")],
    ["rewind that cancels", (scene) => scene.rewind("v", { cancel: true })],
    ["skip", (scene, tick) => scene.skip(tick)],
    ["skip that cancels", (scene, tick) => scene.skip(tick, { cancel: true })],
    ["move", (scene) => scene.move(freshName())],
    ["move that cancels", (scene) => scene.move(freshName(), { cancel: true })],
  ])("a %s that found the job idle is refused, and the run keeps all it has", async (_, act) => {
    const { scene, tick } = await idle();
    meanwhile(() => scene.grant({ tick }));
    await expect(act(faulty(scene), tick)).rejects.toMatchObject({ code: "ACT_REFUSED" });
    const { state } = await kept(scene);
    expect([state.owner === undefined, state.watermark, state.tick]).toEqual([false, "w", scene.tick]);
    expect(await dynamo.acts(scene.job)).toEqual([]);
  });

  const needIdle: [string, (scene: Scene, tick: number) => Promise<unknown>][] = [
    ["rewind", (scene) => scene.rewind("v")],
    ["skip", (scene, tick) => scene.skip(tick)],
    ["move", (scene) => scene.move(freshName())],
  ];

  it.each(needIdle)(
    "and ends at once, a %s that found the job idle is refused: it meant what was there",
    async (_, act) => {
      const { scene, tick } = await idle();
      meanwhile(async () => scene.finish(await scene.grant(), "succeeded", { watermark: "x" }));
      await expect(act(faulty(scene), tick)).rejects.toEqual(refused("look again"));
      expect(await scene.read()).toMatchObject({ tick: scene.tick, watermark: "x" });
      expect(await dynamo.acts(scene.job)).toEqual([]);
    },
  );

  it.each(needIdle)("by a table that is restored under the same fence, a %s is refused", async (_, act) => {
    const { scene, tick } = await idle();
    const { run } = (await running()).granted.lease;
    meanwhile(() => dynamo.edit(scene.job, { owner: "restored", run: [run] }));
    await expect(act(faulty(scene), tick)).rejects.toEqual(refused("holds the lease"));
    expect(await scene.read()).toMatchObject({ owner: "restored", watermark: "w", tick: scene.tick });
  });

  it("a move is refused where it starts under the new name", async () => {
    const { scene } = await idle();
    const other = openScene(dynamo.store);
    await other.store.create(other.job, other.clock.now(), other.budget());
    meanwhile(() => other.grant());
    await expect(faulty(scene).move(other.job)).rejects.toEqual(refused("look again"));
    expect((await other.read()).owner).toBeDefined();
    expect(await scene.read()).not.toHaveProperty("moving");
  });

  it.each<[string, boolean, (other: Scene) => Promise<unknown>]>([
    ["becomes known", false, (other) => other.store.create(other.job, 0, other.budget())],
    ["is paused", true, (other) => other.pause()],
    ["is resumed", true, (other) => other.resume()],
  ])("a move is refused where the new name %s meanwhile", async (what, known, happens) => {
    const { scene } = await idle();
    const other = openScene(dynamo.store);
    if (known) await other.store.create(other.job, other.clock.now(), other.budget());
    if (what === "is resumed") await other.pause();
    meanwhile(() => happens(other));
    await expect(faulty(scene).move(other.job)).rejects.toEqual(refused("look again"));
    expect(await scene.read()).not.toHaveProperty("moving");
    expect((await other.read()).paused === undefined).toBe(what !== "is paused");
  });
});

describe("a move that breaks off", () => {
  /** The request that puts an item under the new name, and takes it from the old one. */
  const isBringing = ({ body }: { body: { TransactItems?: { Delete?: unknown }[] } }) =>
    body.TransactItems?.[1]?.Delete !== undefined;
  /** Its first step is done; the request after it gets no answer within the operator's patience. */
  const brokenOff = async () => {
    const { scene, tick, granted } = await running();
    const parked = { cursor: "c", attempts: 1, error: { name: "Error", message: "m" }, at: 1, run: "r" };
    const writes = scene.store.park(scene.job, parked);
    await scene.store.commit(granted.lease, { seq: 0, leaseUntil: 1e15, items: 0, writes }, scene.budget());
    await scene.finish(granted, "failed", { seq: 1 });
    const to = freshName();
    dynamo.fixture.proxy.when(isBringing, ["throttle"]);
    await expect(scene.through(dynamo.faulty, 1_000).move(to)).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    dynamo.fixture.proxy.reset();
    return { scene, tick, to, under: { ...scene.request({ tick }), job: to } };
  };

  it("grants nothing under either name until it is gone on with, and nothing is lost", async () => {
    const { scene, tick, to, under } = await brokenOff();
    await expect(scene.acquire({ tick })).rejects.toMatchObject({ code: "JOB_MOVED", to });
    await expect(scene.store.acquire(under, scene.budget())).rejects.toMatchObject({
      code: "JOB_MOVED",
      to: undefined,
    });
    const resume = scene.store.resume(to, operator, scene.clock.now(), scene.budget());
    await expect(resume).rejects.toEqual(refused("being moved here"));
    await scene.move(to);
    const { items } = await scene.store.parked(to, { limit: 9 }, scene.budget());
    expect(items).toMatchObject([{ cursor: "c" }]);
    expect((await scene.store.acquire(under, scene.budget())).kind).toBe("acquired");
    expect(await dynamo.acts(scene.job)).toHaveLength(1);
  });

  it("brings over what a person says of an effect meanwhile", async () => {
    const { scene, granted } = await running();
    const intent = { fence: granted.lease.fence, run: "r", at: 1, seen: undefined };
    const writes = scene.store.intend(scene.job, "payment", intent);
    await scene.store.commit(granted.lease, { seq: 0, leaseUntil: 1e15, items: 0, writes }, scene.budget());
    await scene.finish(granted, "failed", { seq: 1 });
    const to = freshName();
    dynamo.fixture.proxy.next(isBringing, {
      before: () => scene.store.releaseOnce(scene.job, "payment", "done", operator, scene.clock.now(), scene.budget()),
    });
    await faulty(scene).move(to);
    expect(await scene.store.readOnce(to, "payment", scene.budget())).toMatchObject({ state: "done" });
  });

  it("and whose last step is repeated late doesn't touch what has been done under the new name since", async () => {
    const { scene, to } = await brokenOff();
    let release = () => {};
    const delay = new Promise<void>((resolve) => (release = resolve));
    const late = dynamo.fixture.proxy.next(isBringing, [{ delay }, "strip-token"]);
    await scene.through(dynamo.hasty).move(to);
    await scene.store.dropParked(to, "c", operator, scene.clock.now(), scene.budget());
    release();
    const hit = await late.hit;
    await hit.settled;
    expect(hit.applied).toBe(false);
    expect((await scene.store.parked(to, { limit: 9 }, scene.budget())).items).toEqual([]);
  });
});

describe("an act whose reply is lost", () => {
  it.each<[string, (scene: Scene, tick: number) => Promise<unknown>]>([
    ["skip", (scene, tick) => scene.skip(tick)],
    ["move", (scene) => scene.move(freshName())],
    ["pause that cancels", (scene) => scene.pause({ cancel: true })],
  ])("is known to have been done, once: %s", async (_, act) => {
    const { scene, tick } = await idle();
    dynamo.fixture.proxy.next("TransactWriteItems", ["strip-token", "lost-reply"]);
    await act(faulty(scene), tick);
    expect(await dynamo.acts(scene.job)).toHaveLength(1);
  });

  it("and that comes again late isn't done again: a skip", async () => {
    const { scene, tick } = await idle();
    let release = () => {};
    const delay = new Promise<void>((resolve) => (release = resolve));
    const rule = dynamo.fixture.proxy.next("TransactWriteItems", [{ delay }, "strip-token"]);
    await scene.through(dynamo.hasty).skip(tick);
    const before = await kept(scene);
    release();
    const late = await rule.hit;
    await late.settled;
    expect(late.applied).toBe(false);
    expect(await kept(scene)).toEqual(before);
  });
});
