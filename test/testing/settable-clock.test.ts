import { setImmediate as nextTurn } from "node:timers/promises";
import { settableClock } from "cronfence/testing";
import { describe, expect, it } from "vitest";
import { pause } from "../../src/clock.ts";

/** Sets a timer for each delay and returns the list to which each adds its delay and the time at which it fired. */
const timersAt = (clock: ReturnType<typeof settableClock>, ...delays: number[]) => {
  const fired: [delay: number, now: number][] = [];
  for (const delay of delays) clock.after(delay, () => fired.push([delay, clock.now()]));
  return fired;
};

describe("settableClock", () => {
  it("stands at its start, given in milliseconds or as ISO 8601, until it is moved", () => {
    expect(settableClock(5_000).now()).toBe(5_000);
    const clock = settableClock("2026-03-29T01:30:00+01:00");
    expect(clock.now()).toBe(Date.UTC(2026, 2, 29, 0, 30));
    clock.advance(90);
    expect(clock.now()).toBe(Date.UTC(2026, 2, 29, 0, 30, 0, 90));
  });

  it("fires the timers that are due, in time order, with now() at each one's due time", () => {
    const clock = settableClock(0);
    const fired = timersAt(clock, 30, 10, 20, 50);
    clock.advance(40);
    expect(fired).toEqual([
      [10, 10],
      [20, 20],
      [30, 30],
    ]);
    expect([clock.now(), clock.timers]).toEqual([40, 1]);
  });

  it("fires timers of the same due time in the order in which they were set", () => {
    const clock = settableClock(0);
    const order: string[] = [];
    for (const name of ["a", "b", "c"]) clock.after(10, () => order.push(name));
    clock.advance(10);
    expect(order).toEqual(["a", "b", "c"]);
  });

  it("fires timers that are set by timers, where they are due by then", () => {
    const clock = settableClock(0);
    const beats: number[] = [];
    const beat = () => {
      beats.push(clock.now());
      clock.after(10, beat);
    };
    clock.after(10, beat);
    clock.advance(35);
    expect([beats, clock.now(), clock.timers]).toEqual([[10, 20, 30], 35, 1]);
  });

  it("doesn't fire what was cancelled, even by a timer due at the same time", () => {
    const clock = settableClock(0);
    const fired: string[] = [];
    clock.after(10, () => {
      fired.push("first");
      cancel();
    });
    const cancel = clock.after(10, () => fired.push("second"));
    clock.advance(20);
    expect([fired, clock.timers]).toEqual([["first"], 0]);
  });

  it("treats a delay below 0 as 0, and fires it at the next move, not at once", () => {
    const clock = settableClock(100);
    const fired = timersAt(clock, -5, 0);
    expect(fired).toEqual([]);
    clock.advance(0);
    expect(fired).toEqual([
      [-5, 100],
      [0, 100],
    ]);
  });

  it("fires timers when it is set forward; set back, it leaves them the delay that they have left", () => {
    const clock = settableClock(1_000);
    const fired = timersAt(clock, 10, 100);
    clock.set(1_050);
    expect(fired).toEqual([[10, 1_010]]);
    clock.set(0);
    clock.advance(49);
    expect([clock.now(), fired.length]).toEqual([49, 1]);
    clock.advance(1);
    expect(fired[1]).toEqual([100, 50]);
  });

  it("refuses to be advanced backwards, or set to what isn't a time", () => {
    const clock = settableClock(0);
    expect(() => clock.advance(-1)).toThrow(RangeError);
    expect(() => clock.advance(Number.NaN)).toThrow(RangeError);
    expect(() => clock.set("noon")).toThrow('"noon" isn\'t a time');
  });

  it("lets continuations run between timers when advanced asynchronously", async () => {
    const clock = settableClock(0);
    const woken: number[] = [];
    const steps = (async () => {
      for (let i = 0; i < 3; i++) {
        await pause(clock, 10);
        woken.push(clock.now());
      }
    })();
    clock.advance(5);
    await clock.advanceAsync(100);
    await steps;
    expect([woken, clock.now()]).toEqual([[10, 20, 30], 105]);
  });

  it("is seen by another machine with an offset, on the same timers", () => {
    const clock = settableClock(1_000);
    const [ahead, behind] = [clock.skewed(500), clock.skewed(-500)];
    expect([ahead.now(), behind.now()]).toEqual([1_500, 500]);
    const seen: number[] = [];
    ahead.after(10, () => seen.push(ahead.now(), clock.now(), behind.now()));
    expect(clock.timers).toBe(1);
    clock.advance(10);
    expect(seen).toEqual([1_510, 1_010, 510]);
  });
});

describe("autoAdvance", () => {
  it("fires waits by itself, the earliest first, in no real time", async () => {
    const clock = settableClock(0, { autoAdvance: true });
    const woken: [string, number][] = [];
    const wait = async (name: string, ...delays: number[]) => {
      for (const delay of delays) {
        await pause(clock, delay);
        woken.push([name, clock.now()]);
      }
    };
    await Promise.all([wait("slow", 60_000, 60_000), wait("fast", 50_000, 20_000)]);
    expect(woken).toEqual([
      ["fast", 50_000],
      ["slow", 60_000],
      ["fast", 70_000],
      ["slow", 120_000],
    ]);
  });

  it("leaves longer timers, such as deadlines, to the test", async () => {
    const clock = settableClock(0, { autoAdvance: { atMostMs: 1_000 } });
    const fired = timersAt(clock, 240_000);
    await pause(clock, 1_000);
    await pause(clock, 500);
    await nextTurn();
    expect([clock.now(), clock.timers, fired]).toEqual([1_500, 1, []]);
    clock.advance(240_000);
    expect(fired).toEqual([[240_000, 240_000]]);
  });
});
