/**
 * Drills for a user's own job: what goes wrong with scheduled work, done to the job's real code on a local DynamoDB, at each point of
 * its runs. After each trial the tables must hold what they do after an undisturbed run, and nothing may have been done twice.
 *
 * The requests are real ones, over HTTP; the time is set, so that nothing is waited for. What no drill can see: effects outside
 * DynamoDB that are neither listed by `effects` nor HTTP calls, and code of the job that is going on in other processes.
 */
import { InvalidOptionsError } from "../../errors.ts";
import type { Job } from "../../job.ts";
import { batchCap, dryRun, guard, ownClock, timeout } from "./bounds.ts";
import { type DrillName, drillNames, drillTexts } from "./drill-names.ts";
import { checkOptions, type DrillOptions } from "./drill-options.ts";
import { judge } from "./judgement.ts";
import { clockChange, clockChangeAfter, duplicateDelivery, missedWindow } from "./odd-deliveries.ts";
import { crash, lostReply } from "./request-faults.ts";
import { clockSkew, doubleTrigger, lateThaw, pausedHolder } from "./rival-runs.ts";
import { onScene, type Scene } from "./scene.ts";
import { playUndisturbed, type Undisturbed } from "./undisturbed.ts";

/** A test of a job. */
export interface Drill {
  /** For the test: "expire-carts: paused holder". */
  readonly name: string;
  readonly drill: DrillName;
  /** What it does, in a sentence. */
  readonly text: string;
  /** @throws DrillFailedError that says what was done to the job, what came of it, and what to do */
  readonly run: () => Promise<void>;
}

/**
 * The drills of a job, as tests for whatever runs them. Each is independent of the others, makes its own tables on a local DynamoDB
 * that is started for it, and takes its turn when several are started at once.
 *
 * In vitest, and with the export `local` that `npm run dev` uses:
 * ```ts
 * import { it } from "vitest";
 * import { drills } from "cronfence/testing";
 * import { job, local } from "../handlers/expire-carts.ts";
 *
 * for (const drill of drills(job, local)) it(drill.name, drill.run, 60_000);
 * ```
 * In node:test:
 * ```ts
 * import { test } from "node:test";
 *
 * for (const drill of drills(job, { tables, seed: (now) => ({ carts: [cartExpiring(now - 60_000, "c1")] }) })) test(drill.name, drill.run);
 * ```
 *
 * @throws InvalidOptionsError naming every option that can't be accepted
 */
export const drills = (job: Job, options: DrillOptions = {}): readonly Drill[] => {
  checkOptions(job, options);
  const ticks = ticksOf(job, options);
  let played: Promise<Undisturbed> | undefined;
  const undisturbedOn = (scene: Scene) => (played ??= playUndisturbed(scene));
  const plays = playsFor(job, ticks[0] as number);
  return drillNames.flatMap((drill) => {
    const play = plays[drill];
    if (play === undefined || options.skip?.includes(drill) || options.only?.includes(drill) === false) return [];
    return {
      name: `${job.name}: ${drill}`,
      drill,
      text: drillTexts[drill],
      run: () => onScene(job, options, ticks, async (scene) => play(scene, await undisturbedOn(scene))),
    };
  });
};

type Play = (scene: Scene, undisturbed: Undisturbed) => Promise<void>;

/** The drills that fit a job. */
const playsFor = ({ schedule, work, catchUp }: Job, first: number): Partial<Record<DrillName, Play>> => {
  const spring = schedule && clockChangeAfter(schedule, first, "spring");
  const autumn = schedule && clockChangeAfter(schedule, first, "autumn");
  // Where a missed tick may be left out, there needn't be two to do at once.
  const makesUp = schedule !== undefined && catchUp.catchUp === "all" && catchUp.startWithinMs === undefined;
  const caps = work.shape === "source" || (work.shape === "tick" && makesUp);
  return {
    undisturbed: (scene, undisturbed) =>
      judge(scene, undisturbed, undisturbed.aftermath, { drill: "undisturbed", where: "with nothing going wrong" }),
    "double trigger": doubleTrigger,
    "paused holder": pausedHolder,
    "crash at every request, not applied": crash(false),
    "crash at every request, applied": crash(true),
    "lost reply at every request": lostReply,
    ...(schedule === undefined ? {} : { "missed window": missedWindow, "duplicate delivery": duplicateDelivery }),
    timeout,
    ...(caps ? { "batch cap": batchCap } : {}),
    "clock skew": clockSkew,
    "own clock": ownClock,
    "thaw in a later invocation": lateThaw,
    ...(spring === undefined ? {} : { "spring clock change": clockChange("spring", spring) }),
    ...(autumn === undefined ? {} : { "autumn clock change": clockChange("autumn", autumn) }),
    ...(work.destructive === undefined ? {} : { guard }),
    "dry run": dryRun,
  };
};

/** When the ticks of an ordinary trial are. */
const ticksOf = (job: Job, { now, ticks: count = defaultTicks }: DrillOptions): number[] => {
  const from = now === undefined ? Math.max(defaultNow, job.catchUp.startAt ?? 0) : new Date(now).getTime();
  if (job.schedule === undefined) return Array.from({ length: count }, (_, index) => from + index * hourMs);
  const ticks: number[] = [];
  for (let tick = job.schedule.next(from - 1); tick !== undefined && ticks.length < count; ) {
    ticks.push(tick);
    tick = job.schedule.next(tick);
  }
  if (ticks.length < count) {
    throw new InvalidOptionsError(`drills of job "${job.name}"`, [
      `its schedule has ${ticks.length} ticks from ${new Date(from).toISOString()} on, and ${count} are needed: give another now`,
    ]);
  }
  return ticks;
};

const defaultTicks = 3;
const defaultNow = Date.parse("2026-01-12T12:00:00Z");
const hourMs = 3_600_000;
