import { expect, it } from "vitest";
import { expiryMs, openScene, type Scene } from "./conformance.ts";
import { recordsConformance } from "./conformance-records.ts";
import { useDynamo } from "./dynamo.ts";

const dynamo = useDynamo();
recordsConformance(dynamo);

const recordItems = async (scene: Scene) =>
  (await dynamo.items(scene.job)).filter(({ sk }) => String(sk).startsWith("run#"));

it("case 11: run records expire 400 days after their end, by a time in whole seconds", async () => {
  const scene = openScene(dynamo.store, "2026-01-01T00:00:00.789Z");
  const crashed = await scene.grant();
  scene.clock.advance(expiryMs);
  const lost = await scene.grant();
  await scene.recordCrashed([crashed.lease.run]);
  const cancelled = await scene.grant({ takeover: { fence: lost.lease.fence } });
  await scene.recordLost(lost);
  await scene.cancel();
  const finished = await scene.grant();
  await scene.finish(finished);
  const items = await recordItems(scene);
  expect(items.map(({ outcome }) => outcome).sort()).toEqual(["cancelled", "crashed", "lease_lost", "succeeded"]);
  for (const { endedAt, expiresAt } of items) {
    expect(expiresAt).toBe(Math.floor(Number(endedAt) / 1000) + 400 * 86_400);
    expect(new Date(Number(expiresAt) * 1000).toISOString()).toMatch(/^2027-02-05T/);
  }
  expect(cancelled.lease.fence).toBe(lost.lease.fence + 1);
});

it("predecessors are recorded side by side, and one that can't be recorded doesn't keep the others", async () => {
  const scene = openScene(dynamo.store);
  const entries = ["a", "b", "c"].map((id) => ({
    id,
    owner: `owner-${id}`,
    startedAt: scene.clock.now(),
    trigger: "schedule" as const,
    seq: 0,
  }));
  dynamo.fixture.proxy.when(({ body }) => body.Item?.id?.S === "b", "throttle");
  const recorded = await scene.through(dynamo.faulty, 500).recordCrashed(entries);
  expect(recorded.map(({ id }) => id)).toEqual(["a", "c"]);
  expect((await scene.records()).map(({ id }) => id).sort()).toEqual(["a", "c"]);
});

it("a record that learns of a loss after it was crashed arrives once, also if its reply is lost", async () => {
  const scene = openScene(dynamo.store);
  const a = await scene.grant();
  await scene.grant({ takeover: { fence: a.lease.fence } });
  await scene.recordCrashed([a.lease.run]);
  dynamo.fixture.proxy.next("PutItem", "lost-reply");
  expect(await scene.through(dynamo.faulty).recordLost(a, { commits: 2 })).toBe("lease_lost");
  expect(await scene.records()).toMatchObject([{ outcome: "lease_lost", commits: 2 }]);
});
