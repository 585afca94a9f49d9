import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { expiryMs, kept, leaseLost, minute, openScene } from "./conformance.ts";
import { finishConformance } from "./conformance-finish.ts";
import { deleteRow, increment, insert, useDynamo } from "./dynamo.ts";

const dynamo = useDynamo();
finishConformance(dynamo);

const freshRow = () => `row-${randomUUID()}`;
/** The next transaction is held back until `arrive`, which says whether it was applied then. */
const holdBack = () => {
  let release = () => {};
  const delay = new Promise<void>((resolve) => (release = resolve));
  const rule = dynamo.fixture.proxy.next("TransactWriteItems", [{ delay }, "strip-token"]);
  return async () => {
    release();
    const late = await rule.hit;
    await late.settled;
    return late.applied;
  };
};

describe("a finish whose reply is lost", () => {
  it("is found on record when it is tried again, on a server that ignores tokens", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    dynamo.fixture.proxy.when("TransactWriteItems", "strip-token");
    dynamo.fixture.proxy.next("TransactWriteItems", "lost-reply");
    expect(await scene.through(dynamo.faulty).finish(granted)).toMatchObject({
      kind: "finished",
      outcome: "succeeded",
    });
  });

  it("is found on record although the next run has started, and that isn't touched", async () => {
    const scene = openScene(dynamo.store);
    const { tick } = scene;
    const granted = await scene.grant({ tick });
    dynamo.fixture.proxy.when("TransactWriteItems", "strip-token");
    const after = () => scene.grant({ tick: tick + minute });
    dynamo.fixture.proxy.next("TransactWriteItems", [{ after }, "lost-reply"]);
    expect(await scene.through(dynamo.faulty).finish(granted, "succeeded", { tick })).toMatchObject({
      outcome: "succeeded",
    });
    const state = await scene.read();
    expect(state).toMatchObject({ fence: granted.lease.fence + 1, tick, unfinished: 1 });
    expect(state.owner).toBeDefined();
  });

  it("and that was replaced before it arrived is lost, not finished", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    const before = () => scene.grant({ takeover: { fence: granted.lease.fence } });
    dynamo.fixture.proxy.next("TransactWriteItems", [{ before }, "drop"]);
    await expect(scene.through(dynamo.faulty).finish(granted)).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(await scene.records()).toEqual([]);
  });

  it("stays unknown where its record can't be read: it never reports a success that it doesn't know of", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    dynamo.fixture.proxy.when("TransactWriteItems", "strip-token");
    dynamo.fixture.proxy.next("TransactWriteItems", "lost-reply");
    dynamo.fixture.proxy.when("GetItem", "throttle");
    const finished = scene.through(dynamo.faulty, 1_000).finish(granted);
    await expect(finished).rejects.toMatchObject({ name: expect.stringMatching(/Unknown|Unavailable/) });
    expect(await scene.records()).toMatchObject([{ outcome: "succeeded" }]);
  });
});

describe("a finish that arrives late", () => {
  it("after a successor was granted doesn't free its lease, complete its tick or write its last batch", async () => {
    const scene = openScene(dynamo.store);
    const { tick } = scene;
    const granted = await scene.grant({ tick });
    const row = freshRow();
    const arrive = holdBack();
    const last = { tick, writes: scene.store.prepare([increment(row)]) };
    const finish = scene.through(dynamo.hasty, 0).finish(granted, "succeeded", last);
    await expect(finish).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN", operation: "finish" });
    scene.clock.advance(expiryMs);
    await scene.grant({ tick });
    const before = await kept(scene);
    expect(await arrive()).toBe(false);
    expect(await kept(scene)).toEqual(before);
    expect(await dynamo.row(row)).toBeUndefined();
  });

  it("after the run was finished otherwise changes nothing", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    const arrive = holdBack();
    await expect(scene.through(dynamo.hasty, 0).finish(granted)).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    await scene.finish(granted, "failed");
    const before = await kept(scene);
    expect(await arrive()).toBe(false);
    expect(await kept(scene)).toEqual(before);
  });

  it("after the run went on with a commit is refused: its count is another", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    const arrive = holdBack();
    await expect(scene.through(dynamo.hasty, 0).finish(granted)).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    await scene.commit(granted);
    const before = await kept(scene);
    expect(await arrive()).toBe(false);
    expect(await kept(scene)).toEqual(before);
  });

  it("after a later tick was queued is refused, so that nothing queued is skipped", async () => {
    const scene = openScene(dynamo.store);
    const { tick } = scene;
    const granted = await scene.grant({ tick });
    const arrive = holdBack();
    await expect(scene.through(dynamo.hasty, 0).finish(granted)).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    await scene.queue(granted, tick + minute);
    expect(await arrive()).toBe(false);
    expect((await scene.read()).pending).toBe(tick + minute);
  });
});

describe("a finish in doubt whose last write is then rejected", () => {
  it("says so; ended otherwise, the try in doubt can't be applied any more", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    const row = freshRow();
    await scene.commit(granted, [insert(row)]);
    const arrive = holdBack();
    const last = { seq: 1, writes: scene.store.prepare([insert(row)]) };
    await expect(scene.through(dynamo.hasty).finish(granted, "succeeded", last)).rejects.toMatchObject({
      code: "WRITE_REJECTED",
    });
    expect((await scene.finish(granted, "failed", { seq: 1 })).kind).toBe("finished");
    await deleteRow(dynamo, row);
    expect(await arrive()).toBe(false);
    expect(await scene.records()).toMatchObject([{ outcome: "failed" }]);
    expect(await dynamo.row(row)).toBeUndefined();
  });

  it("and that arrives before the run is ended otherwise is how it ended", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    const row = freshRow();
    await scene.commit(granted, [insert(row)]);
    const arrive = holdBack();
    const last = { seq: 1, writes: scene.store.prepare([insert(row)]) };
    await expect(scene.through(dynamo.hasty).finish(granted, "succeeded", last)).rejects.toMatchObject({
      code: "WRITE_REJECTED",
    });
    await deleteRow(dynamo, row);
    expect(await arrive()).toBe(true);
    expect(await scene.finish(granted, "failed", { seq: 1 })).toMatchObject({ kind: "finished", outcome: "succeeded" });
  });
});

it("a run that commits with its finish takes two requests, and three writes to the tables", async () => {
  const scene = openScene(dynamo.store);
  await scene.store.create(scene.job, scene.clock.now(), scene.budget());
  const through = scene.through(dynamo.faulty);
  const granted = await through.grant();
  const writes = scene.store.prepare(Array.from({ length: 98 }, () => insert(freshRow())));
  expect((await through.finish(granted, "succeeded", { writes })).kind).toBe("finished");
  expect(dynamo.fixture.proxy.requests.map(({ operation }) => operation)).toEqual(["UpdateItem", "TransactWriteItems"]);
  expect(dynamo.fixture.proxy.requests[1]?.body.TransactItems).toHaveLength(100);
});

it("a finish that finds its lease lost without any record of it says none of a commit that it didn't make", async () => {
  const scene = openScene(dynamo.store);
  const a = await scene.grant();
  await scene.grant({ takeover: { fence: a.lease.fence } });
  await expect(scene.through(dynamo.faulty).finish(a)).rejects.toEqual(leaseLost("none"));
});
