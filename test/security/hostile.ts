/** Values that somebody might send who means no good. */
import fc from "fast-check";

export const hostileTexts = [
  "",
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  "#owner = :me",
  ":me",
  "#fence OR attribute_exists(#pk)",
  "a, #fence = :zero REMOVE #owner",
  "control",
  "run#2026",
  "job#other",
  "line\r\nbreak",
  '"}\n{"level":"fatal","msg":"forged"}',
  "\u0000\u0001\u001b[2J\u007f\u009b",
  "\u2028\u2029",
  "\u202e txt.exe",
  "💥é\u0301",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is meant to be taken for one
  "${jndi:ldap://127.0.0.1/x}",
  "'; DROP TABLE jobs; --",
  "../../etc/passwd",
] as const;

/** No character, but half of one: has no UTF-8. */
export const loneSurrogate = "a\ud800b";

/** JSON as `JSON.parse` gives it, with keys that objects have by themselves. */
export const hostileJson = fc
  .jsonValue({ maxDepth: 4 })
  .chain((value) =>
    fc
      .constantFrom(...hostileTexts)
      .map((key) => JSON.parse(`{${JSON.stringify(key || "empty")}:{"polluted":${JSON.stringify(value)}}}`)),
  );

/** Lists in lists. */
export const nested = (levels: number): unknown => {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = [value];
  return value;
};

/** How often a property is tried: more often where somebody hunts (`CRONFENCE_FUZZ=20 npx vitest run test/security`). */
export const tries = (usual: number): { readonly numRuns: number } => ({
  numRuns: usual * Number(process.env.CRONFENCE_FUZZ || 1),
});
