/**
 * Plays a random plan: its moves first, and then to the end, where nothing more goes wrong, everything that was under way
 * arrives, and the job is run until it is done.
 */
import { unmarshall } from "@aws-sdk/util-dynamodb";
import { type DynamoStore, systemClock } from "cronfence";
import { Violation } from "../../src/testing/explore/rules.ts";
import { askEngine, brokenConnection, conflictWith, serverError } from "../../src/testing/wire.ts";
import { budgetOn } from "../fixture.ts";
import { checkEnd, itemsOf } from "./model.ts";
import { logTable, minuteMs, numberOf, origin, rowsOf, skewMs, timeoutMs, ttlMs } from "./planned-job.ts";
import { type MoveKind, mostSkewMs, mostTicks, type Plan } from "./random-plan.ts";
import { type Actor, openWorld, type World } from "./world.ts";

/**
 * @param direct past all gates
 * @param name of the job: nobody else's
 * @returns what happened, step by step
 * @throws Violation naming the rule that was broken, and what led to it
 */
export const play = async (
  endpoint: string,
  direct: DynamoStore,
  name: string,
  plan: Plan,
): Promise<readonly string[]> => {
  const trace: string[] = [];
  try {
    const world = openWorld(endpoint, name, plan, trace);
    await direct.create(name, origin, budgetOn(systemClock));
    await world.look();
    for (const [kind, choice] of plan.moves) await moves[kind](world, choice);
    await playToTheEnd(world);
    const { runs } = await direct.runs(name, { limit: 200 }, budgetOn(systemClock));
    for (const { id, outcome, commits } of runs) world.say(`on record: ${id} ${outcome}, ${commits} commits`);
    checkEnd(world.rules, world.seen, world.accounts(), runs);
    await checkRows(endpoint, name, world);
    return trace;
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    throw new Violation(`${error.message}\n  ${trace.join("\n  ")}`);
  }
};

/** One of them, if there is any. */
const choose = <T>(from: readonly T[], choice: number): T | undefined => from[choice % Math.max(1, from.length)];

/** Within a backoff, to a heartbeat, past a lease by the same clock, past one by any clock, past the deadline. */
const lapses = [60, 500, ttlMs / 3 + 1, ttlMs + skewMs + 1, ttlMs + skewMs + 2 * mostSkewMs, timeoutMs + 1];

/** Whatever comes next: a request, an overdue timer, a delivery, the next timer. @returns whether there was anything */
const go = async (world: World, choice: number): Promise<boolean> => {
  const next = choose([...open(world), ...world.overdue()], choice);
  if (next !== undefined) await ("wake" in next ? world.fire(next) : world.answer(next));
  else if (!(await deliver(world))) {
    const ms = world.untilNext();
    if (ms === undefined) return false;
    await world.elapse(ms);
  }
  return true;
};

const deliver = async (world: World): Promise<boolean> => {
  const { deliveries, plan } = world;
  if (deliveries.length === 0 || world.attempts().length >= plan.clocks.length) return false;
  await world.run(deliveries.shift() as number);
  return true;
};

/** Requests whose senders are listening. */
const open = (world: World) => world.gates().filter(({ actor }) => world.isAwake(actor));

