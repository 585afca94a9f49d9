import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { jitterOf } from "../../src/schedule/index.ts";

describe("jitter", () => {
  it("is the same for the same name and window, in every process and version", () => {
    expect(jitterOf("expire-carts", 60_000)).toBe(jitterOf("expire-carts", 60_000));
    // Literal values: a change would move every job at the next deploy.
    expect([jitterOf("expire-carts", 60_000), jitterOf("expire-cart", 60_000), jitterOf("", 60_000)]).toEqual([
      32103, 13366, 40135,
    ]);
  });

  it("lies within the window", () => {
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 1, max: 86_400_000 }), (name, windowMs) => {
        const jitterMs = jitterOf(name, windowMs);
        expect(Number.isInteger(jitterMs) && jitterMs >= 0 && jitterMs < windowMs).toBe(true);
      }),
    );
    expect(jitterOf("expire-carts", 0)).toBe(0);
    expect(() => jitterOf("expire-carts", -1)).toThrow(/-1 isn't an integer/);
  });

  it("spreads names that differ in little evenly over the window", () => {
    const parts = Array<number>(10).fill(0);
    for (let index = 0; index < 5000; index++) parts[jitterOf(`job-${index}`, 10)]!++;
    for (const count of parts) expect(Math.abs(count - 500)).toBeLessThan(100);
  });
});
