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
  world.waitFor(tick);
  return tick;
};

/** Where a run is disturbed: the numbers of its requests from `from` on, or so many of them as are to be tried, evenly spread. */
export const pointsOf = ({ options }: Scene, { operations }: Undisturbed, from = 0): number[] => {
  const count = Math.max(0, operations.length - from);
  const most = Math.min(count, options.points ?? defaultPoints);
  const step = (count - 1) / Math.max(1, most - 1);
  return Array.from({ length: most }, (_, index) => from + Math.round(index * step));
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
