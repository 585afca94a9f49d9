/** Faults of others' schedulers, as far as ticks are concerned: test/schedule has them for the schedule alone. */
import { type CronOptions, cron } from "cronfence";
import { eventBridgeTicks } from "cronfence/schedule";
import { describe, expect, it } from "vitest";
import { useEngine } from "../fixture.ts";
import { at, iso, minuteMs, noon, sceneOf, type TickOptions } from "./scene.ts";

const engine = useEngine("effects");
const minute = (instant: number) => `${iso(instant).slice(0, 16)}Z`;

/** Lives through a stretch of time, with the deliveries that EventBridge would make. */
const liveThrough = async (
  expression: string,
  options: CronOptions,
  from: string,
  to: string,
  more: TickOptions = {},
) => {
  const schedule = cron(expression, options);
  const [start, end] = [Date.parse(from), Date.parse(to)];
  const scene = await sceneOf(engine, schedule, start, more);
  const delivered = [...eventBridgeTicks(schedule).between(start, end)];
  for (const tick of delivered) await scene.deliver(tick);
  return { ...scene, delivered: delivered.map(minute), done: (await scene.done()).map(minute) };
};

describe("case 4: a late tick that collides with the next", () => {
  it("has both done, one after the other, and both in the ledger", async () => {
    const scene = await sceneOf(engine, cron("*/10 * * * *"), at(-55));
    await scene.deliver(at(-50 - 10));
    scene.clock.set(at(-40));
    const reports = await Promise.all([scene.deliver(at(-50)), scene.deliver(at(-40))]);
    expect(scene.started).toEqual([at(-60), at(-50), at(-40)]);
    expect(await scene.done()).toEqual(scene.started);
    expect(reports.map(({ outcome }) => outcome)).toContain("succeeded");
    expect([...(await scene.fates(at(-50), at(-40))).values()].map(({ kind }) => kind)).toEqual(["done", "done"]);
  });

  it("covers the earlier one also when the later one comes first", async () => {
    const scene = await sceneOf(engine, cron("*/10 * * * *"), noon);
    scene.clock.set(at(20));
    const [later, earlier] = await Promise.all([scene.deliver(at(20)), scene.deliver(at(10))]);
    expect(scene.started).toEqual([at(10), at(20)]);
    expect(await scene.done()).toEqual(scene.started);
    expect([later.outcome, earlier.outcome]).toContain("succeeded");
  });
});

describe("case 16: a job inside the spring gap", () => {
  const zone = "America/New_York";

  it("runs exactly once, by the next run, where the platform leaves the tick out", async () => {
    const { delivered, done } = await liveThrough("30 2 * * *", { zone }, "2025-03-08T12:00Z", "2025-03-11T12:00Z");
    expect(delivered).toEqual(["2025-03-10T06:30Z", "2025-03-11T06:30Z"]);
    expect(done).toEqual(["2025-03-09T07:00Z", "2025-03-10T06:30Z", "2025-03-11T06:30Z"]);
  });

  it("runs exactly once where something else delivers the tick, at once or too late", async () => {
    const gap = Date.parse("2025-03-09T07:00Z");
    const healed = await sceneOf(engine, cron("30 2 * * *", { zone }), Date.parse("2025-03-08T12:00Z"));
    expect(await healed.deliver(gap, 5 * minuteMs)).toMatchObject({ outcome: "succeeded" });
    await healed.deliver(Date.parse("2025-03-10T06:30Z"));
    expect(await healed.deliver(gap)).toMatchObject({ outcome: "duplicate" });
    expect((await healed.done()).map(minute)).toEqual(["2025-03-09T07:00Z", "2025-03-10T06:30Z"]);
  });

  it('isn\'t due at all with gap "skip"', async () => {
    const { done } = await liveThrough("30 2 * * *", { zone, gap: "skip" }, "2025-03-08T12:00Z", "2025-03-10T12:00Z");
    expect(done).toEqual(["2025-03-10T06:30Z"]);
  });
});

describe("case 17: the repeated hour of autumn", () => {
  const zone = "America/New_York";

  it("has a daily job run once, and no second tick is owed to the next day's run", async () => {
    const { done } = await liveThrough("30 1 * * *", { zone }, "2025-11-01T12:00Z", "2025-11-03T12:00Z");
    expect(done).toEqual(["2025-11-02T05:30Z", "2025-11-03T06:30Z"]);
  });

  it("has an hourly job run for every real hour, also for the one that the platform fires only once", async () => {
    const { delivered, done } = await liveThrough("0 * * * *", { zone }, "2025-11-02T03:30Z", "2025-11-02T08:30Z", {
      exact: true,
    });
    expect(delivered).not.toContain("2025-11-02T06:00Z");
    expect(done).toEqual([
      "2025-11-02T04:00Z",
      "2025-11-02T05:00Z",
      "2025-11-02T06:00Z",
      "2025-11-02T07:00Z",
      "2025-11-02T08:00Z",
    ]);
  });
});

describe("case 18: a midnight that doesn't exist", () => {
  it("is done once, for its day's first instant", async () => {
    const zone = "America/Sao_Paulo";
    const { delivered, done } = await liveThrough("0 0 * * *", { zone }, "2018-11-03T12:00Z", "2018-11-05T12:00Z");
    expect(delivered).toEqual(["2018-11-05T02:00Z"]);
    expect(done).toEqual(["2018-11-04T03:00Z", "2018-11-05T02:00Z"]);
  });
});

describe("case 19: a tick that is processed late", () => {
  it("leaves those after it owed, and none is counted from the time at which it was processed", async () => {
    const { deliver, started } = await sceneOf(engine, cron("*/5 * * * *"), at(-3));
    expect(await deliver(at(0), 10 * minuteMs)).toMatchObject({ ticks: { from: iso(noon), through: iso(noon) } });
    expect(await deliver(at(10))).toMatchObject({ ticks: { from: iso(at(5)), through: iso(at(10)), count: 2 } });
    expect(started).toEqual([at(0), at(5), at(10)]);
  });
});

describe("case 30: runs that leave no trace", () => {
  it("can't be: 120 ticks with nothing to do and 3 that were missed are all in the ledger, with the reason", async () => {
    const scene = await sceneOf(engine, cron("* * * * *"), noon, { catchUp: "none", work: () => [] });
    const missed = [40, 41, 90];
    for (let tick = 1; tick <= 123; tick += 1) if (!missed.includes(tick)) await scene.deliver(at(tick));
    const fates = await scene.fates(at(1), at(123));
    const found = [...fates].map(([tick, fate]) => [tick, fate.kind === "skipped" ? fate.reason : fate.kind]);
    expect(found).toEqual(
      Array.from({ length: 123 }, (_, index) => [at(index + 1), missed.includes(index + 1) ? "catchUp" : "done"]),
    );
    expect(await scene.done()).toEqual([]);
  });
});

describe("a tick from before the job was known", () => {
  it("that was delivered leaves all after it owed, though the job was known only later", async () => {
    const scene = await sceneOf(engine, cron("*/10 * * * *"), undefined);
    await scene.deliver(at(0), 35 * minuteMs);
    await scene.deliver(at(40));
    expect(scene.started).toEqual([at(0), at(10), at(20), at(30), at(40)]);
  });

  it("that a person has done leaves none of those owed that lie between it and then", async () => {
    const scene = await sceneOf(engine, cron("*/10 * * * *"), at(5));
    await scene.deliver(at(-24 * 60));
    await scene.deliver(at(20));
    expect(scene.started).toEqual([at(-24 * 60), at(10), at(20)]);
  });
});
