/** That the table of metrics for people is the one that the code has. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { metricDefinitions } from "../../src/observe/metrics.ts";

it("The documentation lists every metric with its unit, its sender and its meaning, and no other", () => {
  const text = readFileSync(new URL("../../docs/metrics-and-alarms.md", import.meta.url), "utf8");
  const rows = text.split("\n").filter((line) => /^\| `[A-Z]/.test(line));
  expect(rows).toEqual(
    Object.entries(metricDefinitions).map(
      ([name, { unit, from, sent, meaning }]) => `| \`${name}\` | ${unit} | ${from} | ${sent} | ${meaning} |`,
    ),
  );
});
