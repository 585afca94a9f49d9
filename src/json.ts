/** JSON values: what a watermark and a cursor may be, so that they come back exactly as they were put. */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/**
 * Where `value` stops being JSON: a path and what stands there, or `undefined` if all of it is JSON.
 * Stricter than `JSON.stringify`, which turns dates, `NaN` and `undefined` into something else without a word.
 */
export const notJson = (value: unknown, path = "$", seen: readonly unknown[] = []): string | undefined => {
  if (value === null || typeof value === "boolean" || typeof value === "string") return undefined;
  if (typeof value === "number") return Number.isFinite(value) ? undefined : `${path} is ${value}`;
  if (typeof value !== "object") return `${path} is ${value === undefined ? "undefined" : `a ${typeof value}`}`;
  if (seen.includes(value)) return `${path} refers back to itself`;
  if (seen.length > deepest) return `${path} is nested more than ${deepest} levels deep`;
  if (Array.isArray(value)) {
    for (const [index, entry] of value.entries()) {
      const problem = notJson(entry, `${path}[${index}]`, [...seen, value]);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    return `${path} is a ${prototype.constructor?.name ?? "class"} instance`;
  }
  for (const [key, entry] of Object.entries(value)) {
    const problem = notJson(entry, `${path}.${key}`, [...seen, value]);
    if (problem !== undefined) return problem;
  }
  return undefined;
};

const deepest = 32;
