/**
 * Explores how runs of a job can interleave and what can go wrong between them and DynamoDB: one simulated history after the
 * other, each with the job's own code, cronfence's own protocol and a real local engine, and each the same whenever it is
 * played.
 *
 * Breadth first: the undisturbed history, then every one with a single fault, and with what is left of the budget a sample of
 * those with two and with three, each of which extends a history that was played. What is found is cut down to the shortest
 * schedule that still shows it.
 *
 * What it looks at after every history: that no rule of the protocol was broken (`rules.ts`), and that the user's tables are as
 * an undisturbed run leaves them.
 *
 * A pause is at a request's way out or back, of cronfence's or of the job's own clients of DynamoDB, and nowhere else: code that
 * waits for anything else runs on. Runners share the module's variables, as invocations of one environment do.
 */

import { InvalidOptionsError } from "../../errors.ts";
import type { Job } from "../../job.ts";
import { seededRandom } from "../../rehearse/random.ts";
import { onScene } from "../drills/scene.ts";
import { differencesBetween, partsBetween, rowsByChance } from "../drills/state.ts";
import { ExplorationFailedError } from "./exploration-failed-error.ts";
import { checkOptions, type ExploreOptions, planOf } from "./explore-options.ts";
import type { Stage } from "./history.ts";
import { type Played, play } from "./play.ts";
import { countLonger, longerBy, type Root, readSchedule, type Schedule, scheduleText, shrink } from "./schedule.ts";
import { simulateSurroundings } from "./surroundings.ts";
import { brokenBy, unfinished } from "./verdict.ts";
import type { WorldOptions } from "./world.ts";

/** What was explored, when nothing was found. */
export interface Exploration {
  readonly job: string;
  /** Histories that were played. */
  readonly schedules: number;
  /** How many of them had no fault, one, two and three. */
  readonly byFaults: readonly number[];
  /** Up to how many faults all schedules that there are were played. */
  readonly complete: number;
  /** The timeline of the last one: the only one, of a replay. */
  readonly timeline: readonly string[];
}

/**
 * Explores `job`, and resolves when nothing was found.
 *
 * @throws ExplorationFailedError with the rule that was broken, the shortest schedule and its timeline
 * @throws InvalidOptionsError naming every option that can't be accepted, and where nothing is due
 * @throws EngineUnavailableError when there is no local DynamoDB
 */
export const explore = (job: Job, options: ExploreOptions = {}): Promise<Exploration> => exploreThrough(job, options);

/**
 * The same with requests changed on their way to the engine: for tests that take one of the protocol's guards away.
 * @internal
 */
export const exploreThrough = async (
  job: Job,
  options: ExploreOptions,
  rewrite?: WorldOptions["rewrite"],
): Promise<Exploration> => {
  checkOptions(job, options);
  const plan = planOf(job, options);
  const { tables, seed, read, ignore } = options;
  const given = { ...(tables && { tables }), ...(seed && { seed }), ...(read && { read }), ...(ignore && { ignore }) };
  let found: Exploration | undefined;
  await onScene(job, given, plan.ticks, async (scene) => {
    const simulation = simulateSurroundings();
    const { ping: _, ...rest } = job;
    const stage: Stage = { ...plan, scene, job: { ...rest, metrics: "off" }, outside: simulation.outside, rewrite };
    try {
      found = await exploreOn(stage, options);
    } finally {
      simulation.restore();
    }
  });
  return found as Exploration;
};

/** A history, and what it has broken. */
interface Judged {
  readonly schedule: Schedule;
  readonly played: Played;
  readonly broken: string | undefined;
}

const exploreOn = async (stage: Stage, options: ExploreOptions): Promise<Exploration> => {
  const { budget = 300, faults: mostFaults = 3, randomSeed = 1, replay, check } = options;
  const { name } = stage.job;
  const undisturbed = await play(stage, []);
  const broken = undisturbed.violation ?? unfinished(undisturbed);
  if (broken !== undefined) throw failureOf(name, { schedule: [], played: undisturbed, broken }, 1);
  if (replay === undefined) refuseIdle(name, undisturbed, options);
  const again = await play(stage, [], 1);
  refuseChance(name, undisturbed, again);
  const alike = [again];
  if (stage.job.work.shape === "source") {
    // Which tick's run does an item is open.
    const allInOne = stage.ticks.map((_, index) => ({ kind: "missed", at: `tick${index + 1}` }) as const);
    alike.push(await play(stage, allInOne));
  }
  const ignored = new Set([
    ...(options.ignore ?? []),
    ...alike.flatMap(({ state }) => partsBetween(undisturbed.state, state)),
  ]);

  const judge = async (schedule: Schedule): Promise<Judged> => {
    const played = await play(stage, schedule);
    return { schedule, played, broken: await brokenBy(played, undisturbed, ignored, stage, check) };
  };
  const breaks = async (schedule: Schedule) => {
    const judged = await judge(schedule);
    return judged.broken === undefined ? undefined : judged;
  };

  const shortestOf = async (judged: Judged): Promise<Judged> => {
    if ((await breaks(judged.schedule)) !== undefined) return shrink(judged, breaks);
    const hint = "(played again, this schedule breaks nothing: the job depends on something that isn't simulated)";
    return { ...judged, broken: `${judged.broken}\n${hint}` };
  };

  if (replay !== undefined) {
    const judged = await judge(readSchedule(replay));
    if (judged.broken !== undefined) throw failureOf(name, judged, 1);
    return { job: name, schedules: 1, byFaults: [], complete: 0, timeline: judged.played.timeline };
  }

  const random = seededRandom(randomSeed);
  const byFaults: number[] = [];
  let schedules = 0;
  let complete = 0;
  let last = undisturbed;
  /** Those with one fault less. */
  let roots: readonly Root[] = [];
  for (let count = 0; count <= mostFaults && schedules < budget; count += 1) {
    const all = count === 0 ? 1 : roots.reduce((sum, root) => sum + countLonger(root), 0);
    // Where not all can be played, half of what is left is for those with more faults.
    const share = count <= 1 || count === mostFaults ? budget - schedules : Math.ceil((budget - schedules) / 2);
    if (all <= share && complete === count - 1) complete = count;
    const level: Root[] = [];
    for (const schedule of sample(count === 0 ? [[]] : eachLonger(roots), all, share, random)) {
      schedules += 1;
      const judged = await judge(schedule);
      if (judged.broken !== undefined) throw failureOf(name, await shortestOf(judged), schedules);
      level.push({ schedule, steps: judged.played.steps });
      last = judged.played;
    }
    byFaults.push(level.length);
    roots = level;
  }
  return { job: name, schedules, byFaults, complete, timeline: last.timeline };
};

/** @throws InvalidOptionsError where there is nothing to be broken: whatever went wrong, it would hold */
const refuseIdle = (job: string, { records, ownWrites }: Played, { read, check }: ExploreOptions): void => {
  const items = records.reduce((sum, record) => sum + record.items, 0);
  if (items > 0 || ownWrites.length > 0 || read !== undefined || check !== undefined) return;
  throw new InvalidOptionsError(`exploration of job "${job}"`, [
    "its runs write nothing when nothing goes wrong, so that an exploration would prove nothing: seed something that is due, or say by read or check what else is to hold",
  ]);
};

/** @throws InvalidOptionsError where rows are there by chance: every history would have others */
const refuseChance = (job: string, { state }: Played, again: Played): void => {
  const { missing, extra } = differencesBetween(state, again.state, new Set());
  if (missing.length + extra.length === 0) return;
  throw new InvalidOptionsError(`exploration of job "${job}"`, [
    `two histories without a fault left different rows (${[...missing, ...extra].slice(0, 3).join("; ")}): ${rowsByChance}`,
  ]);
};

function* eachLonger(roots: readonly Root[]): Generator<Schedule> {
  for (const root of roots) yield* longerBy(root);
}

/** At most `most` of `all`, in their order. */
function* sample<Of>(from: Iterable<Of>, all: number, most: number, random: () => number): Generator<Of> {
  let [left, wanted] = [all, most];
  for (const one of from) {
    if (random() * left < wanted) {
      wanted -= 1;
      yield one;
    }
    left -= 1;
  }
}

const failureOf = (job: string, { schedule, played, broken = "" }: Judged, schedules: number): ExplorationFailedError =>
  new ExplorationFailedError(job, {
    broken,
    replay: scheduleText(schedule),
    faults: schedule,
    timeline: played.timeline,
    schedules,
  });
