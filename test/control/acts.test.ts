import type { Json } from "cronfence";
import { describe, expect, it } from "vitest";
import { kept, leaseLost, minute, openScene, regrant, restoreUnder, type Scene } from "./conformance.ts";
import { actsConformance } from "./conformance-acts.ts";
import { endingActsConformance } from "./conformance-ending-acts.ts";
import { increment, useDynamo } from "./dynamo.ts";

const dynamo = useDynamo();
actsConformance(dynamo);
endingActsConformance(dynamo);

/** Between an operator's look at the job and the act. */
const meanwhile = (happens: () => Promise<unknown>) =>
  dynamo.fixture.proxy.next("TransactWriteItems", { before: happens });

describe("a cancel", () => {
  it("of a run that finishes meanwhile refuses, and leaves the record", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    meanwhile(() => scene.finish(granted));
    await expect(scene.through(dynamo.faulty).cancel()).rejects.toMatchObject({ code: "ACT_REFUSED" });
    expect(await scene.records()).toMatchObject([{ outcome: "succeeded" }]);
    expect(await scene.read()).toMatchObject({ fence: granted.lease.fence, unfinished: 0 });
    expect(await dynamo.acts(scene.job)).toEqual([]);
  });

  it("of a run that is replaced meanwhile doesn't touch its successor", async () => {
    const scene = openScene(dynamo.store);
    const { lease } = await scene.grant();
    meanwhile(() => scene.grant({ takeover: { fence: lease.fence } }));
    await expect(scene.through(dynamo.faulty).cancel()).rejects.toMatchObject({ code: "ACT_REFUSED" });
    const state = await scene.read();
    expect(state).toMatchObject({ fence: lease.fence + 1, prev: [lease.run], unfinished: 2 });
    expect(state.owner).toBeDefined();
    expect([await scene.records(), await dynamo.acts(scene.job)]).toEqual([[], []]);
  });

  it("meant the fence that was seen: a run whose owner is granted again meanwhile is another", async () => {
    const scene = openScene(dynamo.store);
    const { again, request } = await regrant(scene);
    meanwhile(async () => {
      await dynamo.edit(scene.job, { fence: again.lease.fence + 1 });
    });
    const before = await scene.records();
    await expect(scene.through(dynamo.faulty).cancel()).rejects.toMatchObject({ code: "ACT_REFUSED" });
    expect(await scene.read()).toMatchObject({ fence: again.lease.fence + 1, owner: request.owner });
    expect(await scene.records()).toEqual(before);
  });

  it("meant the owner that was seen: one that is granted the same fence from a restored table is another", async () => {
    const scene = openScene(dynamo.store);
    const { a, b } = await restoreUnder(dynamo, scene);
    await dynamo.edit(scene.job, { owner: a.lease.owner, run: [a.lease.run] });
    meanwhile(() => dynamo.edit(scene.job, { owner: b.lease.owner, run: [b.lease.run] }));
    await expect(scene.through(dynamo.faulty).cancel()).rejects.toMatchObject({ code: "ACT_REFUSED" });
    expect(await scene.read()).toEqual(b.state);
    expect(await scene.records()).toEqual([]);
  });

  it("doesn't overwrite a record of the run, whoever wrote it", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    await scene.recordCrashed([granted.lease.run]);
    const before = await kept(scene);
    await expect(scene.cancel()).rejects.toMatchObject({ code: "ACT_REFUSED" });
    expect(await kept(scene)).toEqual(before);
  });

  it("counts a commit that is made meanwhile: the record says what the run had done", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    meanwhile(() => scene.commit(granted, [], { items: 5 }));
    expect(await scene.through(dynamo.faulty).cancel()).toMatchObject({ id: granted.lease.run.id, seq: 1, items: 5 });
    expect(await scene.records()).toMatchObject([{ outcome: "cancelled", commits: 1, items: 5 }]);
    expect(await scene.read()).toMatchObject({ fence: granted.lease.fence + 1, unfinished: 0 });
    expect(await dynamo.acts(scene.job)).toHaveLength(1);
  });

  it("tells the holder the truth about a commit that was made meanwhile and whose reply was lost", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    const row = `row-of-${scene.job}`;
    dynamo.fixture.proxy.when("TransactWriteItems", "strip-token");
    // The operator looks, the commit is applied, the run is cancelled; only then is the commit tried again.
    let tellApplied = () => {};
    const applied = new Promise<void>((resolve) => (tellApplied = resolve));
    const cancel = dynamo.fixture.proxy.next(({ body }) => body.TransactItems?.length === 3, { before: () => applied });
    const cancelled = scene.through(dynamo.faulty).cancel();
    await cancel.hit;
    const after = () => {
      tellApplied();
      return cancelled;
    };
    dynamo.fixture.proxy.next(({ body }) => body.TransactItems?.length === 2, [{ after }, "lost-reply"]);
    const committed = scene.through(dynamo.faulty).commit(granted, [increment(row)]);
    await expect(committed).rejects.toEqual(leaseLost("applied"));
    expect(await cancelled).toMatchObject({ seq: 1 });
    expect(await dynamo.row(row)).toBe(1);
  });

  it("gives up within its budget where the run commits faster than it can be cancelled", async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    let seq = 0;
    const rule = dynamo.fixture.proxy.when(({ body }) => body.TransactItems?.length === 3, {
      before: async () => {
        await scene.commit(granted, [], { seq: seq++ });
        scene.clock.advance(300);
      },
    });
    await expect(scene.through(dynamo.faulty, 1_000).cancel()).rejects.toMatchObject({ code: "ACT_REFUSED" });
    expect(rule.hits).toBe(4);
    expect(await scene.read()).toMatchObject({ owner: granted.lease.owner, run: { seq: 4 } });
  });
});

