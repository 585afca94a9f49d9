/** Drills about where a run must stop, or mustn't begin: its deadline, its limit, its guard, and a dry run. */
import { isDeepStrictEqual } from "node:util";
import { InvalidOptionsError } from "../../errors.ts";
import type { Job } from "../../job.ts";
import { DrillFailedError } from "./drill-failed-error.ts";
import type { DrillName } from "./drill-names.ts";
import { dateHint, judge } from "./judgement.ts";
import type { MachineOptions } from "./machine.ts";
import { untilDisturbed } from "./request-faults.ts";
import type { Scene } from "./scene.ts";
import { differencesBetween } from "./state.ts";
import { type Aftermath, effectsBy, playTrial, textOf, type World } from "./trial.ts";
import type { Undisturbed } from "./undisturbed.ts";

export const timeout = async (scene: Scene, undisturbed: Undisturbed): Promise<void> => {
  const { steps } = undisturbed;
  for (const step of new Set([0, Math.floor(steps / 2), steps - 1])) {
    const seen: string[] = [];
    const found = await playTrial(scene, async (world) => {
      const tick = await untilDisturbed(world, undisturbed);
      let left = step;
      let goOn = () => {};
      const heldBack = new Promise<void>((held) => {
        world.watch.step = () => {
          left -= 1;
          if (left !== -1) return Promise.resolve();
          held();
          return new Promise((resolve) => (goOn = resolve));
        };
      });
      const run = world.invoke(world.machine(), tick, { requestId: "a", attempt: 1 });
      await Promise.race([heldBack, run]);
      world.clock.advance(world.job.timeoutMs + 1);
      const ended = await run;
      world.watch.step = undefined;
      if (left < 0 && ended.report?.outcome !== "timed_out") {
        seen.push(`the run that went on past its deadline ended as ${textOf(ended)}, and not as timed_out`);
      }
      goOn();
      await world.quiet();
      await world.deliver(tick, { requestId: "a", attempt: 2 });
      await world.goOn(undisturbed.disturbed + 1);
    });
    await judge(scene, undisturbed, found, {
      drill: "timeout",
      where: `the job's code went on past the deadline without looking at run.signal, at step ${step + 1} of ${steps}`,
      seen,
    });
  }
};

export const batchCap = async (scene: Scene, undisturbed: Undisturbed): Promise<void> => {
  const { work } = scene.job;
  const seen: string[] = [];
  const most = Math.floor(undisturbed.items / 2);
  if (work.shape === "source" && most === 0) {
    throw new InvalidOptionsError(`drill "batch cap" of job "${scene.job.name}"`, [
      "at most one item is due at a tick, so that no run could stop between two: seed more, or skip this drill",
    ]);
  }
  const found = await playTrial(scene, async (world) => {
    const tick = await untilDisturbed(world, undisturbed);
    // A tick job stops between ticks, so that there must be more than one to do.
    const capped = work.shape === "source" ? tick : (world.ticks.at(-1) as number);
    const { report } = await world.deliver(capped, {}, limited(world.job, most));
    if (report?.outcome !== "capped")
      seen.push(`the run with the limit ended as ${report?.outcome}, and not as capped`);
    await world.goOn(undisturbed.disturbed + 1);
  });
  await judge(scene, undisturbed, found, {
    drill: "batch cap",
    where:
      work.shape === "source" ? `a run stopped after ${most} items` : "a run of several ticks stopped after the first",
    seen,
  });
};

const limited = (job: Job, items: number): Job =>
  job.work.shape === "source"
    ? { ...job, work: { ...job.work, limit: { ...job.work.limit, items }, onBacklog: "wait" } }
    : { ...job, catchUp: { ...job.catchUp, maxTicks: 1 } };

export const ownClock = async (scene: Scene, undisturbed: Undisturbed): Promise<void> => {
  for (const zone of farZones) {
    const found = await inZone(zone, () => playTrial(scene, (world) => world.goOn(0)));
    refuseDifference(scene, undisturbed, found, {
      where: `the machine's time zone was ${zone}`,
      on: "the machine's time zone",
      hints: [
        "the job's code or the seed reads days or hours in the zone of the machine (getHours, getDate, new Date(year, month, …)), " +
          "which is UTC in Lambda; use the UTC ones, or name the zone",
      ],
    });
  }
  // What never asks doesn't depend on the answer.
  if (undisturbed.aftermath.dateReaders.length === 0) return;
  for (const [dateAheadMs, which] of [
    [25 * hourMs, "25 hours ahead"],
    [-25 * hourMs, "25 hours behind"],
  ] as const) {
    const machineOptions: MachineOptions = { dateAheadMs };
    const found = await playTrial(scene, (world) => world.goOn(0), { machineOptions });
    refuseDifference(scene, undisturbed, found, {
      where: `the machine's own clock was ${which}, and the ticks were delivered at their times`,
      on: "the machine's own clock",
      hints: dateHint(found),
    });
  }
};

