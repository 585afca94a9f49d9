/**
 * Plays one schedule: the ticks are delivered to runners of the job, what the schedule says goes wrong, Lambda tries again what
 * failed, and then nothing more goes wrong, all that is late arrives, and the job is run until it is done.
 *
 * Wherever the schedule says nothing, the oldest request goes first, and time passes only when nothing else can happen.
 */
import type { RunRecord } from "../../control/control-store.ts";
import { dynamoStore } from "../../control/dynamo-store.ts";
import { controlTable } from "../drills/ground.ts";
import { type State, stateOf } from "../drills/state.ts";
import { passed, wireTo } from "../wire.ts";
import { startAttempt } from "./attempts.ts";
import { type History, isOver, lookAt, openHistory, type Stage } from "./history.ts";
import { arriveLate, takeStep } from "./request-step.ts";
import { checkSettled, rule, Violation } from "./rules.ts";
import { faultKinds, type Schedule, type Step } from "./schedule.ts";

/** What a play has come to. */
export interface Played {
  readonly timeline: readonly string[];
  /** All steps that a fault could have been at, in order. */
  readonly steps: readonly Step[];
  /** The user's, when all was over. */
  readonly state: State;
  readonly records: readonly RunRecord[];
  /** Writes of the job's own clients, past its commits: each request in words. */
  readonly ownWrites: readonly string[];
  /** The rule that was broken, with what was seen. */
  readonly violation: string | undefined;
}

/**
 * @param variant of ids and of fences: what differs between variants doesn't tell anything
 * @throws Error when the play can't go on for a reason that no rule is about
 */
export const play = async (stage: Stage, schedule: Schedule, variant = 0): Promise<Played> => {
  const { scene, job, ticks } = stage;
  const first = ticks[0] as number;
  await scene.reset(first);
  const direct = dynamoStore({ client: wireTo(scene.ground.endpoint, passed).client, table: controlTable });
  const knownAt = first - 1_000 * (1 + variant);
  const budget = { clock: { now: () => knownAt, after: () => () => {} }, until: first, random: () => 0 };
  await direct.create(job.name, first - 1, budget);
  const history = openHistory(stage, schedule, await lookAt(scene, job.name));
  let violation: string | undefined;
  try {
    deliverTicks(history);
    await runOut(history, variant);
    await close(history, variant);
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    violation = error.message;
  } finally {
    for (const actor of history.attempts.keys()) if (!isOver(actor)) history.world.crash(actor);
  }
  const records = (await direct.runs(job.name, { limit: 1_000 }, budget)).runs.toReversed();
  try {
    const accounts = history.accounts();
    if (violation === undefined) {
      checkSettled(history.control, accounts, records, {
        ticksByCommit: job.work.shape === "tick",
        emptyBatches: true,
      });
    }
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    violation = error.message;
  }
  const ids = new Set(history.accounts().flatMap(({ runId, owner }) => [runId, owner]));
  const { timeline, steps, ownWrites } = history;
  return { timeline, steps, ownWrites, records, state: await stateOf(scene, ids), violation };
};

const deliverTicks = ({ stage: { ticks }, faultAt, say, deliver }: History): void => {
  for (const [index, tick] of ticks.entries()) {
    const at = `tick${index + 1}`;
    const later = ticks[index + 1];
    const kind = faultAt(at, ["missed", "twice", ...(later === undefined ? [] : (["late"] as const))]);
    if (kind !== undefined) say(at, `${kind}: ${faultKinds[kind]}`);
    if (kind === "missed") continue;
    const delivery = { tick, at: kind === "late" ? (later as number) : tick, requestId: at, attempt: 1 };
    deliver(delivery);
    if (kind === "twice") deliver({ ...delivery, requestId: `${at} again` });
  }
};

/** Goes on until nothing can happen any more. */
const runOut = async (history: History, variant: number): Promise<void> => {
  for (let count = 0; await goOn(history, variant); count += 1) rule("everything comes to an end", count < mostSteps);
  const waiting = history.world.running().map(({ name }) => name);
  if (waiting.length === 0) return;
  throw new Error(
    `attempt ${waiting.join(", ")} waits for something that neither the simulated clock nor DynamoDB brings`,
  );
};

const mostSteps = 5_000;

/** Does whatever comes next. @returns whether there was anything */
const goOn = async (history: History, variant: number): Promise<boolean> => {
  const { stage, world, deliveries, holds, release } = history;
  release(({ until }) => until?.() === true);
  const open = world.gates().filter(({ actor }) => world.isAwake(actor));
  const gate = open.find((one) => !history.behind.has(one)) ?? open[0];
  if (gate !== undefined) {
    await takeStep(history, gate, variant);
    return true;
  }
  const [timer] = world.overdue();
  if (timer !== undefined) {
    await world.fire(timer);
    return true;
  }
  const delivery = world.running().length < stage.runners ? deliveries[0] : undefined;
  const untilDelivery = delivery === undefined ? Number.POSITIVE_INFINITY : Math.max(0, delivery.at - world.now());
  const untilTimer = world.untilNext() ?? Number.POSITIVE_INFINITY;
  if (delivery !== undefined && untilDelivery <= untilTimer) {
    deliveries.shift();
    await world.elapse(untilDelivery);
    await startAttempt(history, delivery, variant);
    return true;
  }
  if (untilTimer < Number.POSITIVE_INFINITY) {
    await world.elapse(untilTimer);
    return true;
  }
  if (holds.length > 0) {
    // Those that wait for somebody who waits, too, go first.
    const inTurn = holds.some(({ until }) => until !== undefined);
    release(({ until }) => (until !== undefined) === inTurn);
    await world.quiet();
    return true;
  }
  if (history.late.length === 0) return false;
  await arriveLate(history, () => true);
  return true;
};

/** Nothing more goes wrong: the job is run until it is done. */
const close = async (history: History, variant: number): Promise<void> => {
  const { stage, world, calm, deliver, accounts } = history;
  calm();
  await world.elapse(Math.max(0, stage.closingAt - world.now()));
  const ticks = [...stage.closing];
  for (let [tick] = ticks, count = 0; tick !== undefined && count < ticks.length; count += 1) {
    const known = history.attempts.size;
    deliver({ tick, at: world.now(), requestId: `closing ${count}`, attempt: 1 });
    await runOut(history, variant);
    const last = accounts().slice(known).at(-1)?.report;
    const isCompleted = (history.control.tick ?? 0) >= tick;
    const isCapped = last?.outcome === "capped";
    rule("a job succeeds once nothing goes wrong any more", isCompleted || isCapped, last?.error ?? last?.outcome);
    if (!isCapped) return;
    // A run may have left ticks to the next one, or items to the next tick's.
    if (isCompleted) tick = ticks[ticks.indexOf(tick) + 1];
  }
  throw new Violation(`all that was due is done: ${stage.closing.length} undisturbed runs weren't enough for that`);
};
