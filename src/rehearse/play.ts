/**
 * Plays deliveries as Lambda would run them: an invocation that fails is tried again after one and after two minutes, and a
 * tick that was queued behind a run with no time left for it starts another.
 */
import { randomUUID } from "node:crypto";
import type { RunDeps } from "../attempt.ts";
import { hasCode } from "../errors.ts";
import type { Job } from "../job.ts";
import type { Logger } from "../observe/log.ts";
import { type AttemptOutcome, traitsOf } from "../outcome.ts";
import type { RunReport } from "../report.ts";
import { runJob } from "../run.ts";
import type { Deliveries, Delivery } from "./deliveries.ts";
import type { SimulatedClock } from "./simulated-clock.ts";

interface Stage {
  readonly job: Job;
  readonly store: NonNullable<RunDeps["store"]>;
  readonly clock: SimulatedClock;
  readonly random: () => number;
}

/** What came of the deliveries. */
export interface Played {
  readonly all: number;
  readonly retries: number;
  /** Deliveries that never became a run, by outcome; `unrecorded` ones came to no report. */
  readonly attempts: Readonly<Partial<Record<AttemptOutcome | "unrecorded", number>>>;
  /** What made runs fail, the most frequent first; those that differ only in their times and ids are counted as one. */
  readonly errors: readonly { readonly message: string; readonly count: number; readonly firstTick: number }[];
  /** Whether `run` is one that a delivery of `tick` started, or was handed to. */
  isOwnRun(tick: number, run: string): boolean;
}

/** Makes all deliveries, one after the other, except that those of the same instant are made at once. */
export const play = async (
  planned: Deliveries,
  { job, store, clock, random }: Stage,
  { log = silent, onProgress }: { readonly log?: Logger; readonly onProgress?: (done: number, all: number) => void },
): Promise<Played> => {
  const waiting = [...planned.all].reverse();
  const attempts: Partial<Record<AttemptOutcome | "unrecorded", number>> = {};
  const errors = new Map<string, { message: string; count: number; firstTick: number }>();
  const own = new Map<number, Set<string>>();
  /** Covered by the run that held the lease. */
  const handedOver = new Set<number>();
  let done = 0;
  let retries = 0;

  /** Beside those of the same time, and before those of a later one. */
  const add = (delivery: Delivery) => {
    let index = waiting.length;
    while (index > 0 && waiting[index - 1]!.at <= delivery.at) index -= 1;
    waiting.splice(index, 0, delivery);
  };
  const failed = (delivery: Delivery, message: string) => {
    const kind = message.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z?|[\da-f]{8}-[\da-f-]{27}|\d+/g, "…");
    const before = errors.get(kind) ?? { message, count: 0, firstTick: delivery.tick };
    errors.set(kind, { ...before, count: before.count + 1 });
    const delayMs = retryDelaysMs[delivery.attempt - 1];
    if (delayMs === undefined) return;
    retries += 1;
    add({ ...delivery, attempt: delivery.attempt + 1, at: clock.now() + delayMs });
  };
  const deliver = async (delivery: Delivery): Promise<void> => {
    const { tick, requestId, attempt } = delivery;
    onProgress?.(done, done + waiting.length + 1);
    done += 1;
    const deps = {
      store,
      clock,
      random,
      log,
      startAnother: async (_job: string, queued: number) => {
        add({ tick: queued, at: clock.now(), requestId: randomUUID(), attempt: 1 });
      },
    };
    let report: RunReport;
    try {
      report = await runJob(job, { kind: "schedule", tick, requestId, attempt }, deps);
    } catch (error) {
      if (!retriable.some((code) => hasCode(error, code))) throw error;
      attempts.unrecorded = (attempts.unrecorded ?? 0) + 1;
      failed(delivery, (error as Error).message);
      return;
    }
    if (report.run !== undefined) own.set(tick, (own.get(tick) ?? new Set()).add(report.run));
    else attempts[report.outcome as AttemptOutcome] = (attempts[report.outcome as AttemptOutcome] ?? 0) + 1;
    if (report.outcome === "queued" || report.outcome === "held") handedOver.add(tick);
    if (traitsOf(report.outcome).fails) failed(delivery, report.error?.message ?? report.outcome);
  };

  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    clock.set(next.at);
    const together = [next];
    while (waiting.at(-1)?.at === next.at) together.push(waiting.pop() as Delivery);
    await Promise.all(together.map(deliver));
  }
  return {
    all: done,
    retries,
    attempts,
    errors: [...errors.values()].sort((one, other) => other.count - one.count),
    isOwnRun: (tick: number, run: string) => handedOver.has(tick) || own.get(tick)?.has(run) === true,
  };
};

/** https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html */
const retryDelaysMs = [60_000, 120_000];

/** An invocation that ends so fails, and is tried again; anything else means that the local DynamoDB can't be used. */
const retriable = ["PREDECESSOR_UNFINISHED", "OUTCOME_UNKNOWN"];

const silent: Logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent };
