import { describe, expect, it } from "vitest";
import { accountOf } from "../../src/rehearse/account.ts";
import type { LedgerEntry, TickFate } from "../../src/rehearse/ledger.ts";

const done = (run: string): TickFate => ({ kind: "done", run });
const entries = (...fates: readonly TickFate[]): LedgerEntry[] => fates.map((fate, tick) => ({ tick, fate }));

describe("an account", () => {
  it("leaves out nothing of what its own run did", () => {
    const account = accountOf(entries(done("a"), done("b")), {
      notDelivered: () => undefined,
      isOwnRun: (tick, run) => run === ["a", "b"][tick],
    });
    expect(account.ticks).toMatchObject({ all: 2, done: 2 });
    expect(account.leftOut).toEqual([]);
  });

  it("says of every other tick why it wasn't done by its own run, and what became of it", () => {
    const account = accountOf(
      entries(
        done("later"),
        done("later"),
        done("later"),
        { kind: "skipped", reason: "catchUp" },
        { kind: "skipped", reason: "calendar" },
        { kind: "owed" },
        { kind: "owed" },
        { kind: "doubled", runs: ["a", "b"] },
        { kind: "unaccounted" },
      ),
      {
        notDelivered: (tick) =>
          (({ 0: "clock change", 1: "outage", 3: "outage", 4: "outage", 6: "outage" }) as const)[tick],
        isOwnRun: () => false,
      },
    );
    expect(account.ticks).toEqual({
      all: 9,
      done: 3,
      skipped: { calendar: 1, "before startAt": 0, startWithin: 0, catchUp: 1 },
      owed: 2,
      doubled: 1,
      unaccounted: 1,
    });
    expect(account.leftOut).toEqual([
      { why: "clock change", became: "done by a later run", count: 1, first: 0, last: 0 },
      { why: "outage", became: "done by a later run", count: 1, first: 1, last: 1 },
      { why: "not done by its own run", became: "done by a later run", count: 1, first: 2, last: 2 },
      { why: "outage", became: "skipped", reason: "catchUp", count: 1, first: 3, last: 3 },
      { why: "the job's definition", became: "skipped", reason: "calendar", count: 1, first: 4, last: 4 },
      { why: "not done by its own run", became: "owed", count: 1, first: 5, last: 5 },
      { why: "outage", became: "owed", count: 1, first: 6, last: 6 },
      { why: "not done by its own run", became: "doubled", count: 1, first: 7, last: 7 },
      { why: "not done by its own run", became: "unaccounted", count: 1, first: 8, last: 8 },
    ]);
  });

  it("puts ticks of one fate together, with the first and the last", () => {
    const account = accountOf(entries({ kind: "owed" }, done("a"), { kind: "owed" }), {
      notDelivered: () => undefined,
      isOwnRun: () => true,
    });
    expect(account.leftOut).toEqual([{ why: "not done by its own run", became: "owed", count: 2, first: 0, last: 2 }]);
  });
});
