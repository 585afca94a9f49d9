/** The comparison with others: its drills bite, cronfence comes through, and the page says what the figures say. */
import { afterAll, describe, expect, it } from "vitest";
import { type ContenderName, contenderNames } from "./rivals/contender.ts";
import { type Bundle, bundleProcess } from "./rivals/invocation.ts";
import { type Compared, type Measure, measures, pageOf } from "./rivals/page.ts";
import { runScenario, type ScenarioName, scenarioNames } from "./rivals/scenarios.ts";

describe.skipIf(process.platform === "win32")("a paused holder that goes on after its successor", () => {
  let bundle: Bundle | undefined;
  afterAll(() => bundle?.remove());

  it("does carts again under a lock that only expires, and none under a fence", async () => {
    bundle = await bundleProcess();
    const run = (name: ContenderName) => runScenario(bundle as Bundle, name, "paused holder");
    const [bare, fenced] = await Promise.all([run("bare SDK"), run("cronfence")]);
    expect(bare).toMatchObject({ left: 0, doubled: expect.any(Number) });
    expect(bare.doubled).toBeGreaterThan(0);
    expect(fenced).toEqual({ left: 0, doubled: 0 });
  });
});

const all = <T>(value: T) =>
  Object.fromEntries(contenderNames.map((name) => [name, value])) as Record<ContenderName, T>;

const even = (): Compared => ({
  measured: Object.fromEntries(Object.keys(measures).map((measure) => [measure, all(1)])) as Record<
    Measure,
    Record<ContenderName, number>
  >,
  drilled: Object.fromEntries(scenarioNames.map((name) => [name, all({ left: 0, doubled: 0 })])) as Record<
    ScenarioName,
    Record<ContenderName, { left: number; doubled: number }>
  >,
  machine: { cores: 2, node: "20.0.0", engine: "dynoxide", load: 0.5 },
});

describe("the page of the comparison", () => {
  it("says that cronfence does worse nowhere only where that is so", () => {
    expect(pageOf(even())).toContain("Nowhere in this run.");
  });

  it("names everything in which another does better, and each drill that cronfence didn't come through", () => {
    const compared = even();
    Object.assign(compared.measured.bundle, { "bare SDK": 0.5 });
    Object.assign(compared.measured.unitsFew, { cronfence: 55 });
    Object.assign(compared.drilled.crash, { cronfence: { left: 3, doubled: 1 } });
    const page = pageOf(compared);
    expect(page).toContain("- size of the bundle: 1.00, against 0.50 (bare SDK)");
    expect(page).toContain("- write units, 10 carts due: 55, against 1 (bare SDK), 1 (Powertools, each tick)");
    expect(page).toContain("- crash: 3 left, 1 twice");
    expect(page).not.toContain("Nowhere in this run.");
  });

  it("has a column for each contender and a row for each figure and drill, and says what they were measured on", () => {
    const page = pageOf(even());
    const rows = page.split("\n").filter((line) => line.split("|").length === contenderNames.length + 3);
    expect(rows).toHaveLength(2 + Object.keys(measures).length + scenarioNames.length);
    expect(page).toContain("2 cores, Node.js 20.0.0, the dynoxide engine, with a load of 0.5 for each core");
  });
});
