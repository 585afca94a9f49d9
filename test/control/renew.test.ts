import { expect, it } from "vitest";
import { expiryMs, kept, leaseLost, openScene, ttlMs } from "./conformance.ts";
import { renewConformance } from "./conformance-renew.ts";
import { deleteControlItem, useDynamo } from "./dynamo.ts";

const dynamo = useDynamo();
renewConformance(dynamo);

it("case 23: a renewal beside a running transaction is tried again; the lease isn't lost", async () => {
  const scene = openScene(dynamo.store);
  const granted = await scene.grant();
  scene.clock.advance(ttlMs / 2);
  const rule = dynamo.fixture.proxy.when("UpdateItem", { conflict: true }, { times: 3 });
  await scene.through(dynamo.faulty).renew(granted);
  expect(rule.hits).toBe(3);
  expect((await scene.read()).leaseUntil).toBeGreaterThan(granted.state.leaseUntil!);
});

it("case 23: a renewal that meets nothing but transactions says that it couldn't be made, not that the lease is lost", async () => {
  const scene = openScene(dynamo.store);
  const granted = await scene.grant();
  dynamo.fixture.proxy.when("UpdateItem", { conflict: true });
  await expect(scene.through(dynamo.faulty, 1_000).renew(granted)).rejects.toMatchObject({
    code: "STORE_UNAVAILABLE",
    operation: "renewal",
  });
  expect(await scene.commit(granted)).toEqual({ seq: 1 });
});

it("a renewal that arrives after a successor was granted, or after the run has ended, is refused", async () => {
  for (const end of ["replaced", "finished"]) {
    const scene = openScene(dynamo.store);
    const granted = await scene.grant();
    let release = () => {};
    const delay = new Promise<void>((resolve) => (release = resolve));
    const rule = dynamo.fixture.proxy.next("UpdateItem", { delay });
    await expect(scene.through(dynamo.hasty, 0).renew(granted)).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    if (end === "finished") await scene.finish(granted);
    else {
      scene.clock.advance(expiryMs);
      await scene.grant();
    }
    const before = await kept(scene);
    release();
    const late = await rule.hit;
    await late.settled;
    expect([late.applied, await kept(scene)]).toEqual([false, before]);
  }
});

it("a renewal of a job whose item is gone is a lost lease", async () => {
  const scene = openScene(dynamo.store);
  const granted = await scene.grant();
  await deleteControlItem(dynamo, scene.job);
  await expect(scene.renew(granted)).rejects.toEqual(leaseLost("none"));
  expect(await dynamo.items(scene.job)).toEqual([]);
});
