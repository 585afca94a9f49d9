/**
 * A process that runs the main job when it is told to, as a host of scheduled functions would: one command per line on
 * standard input, one event per line on standard output, the log on standard error. worker-process.ts is its other end.
 *
 * Two things can be set for each run, so that drills need no luck: the instant at which its clock starts, and one call
 * to hold back until it is released. A process that is stopped or killed while it holds a commit back is stopped in
 * mid-run, after exactly the commits before that one.
 */
import { createInterface } from "node:readline";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { type Clock, type DynamoStore, dynamoStore, type Job, type RunDeps, type RunReport, runJob } from "cronfence";
import { lambdaHandler } from "cronfence/lambda";
import { pino } from "pino";
import { job as mainJob } from "../../handlers/expire-carts.ts";
import { drilledJobs } from "./long/jobs.ts";

/** A call that can be held back: of the store, or the work on an item. */
export type Held = "acquire" | "commit" | "finish" | "item";

export interface FireCommand {
  readonly do: "fire";
  /** One of a long drill's jobs, by its name. @default the main job, as it is */
  readonly job?: string;
  /** The tick to deliver, in milliseconds since the epoch. */
  readonly tick: number;
  /** Where this run's clock starts. */
  readonly at: number;
  /** How many milliseconds pass on that clock in one real millisecond. @default 1 */
  readonly speed?: number;
  /** @default the job's own */
  readonly ttlMs?: number;
  /** @default the job's own */
  readonly skewMs?: number;
  /** @default 1000 */
  readonly requestTimeoutMs?: number;
  /** Holds back the `nth` call, from 1, and says so. */
  readonly hold?: { readonly before: Held; readonly nth: number };
  /** Through the job's Lambda handler, which takes SIGTERM as Lambda means it. */
  readonly asLambda?: boolean;
}

export type Command = FireCommand | { readonly do: "release" };

export type WorkerEvent =
  | { readonly is: "ready" }
  | { readonly is: "holding"; readonly before: Held; readonly nth: number }
  | { readonly is: "report"; readonly report: RunReport }
  | { readonly is: "error"; readonly name: string; readonly code?: string; readonly message: string };

const tell = (event: WorkerEvent): void => {
  process.stdout.write(`${JSON.stringify(event)}\n`);
};

const table = process.env.CRONFENCE_TABLE ?? "cronfence";
const client = new DynamoDBClient({ maxAttempts: 1 });
const log = pino({ base: null }, pino.destination({ fd: 2, sync: true }));
let release = () => {};

const fire = async ({ tick, at, speed = 1, requestTimeoutMs = 1_000, asLambda = false, ...command }: FireCommand) => {
  const { job, store } = holdingBack(jobFor(command), dynamoStore({ client, table, requestTimeoutMs }), command.hold);
  const deps: RunDeps = { store, clock: clockFrom(at, speed), log };
  try {
    const report = asLambda
      ? await lambdaHandler(job, deps)({ job: job.name, scheduledTime: new Date(tick).toISOString() })
      : await runJob(job, { kind: "schedule", tick }, deps);
    tell({ is: "report", report });
  } catch (error) {
    const { name, code, message } = error as Error & { code?: string };
    tell({ is: "error", name, message, ...(code === undefined ? {} : { code }) });
  }
};

const jobFor = ({ job: name, ttlMs, skewMs }: Pick<FireCommand, "job" | "ttlMs" | "skewMs">): Job => {
  const job = name === undefined ? mainJob : drilledJobs.find((one) => one.name === name);
  if (job === undefined) throw new Error(`there is no job "${name}" here`);
  return { ...job, ttlMs: ttlMs ?? job.ttlMs, skewMs: skewMs ?? job.skewMs };
};

/** Counted from `at`; the first look at it sees exactly `at`. */
const clockFrom = (at: number, speed: number): Clock => {
  let startedAt: number | undefined;
  return {
    now: () => {
      startedAt ??= performance.now();
      return Math.floor(at + (performance.now() - startedAt) * speed);
    },
    after: (delayMs, wake) => {
      const timer = setTimeout(wake, delayMs / speed);
      return () => clearTimeout(timer);
    },
  };
};

const holdingBack = (job: Job, store: DynamoStore, hold: FireCommand["hold"]): { job: Job; store: DynamoStore } => {
  let calls = 0;
  const gate = async (before: Held): Promise<void> => {
    if (hold?.before !== before || (calls += 1) !== hold.nth) return;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    tell({ is: "holding", before, nth: calls });
    await released;
  };
  const { work } = job;
  return {
    job:
      hold?.before !== "item" || work.shape !== "source"
        ? job
        : {
            ...job,
            work: {
              ...work,
              process: async (item, run) => {
                await gate("item");
                return work.process(item, run);
              },
            },
          },
    store: {
      ...store,
      acquire: async (...request) => {
        await gate("acquire");
        return store.acquire(...request);
      },
      commit: async (...request) => {
        await gate("commit");
        return store.commit(...request);
      },
      finish: async (...request) => {
        await gate("finish");
        return store.finish(...request);
      },
    },
  };
};

const commands = createInterface({ input: process.stdin });
commands.on("line", (line) => {
  const command = JSON.parse(line) as Command;
  if (command.do === "release") release();
  else void fire(command);
});
// Whoever gave the commands is gone.
commands.once("close", () => process.exit(0));
tell({ is: "ready" });