/** A choice that isn't there is whatever comes next, so that every plan can be played. */
const moves: Record<MoveKind, (world: World, choice: number) => Promise<unknown>> = {
  go,
  apply: async (world, choice) => {
    const waiting = world.gates().filter(({ reply }) => reply === undefined);
    const gate = choose(waiting, choice);
    return gate === undefined ? go(world, choice) : world.arrive(gate);
  },
  deliver: async (world, choice) => (await deliver(world)) || go(world, choice),
  break: async (world, choice) => {
    const gate = choose(open(world), choice);
    return gate === undefined ? go(world, choice) : world.breakOff(gate, brokenConnection());
  },
  fail: async (world, choice) => {
    const gate = choose(open(world), choice);
    return gate === undefined ? go(world, choice) : world.breakOff(gate, serverError());
  },
  conflict: async (world, choice) => {
    const waiting = open(world).filter(({ reply }) => reply === undefined);
    const gate = choose(waiting, choice);
    if (gate === undefined) return go(world, choice);
    // The service has had it, and has answered that it did nothing.
    world.forget(gate);
    return world.breakOff(gate, conflictWith(gate.request));
  },
  repeat: async (world, choice) => {
    const known = world.sent().toReversed();
    const missing = known.filter(({ request }) => request.accepted === 0);
    const again = choose([...missing, ...known].slice(0, 8), choice);
    if (again === undefined) return go(world, choice);
    world.say(`the network repeats ${again.actor.name} ${again.request.operation} #${again.request.at}`);
    return world.apply(again, world.plan.tokens && choice % 2 === 0);
  },
  pause: async (world, choice) => {
    const actor = choose(world.attempts().filter(world.isAwake), choice);
    return actor === undefined ? go(world, choice) : setPaused(world, actor, true);
  },
  resume: async (world, choice) => {
    const paused = world.attempts().filter((actor) => actor.paused);
    const actor = choose(paused, choice);
    return actor === undefined ? go(world, choice) : setPaused(world, actor, false);
  },
  crash: async (world, choice) => {
    const actor = choose(world.attempts(), choice);
    if (actor === undefined) return go(world, choice);
    world.say(`${actor.name} crashes`);
    return world.crash(actor);
  },
  elapse: async (world, choice) => world.elapse(lapses[choice % lapses.length] as number),
  interrupt: async (world, choice) => {
    const actor = choose(world.attempts().filter(world.isAwake), choice);
    if (actor === undefined) return go(world, choice);
    world.say(`${actor.name} is interrupted`);
    actor.interrupt.abort("SIGTERM");
    return world.quiet();
  },
  cancel: (world) => world.cancel(),
};

const setPaused = (world: World, actor: Actor, paused: boolean): void => {
  world.say(`${actor.name} ${paused ? "is paused" : "goes on"}`);
  actor.paused = paused;
};

const playToTheEnd = async (world: World): Promise<void> => {
  world.say("nothing more goes wrong");
  for (const actor of world.running()) actor.paused = false;
  await runOut(world);
  for (const late of world.sent().filter(({ request }) => request.accepted === 0)) {
    world.say(`${late.actor.name} ${late.request.operation} #${late.request.at} arrives late`);
    await world.apply(late);
  }
  for (let tick = mostTicks; !isDone(world) && tick < mostTicks + 8; tick += 1) {
    await world.elapse(minuteMs);
    world.deliveries.push(Math.max(tick, numberOf(world.seen.control.tick ?? origin) + 1));
    await runOut(world);
  }
};

const runOut = async (world: World): Promise<void> => {
  for (let steps = 0; world.running().length > 0 || world.deliveries.length > 0; steps += 1) {
    const stuck = steps > 1_000 || !(await go(world, 0));
    if (stuck) throw new Violation(`these never end: ${world.running().map(({ name }) => name)}`);
  }
};

const isDone = ({ seen: { control }, plan }: World): boolean =>
  numberOf(control.tick ?? origin) >= mostTicks &&
  Number(control.watermark ?? 0) >= itemsOf(plan.work, mostTicks) &&
  control.owner === undefined &&
  control.prev.length === 0;

/** What each commit counted beside its entry in the log was counted once. */
const checkRows = async (endpoint: string, name: string, { plan, seen }: World): Promise<void> => {
  const ids = rowsOf(plan, name, seen.log);
  if (ids.length === 0) return;
  const Keys = ids.slice(0, 100).map((id) => ({ id: { S: id } }));
  const { Responses } = await askEngine<{ Responses: Record<string, Parameters<typeof unmarshall>[0][]> }>(
    endpoint,
    "BatchGetItem",
    { RequestItems: { [logTable]: { ConsistentRead: true, Keys } } },
  );
  const rows = (Responses[logTable] ?? []).map((item) => unmarshall(item));
  const wrong = rows.filter(({ times }) => times !== 1);
  if (rows.length === Keys.length && wrong.length === 0) return;
  throw new Violation(`a commit is applied as a whole, and once: ${JSON.stringify({ ids, rows })}`);
};