describe("a pause or resumption", () => {
  it("is made although the fence moves meanwhile, and recorded once", async () => {
    const scene = openScene(dynamo.store);
    const { lease } = await scene.grant();
    meanwhile(() => scene.grant({ takeover: { fence: lease.fence } }));
    await scene.through(dynamo.faulty).pause();
    expect(await scene.read()).toMatchObject({ fence: lease.fence + 1, paused: { by: "ann" } });
    expect(await dynamo.acts(scene.job)).toHaveLength(1);
  });

  it("whose first copy arrives late doesn't undo what an operator did after it", async () => {
    const scene = openScene(dynamo.store);
    await scene.finish(await scene.grant());
    let release = () => {};
    const delay = new Promise<void>((resolve) => (release = resolve));
    const rule = dynamo.fixture.proxy.next("TransactWriteItems", [{ delay }, "strip-token"]);
    await scene.through(dynamo.hasty).pause();
    scene.clock.advance(minute);
    await scene.resume();
    release();
    const late = await rule.hit;
    await late.settled;
    expect(late.applied).toBe(false);
    expect((await scene.read()).paused).toBeUndefined();
    expect(await dynamo.acts(scene.job)).toMatchObject([{ kind: "pause" }, { kind: "resume" }]);
  });
});

describe("a rewind", () => {
  const rewind = (scene: Scene, watermark: Json | null) => scene.rewind(watermark);
  /** A job whose watermark is "late", and no run. */
  const done = async () => {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    await scene.finish(granted, "succeeded", { watermark: "late" });
    return { scene, granted };
  };

  it("sets the watermark back, fences out whoever still goes on, and is recorded with both watermarks", async () => {
    const { scene, granted } = await done();
    await rewind(scene, "early");
    expect(await scene.read()).toMatchObject({ fence: granted.lease.fence + 1, watermark: "early" });
    await rewind(scene, null);
    expect(await scene.read()).not.toHaveProperty("watermark");
    expect((await dynamo.acts(scene.job)).map(({ kind, by, from, to }) => ({ kind, by, from, to }))).toEqual(
      expect.arrayContaining([
        { kind: "rewind", by: "ann", from: '"late"', to: '"early"' },
        { kind: "rewind", by: "ann", from: '"early"', to: undefined },
      ]),
    );
  });

  it("waits for no run: one that holds the lease, or gets it meanwhile, keeps its watermark", async () => {
    const { scene } = await done();
    meanwhile(() => scene.grant());
    await expect(rewind(scene.through(dynamo.faulty), "early")).rejects.toMatchObject({ code: "ACT_REFUSED" });
    await expect(rewind(scene, "early")).rejects.toThrow("holds the lease");
    expect((await scene.read()).watermark).toBe("late");
    expect(await dynamo.acts(scene.job)).toEqual([]);
  });

  it("whose reply was lost is known to have been made, although a run has started by the next try", async () => {
    const { scene } = await done();
    dynamo.fixture.proxy.next("TransactWriteItems", ["strip-token", { after: () => scene.grant() }, "lost-reply"]);
    await rewind(scene.through(dynamo.faulty), "early");
    expect((await scene.read()).watermark).toBe("early");
    expect(await dynamo.acts(scene.job)).toHaveLength(1);
  });

  it("isn't taken for made because another one to the same watermark was, while its own request was lost", async () => {
    const { scene } = await done();
    dynamo.fixture.proxy.next("TransactWriteItems", [{ before: () => rewind(scene, "early") }, "drop"]);
    await expect(rewind(scene.through(dynamo.faulty), "early")).rejects.toMatchObject({ code: "ACT_REFUSED" });
    expect(await dynamo.acts(scene.job)).toHaveLength(1);
  });
});
