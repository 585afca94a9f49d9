/** What a drill says of each thing that can be wrong after a trial; these trials are made up. */
import { cron, defineJob, type RunRecord } from "cronfence";
import { describe, expect, it } from "vitest";
import { type Case, judge } from "../../../src/testing/drills/judgement.ts";
import type { Scene } from "../../../src/testing/drills/scene.ts";
import type { Aftermath } from "../../../src/testing/drills/trial.ts";
import type { Undisturbed } from "../../../src/testing/drills/undisturbed.ts";

const job = defineJob({ name: "made-up", schedule: cron("*/10 * * * *"), timeout: "5m", run: () => {} });
const ticks = ["2026-01-12T12:00:00Z", "2026-01-12T12:10:00Z"].map((at) => Date.parse(at));
const record = (at: number, fence: number, more: Partial<RunRecord> = {}): RunRecord => {
  const tick = ticks[at] as number;
  return {
    job: job.name,
    id: `run-${fence}`,
    owner: `owner-${fence}`,
    fence,
    outcome: "succeeded",
    trigger: "schedule",
    startedAt: tick,
    endedAt: tick + 1,
    items: 1,
    commits: 1,
    ticks: { from: tick, through: tick, count: 1 },
    completed: tick,
    ...more,
  };
};
const rows = (values: Readonly<Record<string, unknown>>) =>
  new Map(Object.entries(values).map(([id, value]) => [`results id="${id}"`, { of: "results", value }]));
const control = {
  job: job.name,
  fence: 2,
  prev: [],
  recentOwners: [],
  since: 0,
  unfinished: 0,
  failedTicks: 0,
  recent: [],
};
const right: Aftermath = {
  state: rows({ a: { id: "a", by: { fence: 1, name: "x" } }, b: { id: "b" } }),
  control,
  records: [record(0, 1), record(1, 2)],
  writes: new Map([
    ['results id="a"', 1],
    ['results id="b"', 1],
    ["results total", 2],
  ]),
  unfenced: [],
  effects: ["mail 1", { to: "ann" }],
  calls: new Map([["POST http://mail/", 1]]),
  dateReaders: [],
  failure: undefined,
};
const undisturbed: Undisturbed = {
  aftermath: right,
  disturbed: 0,
  items: 1,
  operations: ["UpdateItem", "TransactWriteItems"],
  steps: 1,
  ignored: new Set(),
  ignoredElsewhere: new Set(["results.by.fence"]),
};
const scene = { job, ticks, options: {} } as unknown as Scene;

const said = (found: Partial<Aftermath>, more: Partial<Case> = {}): Promise<string> =>
  judge(scene, undisturbed, { ...right, ...found }, { drill: "paused holder", where: "it was paused", ...more }).then(
    () => "nothing",
    (error) => error.message,
  );

it("says nothing where all is as after an undisturbed run, but for what may differ", async () => {
  expect(await said({})).toBe("nothing");
  expect(await said({ state: rows({ a: { id: "a", by: { fence: 9, name: "x" } }, b: { id: "b" } }) })).toBe("nothing");
  // An item that many runs write, such as a total.
  expect(await said({ writes: new Map([["results total", 5]]) })).toBe("nothing");
  expect(await said({ effects: [{ to: "ann" }, "mail 1"] })).toBe("nothing");
});

it("names job, drill and what was done, and then each problem", async () => {
  const message = await said({ state: rows({ b: { id: "b" } }), effects: [] });
  expect(message.split("\n")).toEqual([
    'job "made-up", drill "paused holder": it was paused',
    '  - missing: results id="a"',
    '  - effect "mail 1" was done 0 times, and not 1',
    '  - effect {"to":"ann"} was done 0 times, and not 1',
    "  hint: an effect that isn't idempotent is repeated when its run is; make it inside run.once, or hand the receiver an idempotency key",
  ]);
});

describe("It says", () => {
  it.each<[string, Partial<Aftermath>]>([
    [
      'different: results id="a", by.name is "y", and not "x"',
      { state: rows({ a: { id: "a", by: { fence: 1, name: "y" } }, b: { id: "b" } }) },
    ],
    [
      'there, and not after an undisturbed run: results id="c"',
      { state: new Map([...right.state, ['results id="c"', { of: "results", value: {} }]]) },
    ],
    ['written twice: results id="b" (2 times)', { writes: new Map([['results id="b"', 2]]) }],
    ['effect "mail 1" was done 2 times, and not 1', { effects: ["mail 1", "mail 1", { to: "ann" }] }],
    ['effect "mail 2" was done 1 times, and not 0', { effects: [...right.effects, "mail 2"] }],
    [
      "POST http://mail/ was called 2 times outside run.once, and 1 times in an undisturbed trial",
      { calls: new Map([["POST http://mail/", 2]]) },
    ],
    [
      'it writes outside its commits: PutItem on table "results" (id="a"; id="b")',
      {
        unfenced: ['id="a"', 'id="b"', 'id="a"'].map((key) => ({ operation: "PutItem", table: "results", key })),
      },
    ],
    ["the last run failed, and no other made it good: failed: no", { failure: "failed: no" }],
    ["the tick of 2026-01-12T12:10:00.000Z is still owed at the end", { records: [record(0, 1)] }],
    [
      "the tick of 2026-01-12T12:00:00.000Z was done by 2 runs",
      { records: [record(0, 1), record(0, 2), record(1, 3)] },
    ],
    ["the tick of 2026-01-12T12:00:00.000Z was passed over, and no record says why", { records: [record(1, 1)] }],
    ["two runs had the same fence", { records: [record(0, 1), record(1, 1)] }],
    ["the job's control item is gone", { control: undefined }],
    [
      "the control item still has owner, pending: a run wasn't finished",
      { control: { ...control, owner: "a", pending: 1 } },
    ],
    [
      "1 unfinished runs aren't recorded",
      { control: { ...control, prev: [{ id: "r", owner: "o", startedAt: 0, trigger: "manual", seq: 0 }] } },
    ],
    ["the control item counts 2 unfinished runs", { control: { ...control, unfinished: 2 } }],
  ])("%s", async (problem, found) => {
    expect(await said(found)).toContain(`\n  - ${problem}`);
  });

  it("what was seen beside the tables", async () => {
    expect(await said({}, { seen: ["it ended as held"] })).toContain("\n  - it ended as held");
  });

  it("that the watermark went first, only where something is missing for it", async () => {
    expect(await said({ state: rows({}) }, { movedTo: 7 })).toContain(
      "hint: watermark first: the run that died had moved the watermark to 7 before the work",
    );
    expect(await said({}, { movedTo: 7 })).toBe("nothing");
    expect(await said({ state: rows({}) })).not.toContain("watermark");
  });

  it("where the machine's clock is read, only where rows differ", async () => {
    const dateReaders = ["jobs/report.ts:12"];
    expect(await said({ state: rows({}), dateReaders })).toContain("reads the machine's clock (jobs/report.ts:12)");
    expect(await said({ effects: [], dateReaders })).not.toContain("clock");
  });

  it("no more than a few of many", async () => {
    const many = Array.from({ length: 9 }, (_, at) => [`x${at}`, {}]);
    expect(await said({ state: new Map([...right.state, ...rows(Object.fromEntries(many))]) })).toMatch(
      /results id="x0"; results id="x1"; results id="x2"; and 6 more$/m,
    );
  });
});
