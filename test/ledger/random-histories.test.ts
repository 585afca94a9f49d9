/** The ledger against random histories whose truth is kept by a model that saw everything happen. */
import { type LedgerEntry, tickStates } from "cronfence/operate";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ledgerOf } from "../../src/ledger/read-ledger.ts";
import { type Lived, live, minuteMs, plots, start } from "./lived-history.ts";

const budget = () => ({ clock: { now: () => 0, after: () => () => {} }, random: () => 0, until: 0 });

const read = async ({ job, store, now }: Lived, from: number, to: number) => {
  const ledger = ledgerOf(job, { from, to }, { store, now: () => now, budget });
  const entries: LedgerEntry[] = [];
  for await (const entry of ledger) entries.push(entry);
  return { entries, counts: ledger.counts };
};

describe("the ledger of a random history", () => {
  it("has each tick once, in order, in the state that it really is in, and its counts add up", async () => {
    const seen = new Set<string>();
    await fc.assert(
      fc.asyncProperty(
        plots,
        fc.integer({ min: 0, max: 200 }),
        fc.integer({ min: 0, max: 200 }),
        async (plot, a, b) => {
          const lived = live(plot);
          const { entries, counts } = await read(lived, start, lived.now);
          const expected = [...lived.truth].sort(([one], [other]) => one - other);
          expect(entries.map(({ tick, state, run }) => [new Date(tick).toISOString(), state, run])).toEqual(
            expected.map(([tick, truth]) => [new Date(tick).toISOString(), truth.state, truth.run]),
          );
          const { all, ...states } = counts;
          expect(all).toBe(expected.length);
          expect(Object.values(states).reduce((sum, each) => sum + each, 0)).toBe(all);
          for (const { state } of entries) seen.add(state);
          // A part of it says the same of the same ticks.
          const [from, to] = [start + Math.min(a, b) * minuteMs, start + Math.max(a, b) * minuteMs];
          const part = await read(lived, from, to);
          expect(part.entries).toEqual(entries.filter(({ tick }) => tick >= from && tick <= to));
        },
      ),
      { numRuns: 500 },
    );
    const elsewhere = ["gap", "unscheduled", "unrecorded", "doubled"];
    expect([...seen].sort()).toEqual(tickStates.filter((state) => !elsewhere.includes(state)).sort());
  });
});
