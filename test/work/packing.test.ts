import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { noWrites, type PreparedWrites } from "../../src/control/writes.ts";
import { joinLots, type Lot, lotOfWrite, packer } from "../../src/work/packing.ts";

const mostActions = 99;
const mostBytes = 4 * 1024 * 1024;

/** An item of which only what packing looks at is real. */
const lotOf = (cursor: number, actions: number, bytes = actions * 100, touched: readonly string[] = []): Lot => ({
  cursor,
  writes: {
    actions: Array.from({ length: actions }, (_, at) => ({ Delete: { TableName: `${cursor}/${at}`, Key: {} } })),
    bytes,
    touched,
  } as PreparedWrites,
});

/** The transactions that lots are packed into, as the work does it. */
const packAll = (lots: readonly Lot[]): (readonly Lot[])[] => {
  const pack = packer();
  const taken: (readonly Lot[])[] = [];
  for (const lot of lots) {
    if (pack.add(lot)) continue;
    taken.push(pack.take());
    expect(pack.add(lot)).toBe(true);
  }
  if (pack.items > 0) taken.push(pack.take());
  return taken;
};

const cursorsOf = (transactions: readonly (readonly Lot[])[]) =>
  transactions.map((lots) => lots.map(({ cursor }) => cursor));

describe("Packing items into transactions", () => {
  it("fills each up to 99 actions", () => {
    const taken = packAll(Array.from({ length: 250 }, (_, at) => lotOf(at, 1)));
    expect(taken.map((lots) => lots.length)).toEqual([99, 99, 52]);
  });

  it("never splits an item's writes", () => {
    expect(
      cursorsOf(packAll([lotOf(0, 60), lotOf(1, 39), lotOf(2, 1), lotOf(3, 99), lotOf(4, 98), lotOf(5, 1)])),
    ).toEqual([[0, 1], [2], [3], [4, 5]]);
  });

  it("stops at 4 MB", () => {
    const large = 300 * 1024;
    expect(packAll(Array.from({ length: 20 }, (_, at) => lotOf(at, 1, large))).map((lots) => lots.length)).toEqual([
      13, 7,
    ]);
    expect(cursorsOf(packAll([lotOf(0, 1, mostBytes - 1), lotOf(1, 1, 1), lotOf(2, 1, 1)]))).toEqual([[0, 1], [2]]);
  });

  it("parts items that touch the same thing, since a transaction may touch it only once", () => {
    const lots = [lotOf(0, 1, 1, ["a"]), lotOf(1, 1, 1, ["b"]), lotOf(2, 1, 1, ["a"]), lotOf(3, 1, 1, ["b"])];
    expect(cursorsOf(packAll(lots))).toEqual([
      [0, 1],
      [2, 3],
    ]);
  });

  it("takes items with nothing to write along, however many", () => {
    const taken = packAll(Array.from({ length: 1_000 }, (_, at) => ({ cursor: at, writes: noWrites })));
    expect(taken.map((lots) => lots.length)).toEqual([1_000]);
    expect(joinLots(taken[0] ?? [])).toEqual(noWrites);
  });

  it("starts afresh once what is packed was taken", () => {
    const pack = packer();
    pack.add(lotOf(0, 99, 1, ["a"]));
    expect(pack.items).toBe(1);
    expect(pack.take()).toHaveLength(1);
    expect(pack.items).toBe(0);
    expect(pack.take()).toEqual([]);
    expect(pack.add(lotOf(1, 99, mostBytes, ["a"]))).toBe(true);
  });

  it("keeps order, splits nothing, exceeds no limit and wastes no room, whatever the items are", () => {
    const things = fc.uniqueArray(fc.constantFrom("a", "b", "c", "d", "e", "f"), { maxLength: 3 });
    const bytes = fc.oneof(fc.nat(1_000), fc.nat(400 * 1024), fc.nat(mostBytes));
    const item = fc.record({ actions: fc.oneof(fc.nat(3), fc.nat(mostActions)), bytes, touched: things });
    fc.assert(
      fc.property(fc.array(item, { maxLength: 80 }), (items) => {
        const lots = items.map(({ actions, bytes, touched }, at) => lotOf(at, actions, bytes, touched));
        const taken = packAll(lots);
        // The very items, in their order.
        expect(taken.flat()).toEqual(lots);
        for (const [at, transaction] of taken.entries()) {
          const { actions, bytes, touched } = joinLots(transaction);
          expect(actions.length).toBeLessThanOrEqual(mostActions);
          expect(bytes).toBeLessThanOrEqual(mostBytes);
          expect(new Set(touched).size).toBe(touched.length);
          expect(transaction.length).toBeGreaterThan(0);
          // The next item wouldn't have fitted.
          const next = taken[at + 1]?.[0]?.writes;
          if (next === undefined) continue;
          const fits =
            actions.length + next.actions.length <= mostActions &&
            bytes + next.bytes <= mostBytes &&
            !next.touched.some((thing) => touched.includes(thing));
          expect(fits).toBe(false);
        }
      }),
      { numRuns: 500 },
    );
  });

  it("knows which item each write of a transaction belongs to", () => {
    const sizes = fc.array(fc.nat(20), { maxLength: 30 });
    fc.assert(
      fc.property(sizes, (counts) => {
        const lots = counts.map((count, at) => lotOf(at, count));
        for (const [index, action] of joinLots(lots).actions.entries()) {
          const owner = lotOfWrite(lots, index);
          expect(action.Delete?.TableName).toMatch(new RegExp(`^${owner}/`));
        }
        expect(
          lotOfWrite(
            lots,
            counts.reduce((sum, count) => sum + count, 0),
          ),
        ).toBe(-1);
      }),
    );
  });
});
