import { describe, expect, it } from "vitest";
import {
  either,
  is,
  listOf,
  numberThat,
  objectOf,
  oneOf,
  optional,
  textThat,
  trueOrFalse,
  wholeNumber,
} from "../src/value-check.ts";

const places = (misfits: readonly { readonly path: readonly (string | number)[] }[]) =>
  misfits.map(({ path }) => path.join("."));

describe("a check", () => {
  it.each([
    ["a whole number within its bounds", wholeNumber(1, 3), [1, 3], [0, 4, 1.5, "1", Number.NaN, undefined, 1n]],
    ["a safe one without an upper bound", wholeNumber(0), [2 ** 53 - 1], [2 ** 53, Number.POSITIVE_INFINITY, -1]],
    ["a number", numberThat((n) => n > 0), [0.5], [0, Number.NaN, Number.POSITIVE_INFINITY, "0.5"]],
    ["a text", textThat((text) => text.length < 3), ["", "ab"], ["abc", 1, null, new String("a")]],
    ["one of some values", oneOf<unknown>("a", 0), ["a", 0], ["b", "0", false, undefined]],
    ["true or false", trueOrFalse, [true, false], ["true", 0, null]],
    ["what may be missing", optional(trueOrFalse), [undefined, true], [null, "no"]],
    ["either", either(oneOf("all"), listOf(oneOf(1))), ["all", [1], []], ["none", [2]]],
    [
      "a list of a length",
      listOf(
        is(() => true),
        1,
        2,
      ),
      [[1], [1, 2]],
      [[], [1, 2, 3], "ab", { length: 1 }],
    ],
    ["an object", objectOf({}), [{}], [[], null, "x", undefined]],
  ])("takes %s, and nothing else", (_what, check, right, wrong) => {
    for (const value of right) expect(check(value, [])).toEqual([]);
    for (const value of wrong) expect(places(check(value, ["here"]))).toEqual(["here"]);
  });

  const nested = objectOf({ name: trueOrFalse, inner: optional(objectOf({ list: listOf(wholeNumber(0)) })) });

  it("names every place that is wrong, and keys that mustn't be there, in one go", () => {
    const misfits = nested({ inner: { list: [1, -1, "2"], more: 1, most: 2 }, other: 3 }, []);
    expect(places(misfits)).toEqual(["name", "inner.list.1", "inner.list.2", "inner", ""]);
    expect(misfits.flatMap(({ unknownKeys = [] }) => unknownKeys)).toEqual(["more", "most", "other"]);
  });

  it("ignores other keys where it is told to", () => {
    expect(objectOf({ a: trueOrFalse }, "ignored")({ a: true, b: 1 }, [])).toEqual([]);
  });

  it("isn't taken in by what every object has, nor by a prototype that is given as a key", () => {
    const check = objectOf({ a: optional(trueOrFalse) });
    expect(check({}, [])).toEqual([]);
    expect(check(JSON.parse('{ "__proto__": {}, "constructor": 1 }'), [])).toEqual([
      { path: [], unknownKeys: ["__proto__", "constructor"] },
    ]);
  });
});