const hourMs = 3_600_000;

/** No day is the same day in both. */
const farZones = ["Pacific/Kiritimati", "Pacific/Pago_Pago"];

/** Node reads TZ anew whenever it is set; in a worker thread it doesn't, and the zone stays what it is. */
const inZone = async <Result>(zone: string, act: () => Promise<Result>): Promise<Result> => {
  const { TZ } = process.env;
  process.env.TZ = zone;
  try {
    return await act();
  } finally {
    if (TZ === undefined) delete process.env.TZ;
    else process.env.TZ = TZ;
  }
};

/** @throws DrillFailedError where the rows aren't those of an undisturbed run */
const refuseDifference = (
  { job }: Scene,
  { aftermath, ignored }: Undisturbed,
  found: Aftermath,
  { where, on, hints }: { readonly where: string; readonly on: string; readonly hints: readonly string[] },
): void => {
  const { missing, extra, different } = differencesBetween(aftermath.state, found.state, ignored);
  const parts = [
    ...missing.map((name) => `${name} is missing`),
    ...extra.map((name) => `${name} is there`),
    ...different.map(({ name, path }) => `${name}, ${path} differs`),
  ];
  if (parts.length === 0) return;
  const more = parts.length > 3 ? ` and ${parts.length - 3} more` : "";
  const problem = `its result depends on ${on}: ${parts.slice(0, 3).join("; ")}${more}`;
  throw new DrillFailedError(job.name, "own clock", where, [problem], hints);
};

export const guard = async (scene: Scene, undisturbed: Undisturbed): Promise<void> => {
  const seen: string[] = [];
  const found = await playTrial(scene, async (world) => {
    const tick = await untilDisturbed(world, undisturbed);
    const outcome = await nothingBy(scene, world, seen, "the guard had tripped", () =>
      world.deliver(tick, {}, guarded(world.job)).then(({ report }) => report?.outcome),
    );
    if (outcome !== "guard_tripped") {
      seen.push(`a run whose plan was larger than it may be ended as ${outcome}, and not as guard_tripped`);
    }
    await world.goOn(undisturbed.disturbed + 1);
  });
  await judge(scene, undisturbed, found, {
    drill: "guard",
    where: "the plan of a run was larger than it may be; the next run had no such limit",
    seen,
  });
};

/** Nothing is few enough. */
const guarded = (job: Job): Job => ({ ...job, work: { ...job.work, destructive: { max: 0 } } });

export const dryRun = async (scene: Scene, undisturbed: Undisturbed): Promise<void> => {
  const seen: string[] = [];
  const drill: DrillName = "dry run";
  const found = await playTrial(scene, async (world) => {
    const tick = await untilDisturbed(world, undisturbed);
    for (const [what, job, delivery] of [
      ["a dry run that was asked for", world.job, { dryRun: true }],
      ["a run of the job configured as dry", { ...world.job, dryRun: true }, {}],
    ] as const) {
      const outcome = await nothingBy(scene, world, seen, what, async () => {
        const invocation = await world.invoke(world.machine(), tick, delivery, job);
        return invocation.report?.outcome ?? textOf(invocation);
      });
      if (outcome !== "dry_run") seen.push(`${what} ended as ${outcome}, and not as dry_run`);
    }
    await world.goOn(undisturbed.disturbed);
  });
  await judge(scene, undisturbed, found, { drill, where: "dry runs, and then the real ones", seen });
};

/** Does `act`, and notes what has changed although nothing may. */
const nothingBy = async <Result>(
  scene: Scene,
  world: World,
  seen: string[],
  what: string,
  act: () => Promise<Result>,
): Promise<Result> => {
  const { tables, callsToJudge } = scene;
  const look = async () => {
    const { watermark, tick, tickPart } = (await world.state()) ?? {};
    return {
      rows: await tables.read(),
      place: { watermark, tick, tickPart },
      effects: await effectsBy(scene),
      calls: callsToJudge(),
    };
  };
  const before = await look();
  const result = await act();
  const after = await look();
  for (const [name, rows] of after.rows) {
    const changed = [...new Set([...rows.keys(), ...(before.rows.get(name)?.keys() ?? [])])].filter(
      (key) => rows.get(key) !== before.rows.get(name)?.get(key),
    );
    if (changed.length > 0) seen.push(`${what}, and yet ${name} ${changed[0]} was written (${changed.length} in all)`);
  }
  if (!isDeepStrictEqual(before.place, after.place)) seen.push(`${what}, and yet the watermark or the tick has moved`);
  if (!isDeepStrictEqual(before.effects, after.effects)) {
    const done = after.effects.length - before.effects.length;
    seen.push(`${what}, and yet ${done} effects were done outside: make them inside run.once, or look at run.dryRun`);
  }
  for (const [call, times] of after.calls) {
    if (times > (before.calls.get(call) ?? 0)) seen.push(`${what}, and yet it called ${call}`);
  }
  return result;
};
