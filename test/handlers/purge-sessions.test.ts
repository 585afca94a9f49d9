/** The guarded job, with files on a server that answers as S3 does. */
import type { SilentFailureError } from "cronfence";
import { runJob, type Trigger } from "cronfence";
import { createTable, dumpTable, settableClock } from "cronfence/testing";
import { afterAll, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { putAll } from "../../src/local/put-all.ts";
import { budgetOn, silentLog, useEngine } from "../fixture.ts";
import { type AwsStub, startAwsStub } from "../observe/aws-stub.ts";
import { stubAws } from "./local-aws.ts";

type Module = typeof import("../../handlers/purge-sessions.ts");

const engine = useEngine();
let s3: AwsStub;
let purge: Module;
let rowsOnly: Module;
beforeAll(async () => {
  s3 = await startAwsStub();
  stubAws({ AWS_ENDPOINT_URL_S3: s3.endpoint });
  rowsOnly = await import("../../handlers/purge-sessions.ts");
  vi.resetModules();
  vi.stubEnv("SESSIONS_BUCKET", "session-files");
  purge = await import("../../handlers/purge-sessions.ts");
  for (const table of purge.local.tables) await createTable(engine.client, table);
});
afterAll(() => {
  vi.unstubAllEnvs();
  s3.stop();
});

let tick = Date.parse("2026-03-01T03:23:00Z");
beforeEach(async () => {
  tick += 86_400_000;
  s3.requests.length = 0;
  s3.answer({ body: "<DeleteResult></DeleteResult>" });
  // What an earlier test has left behind is none of this one's business.
  const left = await dumpTable(engine.client, "sessions");
  await putAll(
    engine.client,
    "sessions",
    left.map(({ endsAtId: _, ...session }) => session),
  );
});

const sessions = (...minutes: number[]) =>
  putAll(
    engine.client,
    "sessions",
    minutes.map((minute, at) => ({ ...purge.sessionEnding(tick + minute * 60_000, `${tick}-${at}`) })),
  );
const go = ({ job }: Pick<Module, "job"> = purge, trigger: Partial<Trigger> = {}) =>
  runJob(
    job,
    { kind: "schedule", tick, ...trigger },
    { store: engine.store, clock: settableClock(tick), log: silentLog },
  );
const left = async () =>
  (await dumpTable(engine.client, "sessions"))
    .filter(({ id, endsAtId }) => String(id).startsWith(`${tick}-`) && endsAtId !== undefined)
    .map(({ id }) => Number(String(id).split("-").at(-1)));

it("deletes what is over, files and row, and keeps the rest", async () => {
  await sessions(-60, -1, 1);
  expect(await go()).toMatchObject({ outcome: "succeeded", items: 2 });
  expect(await left()).toEqual([2]);
  expect(s3.requests.map(({ operation }) => operation)).toEqual(Array(2).fill("POST /session-files/?delete="));
  expect(s3.requests.map(({ body }) => /<Key>(.*)<\/Key>/.exec(body)?.[1]).sort()).toEqual([
    `${tick}-0/state.json`,
    `${tick}-1/state.json`,
  ]);
});

it("case 31: fails, naming call and code, when S3 says no with status 200; that session is found again", async () => {
  await sessions(-60);
  s3.answer({
    body: `<DeleteResult><Error><Key>${tick}-0/state.json</Key><Code>AccessDenied</Code></Error></DeleteResult>`,
  });
  const report = await go();
  expect(report).toMatchObject({ outcome: "failed" });
  expect((report.thrown as SilentFailureError).failures).toEqual([
    { call: "S3 DeleteObjects", code: "AccessDenied", count: 1 },
  ]);
  expect(await left()).toEqual([0]);
  s3.answer({ body: "<DeleteResult></DeleteResult>" });
  expect(await go()).toMatchObject({ outcome: "succeeded", items: 1 });
  expect(await left()).toEqual([]);
});

it("deletes nothing when that is far more than usual, until a person approves of it", async () => {
  for (let day = 0; day < 3; day += 1) {
    tick += 86_400_000;
    await sessions(-2, -1);
    expect(await go()).toMatchObject({ outcome: "succeeded", items: 2 });
  }
  tick += 86_400_000;
  await sessions(...Array.from({ length: 11 }, (_, at) => -at - 1));
  s3.requests.length = 0;
  expect(await go()).toMatchObject({ outcome: "guard_tripped", items: 0, commits: 0 });
  expect(await left()).toHaveLength(11);
  expect(s3.requests).toEqual([]);
  const until = tick + 86_400_000;
  await engine.store.approve(
    purge.job.name,
    { by: "ann", why: "test", max: 11, until },
    tick,
    budgetOn(settableClock(tick)),
  );
  expect(await go()).toMatchObject({ outcome: "succeeded", items: 11 });
  expect(await left()).toEqual([]);
});

it("deletes no files and no rows in a dry run", async () => {
  await sessions(-60, -1);
  const before = await dumpTable(engine.client, "sessions");
  expect(await go(purge, { dryRun: true })).toMatchObject({ outcome: "dry_run", wouldWrite: 2 });
  expect(await dumpTable(engine.client, "sessions")).toEqual(before);
  expect(s3.requests).toEqual([]);
});

it("keeps a session that was prolonged since it was read", async () => {
  await sessions(-60, -1);
  const { tables } = engine.store;
  let reads = 0;
  const store = {
    ...engine.store,
    tables: {
      ...tables,
      query: async (...request: Parameters<typeof tables.query>) => {
        const page = await tables.query(...request);
        reads += 1;
        // The first read is the guard's.
        if (reads === 2)
          await putAll(engine.client, "sessions", [{ ...purge.sessionEnding(tick + 3_600_000, `${tick}-0`) }]);
        return page;
      },
    },
  };
  const report = await runJob(
    purge.job,
    { kind: "schedule", tick },
    { store, clock: settableClock(tick), log: silentLog },
  );
  expect(report).toMatchObject({ outcome: "succeeded", items: 1, itemsSkipped: 1 });
  expect(await left()).toEqual([0]);
});

it("deletes rows alone where there is no bucket", async () => {
  await sessions(-60);
  expect(await go(rowsOnly)).toMatchObject({ outcome: "succeeded", items: 1 });
  expect(s3.requests).toEqual([]);
});

it("has no warnings", () => {
  expect(purge.job.warnings).toEqual([]);
});
