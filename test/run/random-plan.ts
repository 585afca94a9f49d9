/**
 * What a random schedule consists of, as data: the job, who runs it with which clock, what is delivered, and one move
 * after the other of whoever decides what happens next. The same plan always gives the same history.
 */
import * as fc from "fast-check";

/** How the code of a `run` job makes its commits. */
type Style = "one by one" | "at once" | "unawaited" | "swallowing";

export type WorkPlan =
  | {
      readonly shape: "run";
      readonly perTick: number;
      readonly batch: number;
      readonly style: Style;
      /** Ends with a last batch by `commitAtEnd`. */
      readonly lastBatch: boolean;
      /** Begins with a commit that DynamoDB rejects. */
      readonly rejected: boolean;
    }
  | { readonly shape: "tick"; readonly writes: readonly number[] }
  | {
      readonly shape: "source";
      readonly perTick: number;
      readonly pageSize: number;
      readonly limit: number | undefined;
    };

const moveKinds = [
  /** A request is done and answered, or a timer fires, or the next delivery comes, or time passes. */
  "go",
  /** A request is done; its answer is still on its way. */
  "apply",
  "deliver",
  /** The connection breaks, before or after. */
  "break",
  "fail",
  "conflict",
  /** The network repeats a request, maybe one that hadn't arrived yet. */
  "repeat",
  "pause",
  "resume",
  "crash",
  "elapse",
  "interrupt",
  "cancel",
] as const;

export type MoveKind = (typeof moveKinds)[number];
type Move = readonly [kind: MoveKind, choice: number];

export interface Plan {
  readonly work: WorkPlan;
  readonly overlap: "queue" | "skip" | "takeover";
  /** How far each runner's clock is ahead, in milliseconds: as many as run at the same time. */
  readonly clocks: readonly number[];
  /** Whether the server knows a request that it has done by its token. */
  readonly tokens: boolean;
  /** Whether deliveries of one tick are retries of one invocation. */
  readonly retries: boolean;
  /** The ticks that are delivered, by number from 1, in this order. */
  readonly deliveries: readonly number[];
  /** The attempts, by number from 0, in which the job's own code fails after its first commit. */
  readonly failing: readonly number[];
  readonly moves: readonly Move[];
}

export const mostTicks = 3;

const run = fc.record({
  shape: fc.constant("run" as const),
  perTick: fc.integer({ min: 1, max: 3 }),
  batch: fc.integer({ min: 1, max: 2 }),
  style: fc.constantFrom<Style>("one by one", "at once", "unawaited", "swallowing"),
  lastBatch: fc.boolean(),
  rejected: fc.boolean(),
});
const tick = fc.record({
  shape: fc.constant("tick" as const),
  writes: fc.array(
    fc.oneof({ weight: 12, arbitrary: fc.integer({ min: 1, max: 2 }) }, { weight: 1, arbitrary: fc.constant(120) }),
    { minLength: mostTicks, maxLength: mostTicks },
  ),
});
const source = fc.record({
  shape: fc.constant("source" as const),
  perTick: fc.integer({ min: 1, max: 2 }),
  pageSize: fc.integer({ min: 1, max: 3 }),
  limit: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
});

const weights: Record<MoveKind, number> = {
  go: 26,
  apply: 8,
  deliver: 4,
  break: 6,
  fail: 3,
  conflict: 2,
  repeat: 7,
  pause: 3,
  resume: 3,
  crash: 2,
  elapse: 6,
  interrupt: 1,
  cancel: 1,
};
const move: fc.Arbitrary<Move> = fc.tuple(
  fc.oneof(...moveKinds.map((kind) => ({ weight: weights[kind], arbitrary: fc.constant(kind) }))),
  fc.nat({ max: 11 }),
);

/** At most this far apart: more than the job's `skew` allows for. */
export const mostSkewMs = 3_000;

export const plans: fc.Arbitrary<Plan> = fc.record({
  work: fc.oneof({ weight: 3, arbitrary: run }, { weight: 2, arbitrary: tick }, { weight: 2, arbitrary: source }),
  overlap: fc.constantFrom("queue", "queue", "skip", "takeover"),
  clocks: fc.array(fc.constantFrom(0, 0, 1_500, -1_500), { minLength: 2, maxLength: 4 }),
  tokens: fc.boolean(),
  retries: fc.nat({ max: 3 }).map((n) => n === 3),
  deliveries: fc.array(fc.integer({ min: 1, max: mostTicks }), { minLength: 2, maxLength: 5 }),
  failing: fc.subarray([0, 1, 2, 3], { maxLength: 1 }),
  moves: fc.array(move, { minLength: 10, maxLength: 50, size: "max" }),
});
