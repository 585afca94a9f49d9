/**
 * The session in docs/command-line.md is what the commands print: each is run, in a process whose clock stands at the time of
 * the story, on the story's history. After a change on purpose, UPDATE_TRANSCRIPT=1 writes what they print now.
 */
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { cron, defineJob, type Job, runJob, type Tick } from "cronfence";
import { lambdaHandler } from "cronfence/lambda";
import { type SettableClock, settableClock } from "cronfence/testing";
import { beforeAll, expect, it } from "vitest";
import { budgetOn, silentLog, useEngine } from "../fixture.ts";
import { cronfence, projectOf } from "./command.ts";
import { environment } from "./operated.ts";
import { useStubLambda } from "./stub-lambda.ts";

const engine = useEngine("orders");
const lambda = useStubLambda();

const page = fileURLToPath(new URL("../../docs/command-line.md", import.meta.url));
const block = /(<!-- A session, checked by test\/cli\/transcript\.test\.ts -->\n```console\n)([\s\S]*?)(```\n)/;

const day = (time: string) => Date.parse(`2026-03-02T${time}Z`);
const name = "sync-orders";
const version = "4f0c2d1";

/** The job as its module defines it, and as its function runs it. */
const source = `
import { cron, defineJob } from "cronfence";
export const job = defineJob({
  name: "${name}",
  schedule: cron("*/10 * * * *"),
  timeout: "2m",
  alert: { missedAfter: "5m" },
  tick: (tick) => [{ Put: { TableName: "orders", Item: { id: tick.id } } }],
});
`;

const ids = ["b4d1f8c2", "0e9a6b57", "5c83d2e9", "91f7a0cd", "d26b4e18", "7a3c5f90", "e8105bd3", "3f6ad94c"];
let clock: SettableClock;
let cwd: string;
beforeAll(async () => {
  clock = settableClock(day("08:55:00"));
  cwd = await projectOf({ "handlers/sync-orders.ts": source });
  let supplier = "open";
  const job = defineJob({
    name,
    schedule: cron("*/10 * * * *"),
    timeout: "2m",
    tick: (tick: Tick) => {
      clock.advance(1_400);
      if (supplier === "closed") throw new Error("GET https://supplier.example/orders: 503 Service Unavailable");
      return [{ Put: { TableName: "orders", Item: { id: tick.id } } }];
    },
  }) as Job;
  let next = 0;
  // The run's id, then its owner's nonce.
  const newId = () => {
    next += 1;
    return next % 2 === 1 ? `${ids[(next - 1) / 2]}-0000-4000-8000-${String(next).padStart(12, "0")}` : `nonce-${next}`;
  };
  const deps = { store: engine.store, clock, log: silentLog, version, newId };
  await engine.store.create(name, clock.now(), budgetOn(clock));
  const deliver = async (tick: string, at: string) => {
    clock.set(day(at));
    await runJob(job, { kind: "schedule", tick: day(tick) }, deps);
  };
  await deliver("09:00:00", "09:00:02");
  supplier = "closed";
  await deliver("09:10:00", "09:10:01");
  await deliver("09:10:00", "09:11:04");
  await deliver("09:20:00", "09:20:02");
  await deliver("09:30:00", "09:30:01");
  supplier = "open";
  clock.set(day("09:38:20"));
  const handler = lambdaHandler(job, deps) as (event: unknown, context: object) => Promise<unknown>;
  lambda.functions.set(`shop-prod-${name}`, handler);
});

/** In the process of the command, the clock stands. */
const standingClock = (at: number): string =>
  `data:text/javascript,${encodeURIComponent(
    `globalThis.Date = class extends Date { constructor(...from) { if (from.length === 0) super(${at}); else super(...from); } static now() { return ${at}; } };`,
  )}`;

const printed = async (line: string): Promise<string> => {
  const args = (line.match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replace(/^"(.*)"$/, "$1"));
  expect(args.slice(0, 2)).toEqual(["npx", "cronfence"]);
  const { stdout, stderr } = await cronfence(cwd, args.slice(2), {
    ...environment(engine.endpoint),
    AWS_ENDPOINT_URL_LAMBDA: lambda.endpoint,
    CRONFENCE_FUNCTION_NAME: "shop-prod-{job}",
    NODE_OPTIONS: `--import ${standingClock(clock.now())}`,
  });
  return stderr + stdout;
};

it("The session in docs/command-line.md is real", async () => {
  const text = await readFile(page, "utf8");
  const shown = block.exec(text)?.[2];
  if (shown === undefined) throw new Error(`there is no session in ${page}`);
  let real = "";
  for (const line of shown.split("\n").filter((each) => each.startsWith("$ "))) {
    real += `${line}\n${await printed(line.slice(2))}\n`;
  }
  real = `${real.trimEnd()}\n`;
  if (process.env.UPDATE_TRANSCRIPT)
    await writeFile(
      page,
      text.replace(block, (_, start, __, end) => start + real + end),
    );
  else expect(real).toBe(shown);
});
