/** Drills that disturb a run at each of its requests: it dies there, or never hears the answer. */
import type { DrillName } from "./drill-names.ts";
import { judge } from "./judgement.ts";
import type { Scene } from "./scene.ts";
import { playTrial, type World } from "./trial.ts";
import type { Undisturbed } from "./undisturbed.ts";

/** Delivers the ticks before the one that is disturbed; returns that one. */
export const untilDisturbed = async (world: World, { disturbed }: Undisturbed): Promise<number> => {
  for (const tick of world.ticks.slice(0, disturbed)) await world.deliver(tick);
  const tick = world.ticks[disturbed] as number;
  world.await(tick);
  return tick;
};

/** Where a run is disturbed: its requests by their numbers from `from` on, or so many of them as are to be tried. */
export const pointsOf = ({ options }: Scene, { operations }: Undisturbed, from = 0): number[] => {
  const all = operations.map((_, at) => at).filter((at) => at >= from);
  const most = options.points ?? defaultPoints;
  if (all.length <= most) return all;
  const third = Math.max(1, Math.floor(most / 3));
  const between = all.slice(third, -third);
  const step = between.length / Math.max(1, most - 2 * third);
  return [
    ...all.slice(0, third),
    ...between.filter((_, at) => Math.floor(at / step) !== Math.floor((at - 1) / step)),
    ...all.slice(-third),
  ];
};
const defaultPoints = 40;

/** Request number `at` in words: `request 3 of 5 (TransactWriteItems)`. */
export const requestText = ({ operations }: Undisturbed, at: number): string =>
  `request ${at + 1} of ${operations.length} (${operations[at]})`;

export const crash =
  (applied: boolean) =>
  async (scene: Scene, undisturbed: Undisturbed): Promise<void> => {
    const drill: DrillName = applied ? "crash at every request, applied" : "crash at every request, not applied";
    for (const at of pointsOf(scene, undisturbed)) {
      let movedTo: unknown;
      const found = await playTrial(scene, async (world) => {
        const tick = await untilDisturbed(world, undisturbed);
        const before = JSON.stringify((await world.state())?.watermark);
        const dying = world.machine();
        const dead = dying.at(at, applied ? { after: dying.kill } : { before: dying.kill });
        await Promise.race([dead, world.invoke(dying, tick, { requestId: "a", attempt: 1 })]);
        await world.quiet();
        const { watermark } = (await world.state()) ?? {};
        if (JSON.stringify(watermark) !== before) movedTo = watermark;
        await world.deliver(tick, { requestId: "a", attempt: 2 });
        await world.goOn(undisturbed.disturbed + 1);
      });
      const fate = applied ? "after DynamoDB had done it" : "before DynamoDB got it";
      await judge(scene, undisturbed, found, {
        drill,
        where: `the process died at ${requestText(undisturbed, at)} of a run, ${fate}`,
        ...(movedTo === undefined ? {} : { movedTo }),
      });
    }
  };

export const lostReply = async (scene: Scene, undisturbed: Undisturbed): Promise<void> => {
  for (const at of pointsOf(scene, undisturbed)) {
    const found = await playTrial(scene, async (world) => {
      const tick = await untilDisturbed(world, undisturbed);
      const machine = world.machine();
      void machine.at(at, { fault: "lost-reply" });
      await world.deliver(tick, { machine });
      await world.goOn(undisturbed.disturbed + 1);
    });
    await judge(scene, undisturbed, found, {
      drill: "lost reply at every request",
      where: `the reply to ${requestText(undisturbed, at)} of a run was lost, after DynamoDB had done it`,
    });
  }
};
