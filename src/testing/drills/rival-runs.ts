/** Drills with two runs at once: a second delivery, a holder that was paused or frozen and goes on, clocks that differ. */
import { judge } from "./judgement.ts";
import type { Machine } from "./machine.ts";
import { pointsOf, requestText, untilDisturbed } from "./request-faults.ts";
import type { Scene } from "./scene.ts";
import { playTrial, type World } from "./trial.ts";
import type { Undisturbed } from "./undisturbed.ts";

/** The number of a run's first request by which it has the lease. */
const acquiring = ({ operations }: Undisturbed): number => Math.max(0, operations.indexOf("UpdateItem"));

export const doubleTrigger = async (scene: Scene, undisturbed: Undisturbed): Promise<void> => {
  for (const at of [...pointsOf(scene, undisturbed), undisturbed.operations.length]) {
    const found = await playTrial(scene, async (world) => {
      const tick = await untilDisturbed(world, undisturbed);
      const machine = world.machine();
      let second: Promise<unknown> | undefined;
      void machine.at(at, {
        before: () => {
          second = world.deliver(tick);
          return second;
        },
      });
      await world.deliver(tick, { machine });
      await (second ?? world.deliver(tick));
      await world.goOn(undisturbed.disturbed + 1);
    });
    const last = at === undisturbed.operations.length;
    await judge(scene, undisturbed, found, {
      drill: "double trigger",
      where: `the tick was delivered again ${last ? "right after its run" : `at ${requestText(undisturbed, at)} of its run`}`,
    });
  }
};

export const pausedHolder = async (scene: Scene, undisturbed: Undisturbed): Promise<void> => {
  const granted = acquiring(undisturbed);
  for (const at of pointsOf(scene, undisturbed, granted)) {
    for (const applied of at === granted ? [true] : [false, true]) {
      const found = await playTrial(scene, async (world) => {
        const tick = await untilDisturbed(world, undisturbed);
        const { machine, run } = await pausedAt(world, tick, at, applied);
        world.clock.advance(world.job.ttlMs + world.job.skewMs + 1);
        await world.deliver(tick, { requestId: "second" });
        machine.thaw();
        await run;
        await world.goOn(undisturbed.disturbed + 1);
      });
      await judge(scene, undisturbed, found, {
        drill: "paused holder",
        where: `the run was paused at ${requestText(undisturbed, at)}${applied ? ", which was done," : ""} until another run had done its work, and then went on`,
      });
    }
  }
};

/** A run that is paused before its request number `at` is done, or after. */
const pausedAt = async (world: World, tick: number, at: number, applied: boolean) => {
  const machine = world.machine();
  const paused = machine.at(at, applied ? { after: machine.pause } : { before: machine.pause });
  const run = world.invoke(machine, tick, { requestId: "first", attempt: 1 });
  await Promise.race([paused, run]);
  return { machine, run };
};

export const lateThaw = async (scene: Scene, undisturbed: Undisturbed): Promise<void> => {
  const granted = acquiring(undisturbed);
  const { disturbed } = undisturbed;
  for (const at of pointsOf(scene, undisturbed, granted + 1)) {
    const found = await playTrial(scene, async (world) => {
      const tick = await untilDisturbed(world, undisturbed);
      const { machine, run } = await pausedAt(world, tick, at, false);
      world.clock.advance(world.job.ttlMs + world.job.skewMs + 1);
      const next = world.machine();
      thawAt(next, granted + 1, machine, run);
      await world.deliver(world.ticks[disturbed + 1] as number, { machine: next });
      machine.thaw();
      await run;
      await world.goOn(disturbed + 2);
    });
    await judge(scene, undisturbed, found, {
      drill: "thaw in a later invocation",
      where: `the run was frozen at ${requestText(undisturbed, at)}, and thawed in the middle of the next tick's run`,
    });
  }
};

/** In the middle of a run on `machine`, the frozen one goes on to its end. */
const thawAt = (machine: Machine, at: number, frozen: Machine, run: Promise<unknown>): void => {
  void machine.at(at, {
    before: () => {
      frozen.thaw();
      return run;
    },
  });
};

export const clockSkew = async (scene: Scene, undisturbed: Undisturbed): Promise<void> => {
  const granted = acquiring(undisturbed);
  for (const at of pointsOf(scene, undisturbed, granted + 1)) {
    const found = await playTrial(scene, async (world) => {
      const tick = await untilDisturbed(world, undisturbed);
      const machine = world.machine();
      const ahead = world.machine({ aheadMs: world.job.ttlMs + world.job.skewMs + 5_000 });
      void machine.at(at, { before: () => world.deliver(tick, { machine: ahead }) });
      await world.deliver(tick, { machine });
      await world.goOn(undisturbed.disturbed + 1);
    });
    await judge(scene, undisturbed, found, {
      drill: "clock skew",
      where: `at ${requestText(undisturbed, at)} of a run, a machine whose clock is ahead took its lease`,
    });
  }
  for (const [aheadMs, which] of [
    [-hourMs, "an hour behind"],
    [-1_000, "a second behind"],
  ] as const) {
    const found = await playTrial(scene, async (world) => {
      const tick = await untilDisturbed(world, undisturbed);
      await world.deliver(tick, { machine: world.machine({ aheadMs }) });
      await world.goOn(undisturbed.disturbed + 1);
    });
    await judge(scene, undisturbed, found, {
      drill: "clock skew",
      where: `the run's machine had a clock that was ${which}`,
    });
  }
};

const hourMs = 3_600_000;
