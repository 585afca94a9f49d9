/** What `--json` prints, for every command: programs rely on it, so nothing is in it that isn't said here, and nothing less. */
import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineJob, type Job, runJob } from "cronfence";
import { fromAsyncIterable } from "cronfence/sources";
import { beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { newProgram } from "../../src/cli/program.ts";
import { systemClock } from "../../src/clock.ts";
import { tickStates } from "../../src/ledger/entry.ts";
import { budgetOn, freshName, silentLog, useEngine } from "../fixture.ts";
import { cronfence, projectOf } from "./command.ts";
import { environment, hourlySource, hourMs, isoAt, type Operated, operated } from "./operated.ts";

const engine = useEngine("results");
/** One with a history, one for acts that take something away, one whose run holds the lease, one with parked items. */
let job: Operated;
let other: Operated;
let held: string;
let parked: string;
let cwd: string;
let empty: string;
beforeAll(async () => {
  job = await operated(engine);
  other = await operated(engine);
  held = freshName();
  const now = Date.now();
  const run = { id: "their-run", startedAt: now, trigger: "manual" as const };
  await engine.store.create(held, now, budgetOn(systemClock));
  await engine.store.acquire({ job: held, owner: "them", run, now, ttlMs: 60_000, skewMs: 0 }, budgetOn(systemClock));
  parked = await shopWorn();
  cwd = await projectOf({
    "handlers/job.ts": hourlySource(job.name),
    "handlers/other.ts": hourlySource(other.name),
    "handlers/parked.ts": parkedSource(parked),
  });
  empty = await mkdtemp(join(tmpdir(), "cronfence-"));
});

/** A job that parked the items a, b and c, whose guard tripped, and of an effect of whose nobody knows. */
const shopWorn = async (): Promise<string> => {
  const name = freshName();
  const deps = { store: engine.store, log: silentLog };
  const items = (of: string) =>
    fromAsyncIterable<string>({ name: "letters", items: () => [...of], cursor: (id) => id });
  const common = { name, timeout: "1m", onItemError: "park", maxAttempts: 1 } as const;
  const fail = () => {
    throw new Error("broken");
  };
  await runJob(defineJob({ ...common, source: items("abc"), process: fail }) as Job, { kind: "manual" }, deps);
  const guarded = { ...common, destructive: { max: 1 }, source: items("defg"), process: () => [] };
  await runJob(defineJob(guarded) as Job, { kind: "manual" }, deps);
  const effect = (run: { once(key: string, effect: () => never): unknown }) =>
    run.once("payment", fail) as Promise<void>;
  await runJob(defineJob({ name, timeout: "1m", run: effect }) as Job, { kind: "manual" }, deps);
  return name;
};

const parkedSource = (name: string) => `
import { defineJob } from "cronfence";
import { fromAsyncIterable } from "cronfence/sources";
export const job = defineJob({
  name: "${name}", timeout: "1m", onItemError: "park",
  source: fromAsyncIterable({ name: "letters", items: () => [..."abc"], cursor: (id) => id }),
  process: () => [],
});`;

const at = z.iso.datetime();
const count = z.int().gte(0);
const id = z.string().min(1);
const error = z.strictObject({ name: z.string(), code: z.string().optional(), message: z.string() });
const range = z.strictObject({ from: at, through: at, count });
const told = { by: z.string(), why: z.string() };
const record = z.strictObject({
  job: z.string(),
  id,
  owner: z.string(),
  fence: z.int(),
  outcome: z.string(),
  trigger: z.enum(["schedule", "manual"]),
  requestId: z.string().optional(),
  reason: z.string().optional(),
  version: z.string().optional(),
  startedAt: at,
  endedAt: at,
  ticks: range.optional(),
  skipped: z.array(z.strictObject({ ...range.shape, reason: z.string() })).optional(),
  backfilled: range.optional(),
  completed: at.optional(),
  items: count,
  itemsSkipped: count.optional(),
  itemsParked: count.optional(),
  commits: count,
  watermarkBefore: z.json().optional(),
  watermarkAfter: z.json().optional(),
  error: error.optional(),
  nextTick: at.optional(),
  backlog: z.string().optional(),
});
const going = {
  id,
  startedAt: at,
  trigger: z.string(),
  commits: count,
  items: count,
  tick: at.optional(),
  requestId: z.string().optional(),
  version: z.string().optional(),
};
const state = z.enum(tickStates);
const entry = {
  tick: at,
  state,
  run: id.optional(),
  others: z.array(id).optional(),
  outcome: z.string().optional(),
  reason: z.string().optional(),
  by: z.string().optional(),
  why: z.string().optional(),
  offSchedule: z.literal(true).optional(),
  lateFrom: at.optional(),
};
const report = z.strictObject({
  job: z.string(),
  outcome: z.string(),
  run: id,
  fence: z.int(),
  tick: at.optional(),
  ticks: range.optional(),
  items: count,
  commits: count,
  itemsSkipped: count.optional(),
  durationMs: count,
  nextTick: at.optional(),
  backlog: z.string().optional(),
  error: error.optional(),
});
const problems = z.array(z.strictObject({ file: z.string(), message: z.string() }));
const cancelled = { cancelled: id.nullable() };
const act = ["--why", "a test", "--by", "ann", "--yes"];

interface Row {
  readonly args: () => readonly string[];
  readonly schema: z.ZodType;
  readonly code?: number;
}

const rows: Readonly<Record<string, Row>> = {
  jobs: {
    args: () => [],
    schema: z.strictObject({
      jobs: z
        .array(
          z.strictObject({
            name: z.string(),
            file: z.string(),
            schedule: z.string().nullable(),
            zone: z.string().nullable(),
            words: z.string().nullable(),
            shape: z.enum(["run", "tick", "source"]),
            timeoutMs: count,
            jitterMs: count,
            dryRun: z.boolean(),
            nextTick: at.nullable(),
          }),
        )
        .length(3),
      problems,
    }),
  },
  next: {
    args: () => [job.name, "--count", "2"],
    schema: z.strictObject({
      job: z.string(),
      schedule: z.string(),
      zone: z.string(),
      words: z.string(),
      jitterMs: count,
      startsAfterMs: count,
      ticks: z.array(z.strictObject({ tick: at, local: z.string(), remark: z.string().nullable() })).length(2),
      removed: z.array(z.strictObject({ ...range.shape, reason: z.string() })),
    }),
  },
  check: {
    args: () => [],
    schema: z.looseObject({
      jobs: count,
      errors: count,
      warnings: count,
      findings: z.array(z.unknown()),
      costs: z.array(z.unknown()),
    }),
  },
  rehearse: {
    args: () => [job.name, "--from", "2026-01-01", "--to", "2026-01-02"],
    schema: z.looseObject({
      job: z.string(),
      ok: z.literal(true),
      from: at,
      to: at,
      ticks: z.looseObject({ all: count }),
    }),
  },
  status: {
    args: () => [job.name],
    code: 1,
    schema: z.strictObject({
      at,
      jobs: z
        .array(
          z.strictObject({
            job: z.string(),
            ok: z.boolean(),
            problems: z.array(z.string()),
            remarks: z.array(z.string()),
            lastSuccess: at.nullable(),
            lastTick: at.nullable(),
            nextTick: at.nullable(),
            overdueMs: count,
            overdueTick: at.nullable(),
            failures: count,
            fence: z.int().nullable(),
            running: z.strictObject({ ...going, leaseUntil: at, expired: z.boolean() }).nullable(),
            paused: z.strictObject({ ...told, at, until: at.nullable() }).nullable(),
            movedTo: z.string().nullable(),
            suspects: z.array(z.strictObject({ run: id, kind: z.string(), startedAt: at })),
          }),
        )
        .length(1),
    }),
  },
  runs: {
    args: () => [job.name],
    schema: z.strictObject({ job: z.string(), runs: z.array(record).length(3) }),
  },
  show: {
    args: () => [job.runs[0] as string],
    schema: z.strictObject({ state: z.literal("ended"), job: z.string(), run: record }),
  },
  ledger: {
    args: () => [job.name, "--from", isoAt(job.first)],
    code: 1,
    schema: z.strictObject({
      job: z.string(),
      from: at,
      to: at,
      ticks: z.array(z.strictObject(entry)).min(5),
      counts: z.record(z.union([state, z.literal("all")]), count),
    }),
  },
  why: {
    args: () => [job.name, isoAt(job.first + hourMs)],
    schema: z.strictObject({
      job: z.string(),
      ...entry,
      sentences: z.array(z.string()).min(1),
      evidence: z.strictObject({
        runs: z.array(record),
        moreRuns: count,
        acts: z.array(z.strictObject({ kind: z.string(), at, ...told })),
        holder: z.strictObject({ ...going, fence: z.int(), leaseUntil: at }).nullable(),
      }),
      upcoming: z.array(z.strictObject({ kind: z.string(), at: at.optional(), sentence: z.string() })),
    }),
  },
  run: {
    args: () => [other.name, "--here", "--tick", isoAt(other.first + 3 * hourMs)],
    schema: report,
  },
  backfill: {
    args: () => [other.name, "--here", "--from", isoAt(other.first - 2 * hourMs), "--to", isoAt(other.first), ...act],
    schema: z.strictObject({
      job: z.string(),
      ticks: z.array(at).length(2),
      done: z.literal(2),
      runs: z.array(z.strictObject({ run: id, outcome: z.string(), items: count, error: error.optional() })).length(1),
      leftOut: z.strictObject({ done: count, already: count, owed: z.array(at), other: count, beyond: count }),
    }),
  },
  pause: {
    args: () => [other.name, "--until", "1h", ...act],
    schema: z.strictObject({ job: z.string(), until: at.nullable(), ...told, ...cancelled }),
  },
  resume: {
    args: () => [other.name, ...act],
    schema: z.strictObject({ job: z.string(), wasPaused: z.boolean(), ...told }),
  },
  cancel: {
    args: () => [held, ...act],
    schema: z.strictObject({ job: z.string(), ...told, cancelled: z.literal("their-run") }),
  },
  skip: {
    args: () => [other.name, isoAt(other.first + 4 * hourMs), ...act],
    schema: z.strictObject({ job: z.string(), ticks: range, ...told, ...cancelled }),
  },
  rewind: {
    args: () => [other.name, "--to", '{"id":7}', ...act],
    schema: z.strictObject({ job: z.string(), watermark: z.json(), ...told, ...cancelled }),
  },
  move: {
    args: () => [other.name, `${other.name}-new`, ...act],
    schema: z.strictObject({ from: z.string(), to: z.string(), ...told, ...cancelled }),
  },
  parked: {
    args: () => [parked, "--limit", "2"],
    schema: z.strictObject({
      job: z.string(),
      items: z
        .array(
          z.strictObject({
            key: z.string(),
            cursor: z.json(),
            item: z.json().optional(),
            attempts: count,
            error,
            run: id,
            at,
          }),
        )
        .length(2),
      more: z.literal(true),
    }),
  },
  retry: { args: () => [parked, "a", "--by", "ann", "--yes"], schema: report },
  drop: {
    args: () => [parked, "b", ...act],
    schema: z.strictObject({ job: z.string(), key: z.string(), dropped: z.literal(true), ...told }),
  },
  approve: {
    args: () => [parked, "--max", "4", "--for", "1h", ...act],
    schema: z.strictObject({ job: z.string(), hash: id, max: count, until: at, ...told }),
  },
  release: {
    args: () => [parked, "payment", "--done", ...act],
    schema: z.strictObject({ job: z.string(), key: z.string(), verdict: z.literal("done"), ...told }),
  },
  init: {
    args: () => [join(empty, "shop")],
    schema: z.strictObject({
      folder: z.string(),
      service: z.literal("shop"),
      made: z.array(z.string()).length(6),
      kept: z.array(z.string()).length(0),
      next: z.array(z.string()).length(2),
    }),
  },
  "table create": {
    args: () => ["--job", job.name],
    schema: z.strictObject({ table: z.string(), created: z.literal(false), jobs: z.array(z.string()) }),
  },
  "table restored": {
    args: () => ["--why", "a backup", "--yes"],
    schema: z.strictObject({ table: z.string(), jobs: z.array(z.string()).min(3) }),
  },
};

describe("--json of", () => {
  it.each(Object.entries(rows))("cronfence %s", async (name, { args, schema, code = 0 }) => {
    const command = [...name.split(" "), ...args(), "--json"];
    const ended = await cronfence(cwd, command, environment(engine.endpoint));
    expect(ended.stderr).toBe("");
    const parsed = schema.safeParse(JSON.parse(ended.stdout));
    expect(parsed.success ? [] : parsed.error.issues).toEqual([]);
    expect(ended.code).toBe(code);
  });
});

describe("Each command", () => {
  const commands = newProgram().commands.flatMap((command) =>
    command.commands.length === 0 ? [command] : command.commands.map((each) => each),
  );
  const nameOf = (command: (typeof commands)[number]): string =>
    command.parent?.parent ? `${command.parent.name()} ${command.name()}` : command.name();
  /** What `drift` prints depends on a deployed service, and is checked there. */
  const elsewhere = ["drift"];

  it("has JSON that is checked", () => {
    expect(Object.keys(rows).sort()).toEqual(
      commands
        .map(nameOf)
        .filter((name) => !elsewhere.includes(name))
        .sort(),
    );
    for (const command of commands) expect(command.options.map(({ long }) => long)).toContain("--json");
  });

  it("is described in docs/command-line.md", async () => {
    const page = await readFile(new URL("../../docs/command-line.md", import.meta.url), "utf8");
    for (const command of commands) expect(page).toMatch(new RegExp(`\`${nameOf(command)}\\b`));
  });

  it.each(commands.map((command) => [nameOf(command), command] as const))("has an example: %s", (name, command) => {
    let help = "";
    command
      .configureOutput({
        writeOut: (text) => {
          help += text;
        },
      })
      .outputHelp();
    expect(help).toMatch(new RegExp(`Examples?:\\n  npx cronfence ${name}\\b`));
    expect(Math.max(...help.split("\n").map((line) => line.length))).toBeLessThanOrEqual(130);
  });
});
