/** SIGTERM, as Lambda and container platforms send it before they end a process. */
import { expect, it } from "vitest";
import { onTime, useScene } from "./scene.ts";

const scene = useScene();
const carts = 245;

it("SIGTERM ends a run as interrupted at once, its lease is given back, and the next try does the rest", async () => {
  const [terminated, successor] = await Promise.all([
    scene.start("terminated", { AWS_LAMBDA_FUNCTION_NAME: "expire-carts" }),
    scene.start("next"),
  ]);
  const tick = await scene.nextTick(carts);
  // In the middle of its third transaction the work waits for something that never comes.
  await scene.runInto(terminated, {
    tick,
    at: onTime(tick),
    hold: { before: "item", nth: 2 * 49 + 20 },
    asLambda: true,
  });
  const left = await scene.controlOnce(({ run }) => run?.seq === 2);
  expect(left.owner).toBeDefined();
  terminated.signal("SIGTERM");
  await expect(terminated.report()).rejects.toMatchObject({ code: "RUN_INTERRUPTED" });

  const [record] = await scene.records();
  expect(record).toMatchObject({ id: left.run?.id, outcome: "interrupted", commits: 2, items: 98 });
  const given = await scene.control();
  expect(given).not.toHaveProperty("owner");
  expect(given).not.toHaveProperty("leaseUntil");
  expect(given).not.toHaveProperty("tick");

  // At the same instant: nothing has to expire.
  expect(await successor.fire({ tick, at: onTime(tick) })).toMatchObject({
    outcome: "succeeded",
    fence: left.fence + 1,
    items: carts - 98,
  });
  await scene.expectEachOnce();
});
