/** Failures in a row, and what else a run that ends leaves on the control item. */
import { describe, expect, it } from "vitest";
import type { ControlState, RunEntry } from "../../src/control/control-store.ts";
import { failuresInARow, rememberOwners, tally } from "../../src/control/tally.ts";
import type { RunOutcome } from "../../src/outcome.ts";

const fresh: ControlState = {
  job: "job",
  fence: 1,
  prev: [],
  recentOwners: [],
  since: 0,
  unfinished: 0,
  failedTicks: 0,
  recent: [],
};

/** A run's tick, and how it ended; nothing is how a crash ends. */
type Ran = [tick: number | undefined, outcome?: RunOutcome];

/** A job's item after these runs. */
const history = (...runs: Ran[]): ControlState => {
  let state = fresh;
  for (const [i, [tick, outcome]] of runs.entries()) {
    const owner = `owner-${i}`;
    const run: RunEntry = {
      id: `r${i}`,
      owner,
      startedAt: i,
      trigger: "schedule",
      seq: 0,
      ...(tick === undefined ? {} : { tick }),
    };
    const prev = state.run === undefined ? state.prev : [...state.prev, state.run];
    state = { ...state, prev, owner, run, unfinished: state.unfinished + 1 };
    if (outcome === undefined) continue;
    const { owner: _, run: __, lastFailedTick: ___, ...rest } = state;
    state = {
      ...rest,
      prev: [],
      ...tally(state, { outcome, owner, tick, at: i, durationMs: 5, items: 7 }, state.prev),
    };
  }
  return state;
};
const inARow = (...runs: Ran[]) => failuresInARow(history(...runs));

describe("failures in a row", () => {
  it.each<[string, Ran[], number]>([
    ["none", [], 0],
    ["none after a success", [[1, "succeeded"]], 0],
    ["one for a failed tick", [[1, "failed"]], 1],
    [
      "one for each failed tick",
      [
        [1, "failed"],
        [2, "timed_out"],
        [3, "failed"],
      ],
      3,
    ],
    [
      "one for a tick that failed on each of its tries",
      [
        [1, "failed"],
        [1, "failed"],
        [1, "timed_out"],
      ],
      1,
    ],
    ["one for a tick that crashed and then failed", [[1], [1, "failed"]], 1],
    ["as many as crashed, for one tick that crashed twice and then failed", [[1], [1], [1, "failed"]], 2],
    ["two for a tick that crashed and another that failed", [[1], [2, "failed"]], 2],
    [
      "three for two that failed and a third that crashed and failed",
      [[1, "failed"], [2, "failed"], [3], [3, "failed"]],
      3,
    ],
    ["two for one that failed and another that crashed and failed", [[1, "failed"], [2], [2, "failed"]], 2],
    ["one for one that failed, crashed and failed again", [[1, "failed"], [1], [1, "failed"]], 1],
    [
      "one for each manual run that failed",
      [
        [undefined, "failed"],
        [undefined, "failed"],
      ],
      2,
    ],
    ["one for a tripped guard", [[1, "guard_tripped"]], 1],
    [
      "none once one succeeded",
      [
        [1, "failed"],
        [2, "failed"],
        [3, "succeeded"],
      ],
      0,
    ],
    ["none once one was capped", [[1, "failed"], [2], [2, "capped"]], 0],
    [
      "those since the last success",
      [
        [1, "failed"],
        [2, "succeeded"],
        [3, "failed"],
      ],
      1,
    ],
    [
      "a tick that failed, succeeded and failed again as one",
      [
        [1, "failed"],
        [1, "succeeded"],
        [1, "failed"],
      ],
      1,
    ],
  ])("are %s", (_, runs, count) => {
    expect(inARow(...runs)).toBe(count);
  });

  it.each(["lease_lost", "interrupted", "cancelled", "dry_run"] as const)(
    "are neither more nor fewer after %s",
    (outcome) => {
      expect(inARow([1, outcome])).toBe(0);
      expect(inARow([1, "failed"], [2, "failed"], [3, outcome])).toBe(2);
      expect(inARow([1], [2, outcome])).toBe(1);
      expect(inARow([1, "failed"], [1, outcome], [1, "failed"])).toBe(1);
      expect(inARow([1, "failed"], [2, outcome], [3, "failed"])).toBe(2);
    },
  );

  it("don't count the run that is going, and count it as soon as another has replaced it", () => {
    expect(inARow([1])).toBe(0);
    expect(inARow([1], [1])).toBe(1);
    expect(inARow([1], [1], [1])).toBe(2);
    expect(inARow([1, "failed"], [2], [3])).toBe(1);
    expect(inARow([1, "failed"], [2], [3], [4])).toBe(2);
  });

  it("never get fewer by a failure", () => {
    const steps: Ran[] = [[1], [1, "failed"], [2], [2], [2, "failed"], [3, "failed"], [3], [3, "failed"], [4]] as const;
    let last = 0;
    for (let i = 1; i <= steps.length; i++) {
      const now = inARow(...steps.slice(0, i));
      expect(now).toBeGreaterThanOrEqual(last);
      last = now;
    }
  });
});

describe("a run that ends", () => {
  it("with success is kept among the last 20, newest last", () => {
    const runs = Array.from({ length: 25 }, (_, i): Ran => [i, "succeeded"]);
    const { recent, lastSuccessAt } = history(...runs);
    expect(recent).toHaveLength(20);
    expect(recent[0]).toMatchObject({ durationMs: 5, items: 7 });
    expect(lastSuccessAt).toBe(24);
  });

  it("without success leaves those and the time of the last success as they are", () => {
    const { recent, lastSuccessAt } = history([1, "succeeded"], [2, "failed"], [3, "cancelled"], [4, "dry_run"]);
    expect(recent).toHaveLength(1);
    expect(lastSuccessAt).toBe(0);
  });

  it("remembers its owner and those of predecessors that are recorded, eight at most, each once", () => {
    expect(history([1], [1], [1, "failed"]).recentOwners).toEqual(["owner-0", "owner-1", "owner-2"]);
    const many = history(...Array.from({ length: 12 }, (_, i): Ran => [i, "failed"]));
    expect(many.recentOwners).toEqual(Array.from({ length: 8 }, (_, i) => `owner-${i + 4}`));
    expect(rememberOwners({ ...fresh, recentOwners: ["a", "b"] }, ["a", "c"])).toEqual(["b", "a", "c"]);
  });
});
