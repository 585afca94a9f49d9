/**
 * The job when nothing goes wrong: what all trials are compared with, and where there is something to disturb. It is played more than
 * once, because what differs between undisturbed runs says nothing about a disturbed one.
 */
import { InvalidOptionsError } from "../../errors.ts";
import { DrillFailedError } from "./drill-failed-error.ts";
import type { Scene } from "./scene.ts";
import { differencesBetween, partsBetween, rowsByChance } from "./state.ts";
import { type Aftermath, playTrial, textOf, type World } from "./trial.ts";

export interface Undisturbed {
  readonly aftermath: Aftermath;
  /** Which of the scene's ticks is disturbed: that with the most to do, and never the last. */
  readonly disturbed: number;
  /** How many items its run does. */
  readonly items: number;
  /** The operations of its run's requests, in order. */
  readonly operations: readonly string[];
  /** How often its run's own code hands something over. */
  readonly steps: number;
  /** Parts of rows that may differ between runs of the same tick, as "table.attribute". */
  readonly ignored: ReadonlySet<string>;
  /** Those that may also differ where another run does the work, or a later one. */
  readonly ignoredElsewhere: ReadonlySet<string>;
}

/** Makes the fences of the second time others than those of the first. */
const earlierMs = 1_000_000;

/**
 * @throws DrillFailedError when the job doesn't do its work although nothing goes wrong
 * @throws InvalidOptionsError when there is nothing to do, or nothing that can be compared
 */
export const playUndisturbed = async (scene: Scene): Promise<Undisturbed> => {
  const { job, options, ticks } = scene;
  const subject = `drills of job "${job.name}"`;
  const runs: { readonly items: number; readonly operations: readonly string[] }[] = [];
  const aftermath = await playTrial(scene, (world) =>
    deliverEach(world, async (tick) => {
      const machine = world.machine();
      const invocation = await world.invoke(machine, tick);
      const { outcome } = invocation.report ?? {};
      if (outcome !== "succeeded" && outcome !== "capped") {
        throw new DrillFailedError(job.name, "undisturbed", `the tick of ${iso(tick)}, with nothing going wrong`, [
          `its run ended as ${textOf(invocation)}`,
        ]);
      }
      // A backlog may have been gone on with at once, by runs of their own.
      const all = (await world.records()).reduce((sum, { items }) => sum + items, 0);
      const items = all - runs.reduce((sum, run) => sum + run.items, 0);
      runs.push({ items, operations: machine.requests.map(({ operation }) => operation) });
    }),
  );
  const most = (among: typeof runs) => Math.max(0, ...among.map(({ items }) => items));
  const items = most(runs.slice(0, -1));
  const idle = options.writesNothing === true || aftermath.effects.length > 0 || aftermath.unfenced.length > 0;
  if (items === 0 && !idle) {
    throw new InvalidOptionsError(subject, [
      most(runs) === 0
        ? `nothing is due in ${ticks.length} ticks from ${iso(ticks[0] as number)} on, so that drills would prove nothing: seed something that is`
        : `nothing is due before the last of ${ticks.length} ticks (${iso(ticks.at(-1) as number)}), so that nothing could be disturbed: seed something earlier, or give more ticks`,
    ]);
  }
  const disturbed = runs.slice(0, -1).findIndex((run) => run.items === items);

  let steps = 0;
  const again = await playTrial(
    scene,
    async (world) => {
      let index = 0;
      world.watch.step = async () => {
        if (index === disturbed) steps += 1;
      };
      await deliverEach(world, async (tick) => {
        await world.deliver(tick);
        index += 1;
      });
    },
    { earlierMs },
  );
  const ignored = new Set([...(options.ignore ?? []), ...partsBetween(aftermath.state, again.state)]);
  const { missing, extra } = differencesBetween(aftermath.state, again.state, ignored);
  if (missing.length + extra.length > 0) {
    throw new InvalidOptionsError(subject, [
      `two undisturbed trials left different rows (${[...missing, ...extra].slice(0, 3).join("; ")}), so that nothing can be compared: ${rowsByChance}`,
    ]);
  }
  return {
    aftermath,
    disturbed: Math.max(0, disturbed),
    items,
    operations: runs[Math.max(0, disturbed)]?.operations ?? [],
    steps,
    ignored,
    ignoredElsewhere: await ignoredElsewhere(scene, aftermath, ignored),
  };
};

/** A tick's own run or a later one may do an item's work, unless the work is the tick's. */
const ignoredElsewhere = async (
  scene: Scene,
  { state }: Aftermath,
  ignored: ReadonlySet<string>,
): Promise<ReadonlySet<string>> => {
  const { job, ticks } = scene;
  if (job.work.shape === "tick") return ignored;
  const late = await playTrial(scene, async (world) => {
    await world.deliver(ticks.at(-1) as number);
  });
  return new Set([...ignored, ...partsBetween(state, late.state)]);
};

const deliverEach = async (world: World, deliver: (tick: number) => Promise<void>): Promise<void> => {
  for (const tick of world.ticks) {
    world.waitFor(tick);
    await deliver(tick);
  }
};

/** What `done`, and no other of `ticks`, comes to: for a job whose definition leaves out ticks that were missed. */
export const playOnly = (scene: Scene, ticks: readonly number[], done: ReadonlySet<number>): Promise<Aftermath> => {
  const { schedule } = scene.job;
  if (schedule === undefined) return Promise.reject(new TypeError("a job without a schedule has no ticks"));
  const only = {
    ...schedule,
    *between(after: number, through: number) {
      for (const tick of schedule.between(after, through)) if (done.has(tick) || !ticks.includes(tick)) yield tick;
    },
  };
  return playTrial(
    scene,
    async (world) => {
      for (const tick of ticks) if (done.has(tick)) await world.deliver(tick);
    },
    { ticks, job: { ...scene.job, schedule: only } },
  );
};

export const iso = (instant: number): string => new Date(instant).toISOString();
